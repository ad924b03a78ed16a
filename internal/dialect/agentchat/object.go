package agentchat

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/presence"
	"koine/kg"
)

// wireTime is the format of times.
const wireTime = "2006-01-02T15:04:05.000Z"

func formatTime(t time.Time) string { return t.UTC().Format(wireTime) }

// agent is an agent of the protocol.
type agent struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Owner        string          `json:"owner"`
	Capabilities []string        `json:"capabilities"`
	Status       string          `json:"status"`
	Metadata     json.RawMessage `json:"metadata"`
	CreatedAt    string          `json:"created_at"`
	// Wanted are the rooms that ask for a capability of the agent, in answers about one.
	Wanted []wantedRoom `json:"wanted_in,omitempty"`
}

// wantedRoom names a room that asks for capabilities of an agent.
type wantedRoom struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Wanted []string `json:"wanted"`
}

// emptyObject is the JSON of absent metadata.
var emptyObject = json.RawMessage(`{}`)

func orEmpty(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return emptyObject
	}
	return raw
}

// encodeAgent returns an agent. One without a record has its id as its name.
func (h *Handler) encodeAgent(id kg.AgentID, r *agents.Record) *agent {
	out := &agent{ID: agents.ShortID(id), Name: agents.ShortID(id), Capabilities: []string{}, Status: statusOf(h.deps.Presence.Get(id)), Metadata: emptyObject}
	if r == nil {
		return out
	}
	if id == kg.System {
		out.Status = statusOnline
	}
	if r.Name != "" {
		out.Name = r.Name
	}
	out.Owner = agents.ShortID(r.Owner)
	if !r.Since.IsZero() {
		out.CreatedAt = formatTime(r.Since)
	}
	if g := r.Registration; g != nil {
		if tags := g.Tags(); len(tags) > 0 {
			out.Capabilities = tags
		}
		out.Metadata = orEmpty(g.Metadata)
	}
	return out
}

// The statuses of agents.
const (
	statusOnline  = "online"
	statusIdle    = "idle"
	statusBusy    = "busy"
	statusOffline = "offline"
)

func statusOf(p presence.Presence) string { return statusName(string(p.Status)) }

func statusName(status string) string { return strings.ToLower(status) }

// room is a room of the protocol.
type room struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Type          string          `json:"type"`
	Topic         string          `json:"topic"`
	CreatedBy     string          `json:"created_by"`
	Members       []string        `json:"members"`
	MaxMembers    int             `json:"max_members"`
	Metadata      json.RawMessage `json:"metadata"`
	CreatedAt     string          `json:"created_at"`
	MyRole        *string         `json:"my_role"`
	Unread        *int64          `json:"unread,omitempty"`
	LastMessageAt string          `json:"last_message_at,omitempty"`
	Version       int64           `json:"version"`
	OverseenBy    []string        `json:"overseen_by,omitempty"`
	Detail        []memberDetail  `json:"members_detail,omitempty"`
}

type memberDetail struct {
	Agent    *agent `json:"agent"`
	Role     string `json:"role"`
	JoinedAt string `json:"joined_at"`
}

// The types of rooms.
const (
	typePublic    = "public"
	typePrivate   = "private"
	typeDirect    = "direct"
	typeBroadcast = "broadcast"
)

// roomType returns the type of a channel. One of another protocol has the type that its
// visibility gives.
func roomType(c *channel.Channel) string {
	switch {
	case c.Kind == channel.Direct:
		return typeDirect
	case c.Visibility != channel.Public:
		return typePrivate
	case c.Kind == channel.Broadcast:
		return typeBroadcast
	}
	return typePublic
}

// The roles of members.
const (
	roleAdmin  = "admin"
	roleMember = "member"
)

// wireRole returns the role of a member: owners and moderators are admins.
func wireRole(r channel.Role) string {
	if r == channel.Owner || r == channel.Moderator {
		return roleAdmin
	}
	return roleMember
}

// encodeRoom returns a room as the agent sees it, without the count of unread messages.
func encodeRoom(c *channel.Channel, of kg.AgentID) *room {
	out := &room{
		ID: string(c.ID), Name: c.Name, Type: roomType(c), Topic: c.Topic, CreatedBy: agents.ShortID(c.CreatedBy), Members: make([]string, 0, len(c.Members)),
		MaxMembers: c.MaxMembers, Metadata: orEmpty(c.Metadata), Version: c.Version,
	}
	if out.Type == typeDirect {
		out.MaxMembers = 2
	}
	if !c.CreatedAt.IsZero() {
		out.CreatedAt = formatTime(c.CreatedAt)
	}
	for _, m := range c.Members {
		out.Members = append(out.Members, agents.ShortID(m.Agent))
	}
	for _, o := range c.Overseers {
		out.OverseenBy = append(out.OverseenBy, agents.ShortID(o.Agent))
	}
	if role := c.MemberRole(of); role != "" {
		mine := wireRole(role)
		out.MyRole = &mine
	}
	if !c.LastMessageAt.IsZero() {
		out.LastMessageAt = formatTime(c.LastMessageAt)
	}
	return out
}

// wireMessage is a message of the protocol.
type wireMessage struct {
	ID        string          `json:"id"`
	RoomID    string          `json:"room_id"`
	SenderID  string          `json:"sender_id"`
	Type      string          `json:"type"`
	Content   string          `json:"content"`
	Metadata  json.RawMessage `json:"metadata"`
	Timestamp string          `json:"timestamp"`
	Sequence  int64           `json:"sequence"`
	Withheld  string          `json:"withheld,omitempty"`
}

// The formats of content.
const (
	formatPlain    = "plain"
	formatMarkdown = "markdown"
	formatJSON     = "json"
)

// wellKnown are the members of a message's metadata that the protocol defines.
type wellKnown struct {
	Format   string   `json:"format"`
	ReplyTo  *string  `json:"in_reply_to"`
	ThreadID *string  `json:"thread_id"`
	Tags     []string `json:"tags"`
}

var wellKnownNames = []string{"format", "in_reply_to", "thread_id", "tags"}

// encodeMessage returns a message. One of another protocol has the texts of its parts as
// content or, without any, the parts as JSON.
func encodeMessage(m *message.Message) *wireMessage {
	out := &wireMessage{
		ID: string(m.ID), RoomID: string(m.Channel), SenderID: agents.ShortID(m.Author), Type: string(m.ContentType),
		Timestamp: formatTime(m.Time), Sequence: m.Sequence, Withheld: string(m.Withheld),
	}
	known := wellKnown{Format: m.Format, ReplyTo: textOrNull(string(m.ReplyTo)), ThreadID: textOrNull(m.Thread), Tags: m.Tags}
	if known.Tags == nil {
		known.Tags = []string{}
	}
	extra := map[string]json.RawMessage{}
	if m.Withheld == "" {
		var texts bool
		if out.Content, texts = contentOf(m.Parts); !texts {
			known.Format = formatJSON
			if out.Type == "" {
				out.Type = string(message.Structured)
			}
		}
		if m.Metadata != nil {
			_ = json.Unmarshal(m.Metadata, &extra) // was validated when published
		}
	}
	if m.Retracts != "" { // an announcement of koine's
		out.Type = string(message.Notice)
		extra["retracts"] = plainjson.MustEncode(string(m.Retracts))
	}
	if out.Type == "" {
		out.Type = string(message.Text)
	}
	if known.Format == "" {
		known.Format = formatPlain
	}
	out.Metadata = joinMetadata(known, extra)
	return out
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// joinMetadata returns the members of the protocol, and then the others in order.
func joinMetadata(known wellKnown, extra map[string]json.RawMessage) json.RawMessage {
	raw := plainjson.MustEncode(known)
	for _, name := range wellKnownNames {
		delete(extra, name)
	}
	if len(extra) == 0 {
		return raw
	}
	var b bytes.Buffer
	b.Write(raw[:len(raw)-1])
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		b.WriteByte(',')
		b.Write(plainjson.MustEncode(name))
		b.WriteByte(':')
		b.Write(extra[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// contentOf returns the texts of parts joined by newlines. Without any text, it returns
// the parts as JSON, and false.
func contentOf(parts []json.RawMessage) (content string, texts bool) {
	var lines []string
	for _, raw := range parts {
		var p struct {
			Text *string `json:"text"`
		}
		if json.Unmarshal(raw, &p) == nil && p.Text != nil {
			lines = append(lines, *p.Text)
		}
	}
	if len(lines) > 0 || len(parts) == 0 {
		return strings.Join(lines, "\n"), true
	}
	return string(plainjson.MustEncode(parts)), false
}

// parseAgent returns the agent that a path or a member names.
func parseAgent(field, text string) (kg.AgentID, error) {
	id, err := caller.ParseAgent(text)
	if err != nil {
		return "", kg.AsError(err).At(field)
	}
	return id, nil
}
