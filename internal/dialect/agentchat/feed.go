package agentchat

import (
	"context"
	"encoding/json"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/agents"
	"koine/internal/plainjson"
	"koine/kg"
)

// feed delivers the events of the rooms of an agent, as frames.
type feed struct {
	handler *Handler
	ctx     context.Context
	who     *requester
	guest   bool
	source  *channels.AgentFeed
}

// openFeed opens the feed of an agent from now on. It counts as one of its connections.
func (h *Handler) openFeed(ctx context.Context, who *requester, guest bool) (*feed, error) {
	source, err := h.deps.Channels.FollowAgent(ctx, who.onChannels(), nil)
	if err != nil {
		return nil, err
	}
	return &feed{h, ctx, who, guest, source}, nil
}

func (f *feed) close() { f.source.Close() }

// run passes the frames on until one is refused or the feed ends. m is the message of a
// frame, nil for another one.
func (f *feed) run(deliver func(frame json.RawMessage, m *message.Message) error) error {
	for e, err := range f.source.All() {
		var raw json.RawMessage
		if err == nil {
			raw, err = f.encodeEvent(&e)
		}
		if err == nil && raw != nil {
			err = deliver(raw, e.Message)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// encodeEvent returns the frame of an event as JSON; nil for an event that the client is not
// told of.
func (f *feed) encodeEvent(e *channels.AgentEvent) (json.RawMessage, error) {
	if e.Message != nil {
		return f.handler.messageFrames.Encode(e.Message)
	}
	frame, err := f.frameOf(e)
	if err != nil || frame == nil {
		return nil, err
	}
	return plainjson.Encode(frame)
}

// encodeMessageFrame returns the frame of a message as JSON.
func encodeMessageFrame(m *message.Message) (json.RawMessage, error) {
	return plainjson.Encode(&sentFrame{Type: frameMessage, Message: encodeMessage(m)})
}

// frameOf returns the frame of an event other than a message.
func (f *feed) frameOf(e *channels.AgentEvent) (*sentFrame, error) {
	switch {
	case e.Control != nil && f.guest:
		return guestFrame(e.Control), nil
	case e.Control != nil:
		return f.controlFrame(e.Control)
	case e.Signal != nil && !f.guest:
		return f.signalFrame(e.Signal), nil
	case e.Presence != nil && !f.guest:
		return eventFrame(eventStatus, statusEvent{agents.ShortID(e.Presence.Agent), statusName(e.Presence.Status)}), nil
	}
	return nil, nil
}

func eventFrame(name string, data any) *sentFrame {
	return &sentFrame{Type: frameEvent, Event: name, Data: data}
}

// guestFrame returns the frame of a change for a socket that joined with an invitation.
func guestFrame(c *channels.Control) *sentFrame {
	switch c.Kind {
	case channels.MemberJoined:
		return &sentFrame{Type: frameAgentJoined, RoomID: string(c.Channel), AgentID: agents.ShortID(c.Agent)}
	case channels.MemberLeft:
		return &sentFrame{Type: frameAgentLeft, RoomID: string(c.Channel), AgentID: agents.ShortID(c.Agent)}
	}
	return nil
}

// settingNames are the names of settings in the protocol, where they differ.
var settingNames = map[string]string{
	"maxMembers": "max_members", "expireAfter": "expire_after_ms", "keepMessages": "keep_messages", "memberPolicy": "member_policy",
	"messagesPerMinute": "messages_per_minute", "messageBytes": "message_bytes",
}

// controlFrame returns the frame of a change of a room. A member of a deleted room is
// told that it left.
func (f *feed) controlFrame(c *channels.Control) (*sentFrame, error) {
	changes := map[string]any{}
	switch c.Kind {
	case channels.MemberJoined:
		return eventFrame(eventJoin, memberEvent{string(c.Channel), agents.ShortID(c.Agent)}), nil
	case channels.MemberLeft:
		return eventFrame(eventLeave, memberEvent{string(c.Channel), agents.ShortID(c.Agent)}), nil
	case channels.ChannelDeleted:
		return eventFrame(eventLeave, memberEvent{string(c.Channel), agents.ShortID(f.who.agent)}), nil
	case channels.MemberRoleChanged:
		changes["roles"] = map[string]string{agents.ShortID(c.Agent): wireRole(c.Role)}
	case channels.ChannelClosed:
		changes["closed"] = true
	case channels.ChannelUpdated:
		for _, one := range c.Changes {
			name := one.Name
			if renamed := settingNames[name]; renamed != "" {
				name = renamed
			}
			if one.Name == channel.SettingOverseer {
				changes["overseen_by"] = agents.ShortID(c.By)
				continue
			}
			changes[name] = one.New
			if one.New == nil {
				changes[name] = json.RawMessage("null")
			}
		}
	}
	found, err := f.handler.deps.Channels.Get(f.ctx, f.who.onChannels(), c.Channel)
	if kg.CodeOf(err) == kg.CodeChannelNotFound {
		return nil, nil // it is gone meanwhile
	}
	if err != nil {
		return nil, err
	}
	room, err := f.handler.encodeRoomFor(f.ctx, f.who, found)
	if kg.CodeOf(err) == kg.CodeChannelNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.Kind == channels.ChannelCreated {
		return eventFrame(eventCreated, createdEvent{room}), nil
	}
	return eventFrame(eventUpdated, updatedEvent{room, changes}), nil
}

// signalFrame returns the frame of a signal; nil for one of another protocol, and for the
// agent's own typing.
func (f *feed) signalFrame(s *channels.Signal) *sentFrame {
	from := agents.ShortID(s.From)
	switch {
	case s.Kind == channels.Typing && s.From != f.who.agent:
		return eventFrame(eventTyping, memberEvent{string(s.Channel), from})
	case s.Kind == channels.Reaction:
		var r reaction
		if json.Unmarshal(s.Data, &r) == nil && r.Emoji != "" {
			return eventFrame(eventReaction, reactionEvent{string(s.Channel), string(r.MessageID), from, r.Emoji})
		}
	}
	return nil
}
