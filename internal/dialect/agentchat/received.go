package agentchat

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/coder/websocket"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/caller"
	"koine/internal/rest"
	"koine/internal/throttle"
	"koine/kg"
)

// answerFrame executes a frame and queues the answer. Its error ends the socket.
func (s *socket) answerFrame(kind websocket.MessageType, raw []byte, taken *throttle.Received) error {
	defer taken.Release()
	s.silence.Reset(s.handler.options.Silence)
	var f received
	var err error
	if kind != websocket.MessageText {
		err = kg.Errorf(kg.CodeInvalid, "a frame must be text")
	} else {
		err = rest.Decode(raw, &f)
	}
	var answer *sentFrame
	if err == nil {
		answer, err = s.executeFrame(&f)
	}
	if s.conn.Context().Err() != nil {
		return nil // it has ended
	}
	if err != nil {
		out := s.handler.errorOf(s.currentCaller(), err)
		out.RequestID = f.RequestID
		return s.send(out)
	}
	if answer == nil {
		return nil
	}
	answer.RequestID = f.RequestID
	return s.send(answer)
}

// executeFrame executes a frame and returns the answer.
func (s *socket) executeFrame(f *received) (*sentFrame, error) {
	who := s.requester()
	if f.Type == frameAuth || f.Type == frameJoin && f.Key != "" && who == nil {
		return nil, s.authenticate(who, f)
	}
	if who == nil {
		err := errNoAuthFrame()
		s.endWith(s.currentCaller(), err)
		return nil, err
	}
	h, ctx := s.handler, caller.With(s.conn.Context(), who.Caller)
	id := channel.ID(f.RoomID)
	switch f.Type {
	case framePong: // the answer of a guest
		return nil, nil
	case framePing:
		return &sentFrame{Type: framePong, ServerTime: h.now()}, nil
	case frameJoin:
		room, err := h.join(ctx, who, id)
		return &sentFrame{Type: frameJoined, Room: room}, err
	case frameLeave:
		return &sentFrame{Type: frameLeft, RoomID: f.RoomID}, h.deps.Channels.Members().Leave(ctx, who.onChannels(), id)
	case frameMessage:
		return s.publish(ctx, who, f)
	case frameTyping:
		return nil, h.deps.Channels.Signal(ctx, who.onChannels(), id, channels.Typing, nil)
	case frameReaction:
		return nil, s.react(ctx, who, f)
	case frameStatus:
		return s.setStatus(ctx, who, f)
	case frameSubscribe:
		return s.subscribe(ctx, who, f)
	}
	return nil, kg.Errorf(kg.CodeInvalid, "must be auth, join, leave, message, ping, typing, reaction, status or subscribe").At("type")
}

func (s *socket) publish(ctx context.Context, who *requester, f *received) (*sentFrame, error) {
	d := messageDraft{Content: f.Content, Type: f.MessageType, Metadata: f.Metadata, Tags: f.Tags}
	p, err := d.toPublication(channel.ID(f.RoomID))
	if err != nil {
		if e := *kg.AsError(err); e.Field == "type" {
			e.Field = "message_type"
			return nil, &e
		}
		return nil, err
	}
	p.IdempotencyKey = f.IdempotencyKey
	m, err := s.handler.publish(ctx, who, p)
	if err != nil || f.RequestID == nil {
		return nil, err
	}
	return &sentFrame{Type: frameAck, Message: encodeMessage(m)}, nil
}

// reaction is the data of the signal of a reaction.
type reaction struct {
	MessageID message.ID `json:"messageId"`
	Emoji     string     `json:"emoji"`
}

func (s *socket) react(ctx context.Context, who *requester, f *received) error {
	switch {
	case f.Emoji == "":
		return kg.Errorf(kg.CodeInvalid, "is required").At("emoji")
	case !utf8.ValidString(f.Emoji):
		return kg.Errorf(kg.CodeInvalid, "must be UTF-8").At("emoji")
	case len(f.Emoji) > MaxEmojiBytes:
		return kg.Errorf(kg.CodeLimitExceeded, "has more than %d bytes", MaxEmojiBytes).At("emoji")
	}
	data, err := json.Marshal(reaction{message.ID(f.MessageID), f.Emoji})
	if err != nil {
		return err
	}
	return s.handler.deps.Channels.Signal(ctx, who.onChannels(), channel.ID(f.RoomID), channels.Reaction, data)
}

func (s *socket) setStatus(ctx context.Context, who *requester, f *received) (*sentFrame, error) {
	if err := s.handler.setStatus(ctx, who, f.Status); err != nil || f.RequestID == nil {
		return nil, err
	}
	return &sentFrame{Type: frameStatus, Status: f.Status}, nil
}

// subscribe writes again the messages of a room after a sequence.
func (s *socket) subscribe(ctx context.Context, who *requester, f *received) (*sentFrame, error) {
	if f.After == nil || *f.After < 0 {
		return nil, kg.Errorf(kg.CodeInvalid, "must be a sequence").At("after")
	}
	id := channel.ID(f.RoomID)
	c, err := s.handler.deps.Channels.Get(ctx, who.onChannels(), id)
	if err != nil {
		return nil, err
	}
	if c.MemberRole(who.agent) == "" {
		return nil, kg.Errorf(kg.CodePermissionDenied, "only a member of the room can do this")
	}
	if f.RequestID != nil {
		if err := s.send(&sentFrame{Type: frameSubscribed, RequestID: f.RequestID, RoomID: f.RoomID, After: f.After}); err != nil {
			return nil, err
		}
	}
	return nil, s.replay(ctx, who, id, *f.After)
}
