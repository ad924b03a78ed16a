package agentchat

import "encoding/json"

// The types of frames.
const (
	frameAuth       = "auth"
	frameAuthOK     = "auth_ok"
	frameJoin       = "join"
	frameJoined     = "joined"
	frameLeave      = "leave"
	frameLeft       = "left"
	frameMessage    = "message"
	frameAck        = "ack"
	framePing       = "ping"
	framePong       = "pong"
	frameTyping     = "typing"
	frameReaction   = "reaction"
	frameStatus     = "status"
	frameSubscribe  = "subscribe"
	frameSubscribed = "subscribed"
	frameEvent      = "event"
	frameError      = "error"
	// Of sockets that joined with an invitation.
	frameAgentJoined = "agent_joined"
	frameAgentLeft   = "agent_left"
)

// The events.
const (
	eventJoin     = "agent.join"
	eventLeave    = "agent.leave"
	eventTyping   = "agent.typing"
	eventStatus   = "agent.status"
	eventCreated  = "room.created"
	eventUpdated  = "room.updated"
	eventReaction = "message.reaction"
)

// rawID is the request id of a client: any JSON, repeated in the answer.
type rawID = json.RawMessage

// received is a frame from a client.
type received struct {
	Type      string           `json:"type"`
	RequestID rawID            `json:"request_id"`
	Token     string           `json:"token"`
	Resume    map[string]int64 `json:"resume"` // the last sequence of each room
	RoomID    string           `json:"room_id"`
	// Room and Key are those of an invitation: join with them is the first frame.
	Room     string          `json:"room"`
	Key      string          `json:"key"`
	Content  *string         `json:"content"`
	Metadata json.RawMessage `json:"metadata"`
	Tags     []string        `json:"tags"`
	// MessageType is the type of a message: type is that of the frame.
	MessageType string `json:"message_type"`
	MessageID   string `json:"message_id"`
	Emoji       string `json:"emoji"`
	Status      string `json:"status"`
	After       *int64 `json:"after"`
	// IdempotencyKey makes a repeated message frame return the first message.
	IdempotencyKey string `json:"idempotency_key"`
}

// sentFrame is a frame from the server, except errors.
type sentFrame struct {
	Type       string       `json:"type"`
	RequestID  rawID        `json:"request_id,omitempty"`
	Agent      *agent       `json:"agent,omitempty"`
	AgentID    string       `json:"agent_id,omitempty"`
	Rooms      *[]*room     `json:"rooms,omitempty"`
	Room       *room        `json:"room,omitempty"`
	Members    *[]string    `json:"members,omitempty"`
	RoomID     string       `json:"room_id,omitempty"`
	After      *int64       `json:"after,omitempty"`
	Message    *wireMessage `json:"message,omitempty"`
	Status     string       `json:"status,omitempty"`
	Event      string       `json:"event,omitempty"`
	Data       any          `json:"data,omitempty"`
	ServerTime string       `json:"server_time,omitempty"`
}

// The data of events.
type (
	memberEvent struct {
		RoomID  string `json:"room_id"`
		AgentID string `json:"agent_id"`
	}
	statusEvent struct {
		AgentID string `json:"agent_id"`
		Status  string `json:"status"`
	}
	createdEvent struct {
		Room *room `json:"room"`
	}
	updatedEvent struct {
		Room    *room          `json:"room"`
		Changes map[string]any `json:"changes"`
	}
	reactionEvent struct {
		RoomID    string `json:"room_id"`
		MessageID string `json:"message_id"`
		AgentID   string `json:"agent_id"`
		Emoji     string `json:"emoji"`
	}
)
