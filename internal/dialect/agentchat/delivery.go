package agentchat

import (
	"context"
	"encoding/json"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/plainjson"
)

// replay writes the messages of a room after a sequence, at the pace of the client, and
// remembers the last one, so that the feed does not repeat it. A room that the agent
// cannot read any more is reported as an error frame and skipped.
func (s *socket) replay(ctx context.Context, who *requester, id channel.ID, after int64) error {
	s.deliverMu.Lock()
	defer s.deliverMu.Unlock()
	for {
		since := after
		page, end, more, err := s.handler.deps.Channels.HistoryPage(ctx, who.onChannels(), id, channels.HistoryQuery{SinceSequence: &since, PageSize: channels.MaxPage})
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return s.queue.pushWaiting(ctx, plainjson.MustEncode(s.handler.errorOf(who.Caller, err)))
		}
		for _, m := range page {
			raw, err := encodeMessageFrame(m)
			if err != nil {
				return err
			}
			if err := s.queue.pushWaiting(ctx, raw); err != nil {
				return err
			}
			after = m.Sequence
		}
		if s.last == nil {
			s.last = map[channel.ID]int64{}
		}
		s.last[id] = after
		if !more {
			return nil
		}
		after = end
	}
}

// deliver queues a frame of the feed, unless a resumption has written its message already.
func (s *socket) deliver(frame json.RawMessage, m *message.Message) error {
	s.deliverMu.Lock()
	defer s.deliverMu.Unlock()
	if m != nil {
		if last, resumed := s.last[m.Channel]; resumed {
			if m.Sequence <= last {
				return nil
			}
			delete(s.last, m.Channel)
		}
	}
	return s.queue.push(frame)
}

// send queues a frame.
func (s *socket) send(frame any) error {
	raw, err := plainjson.Encode(frame)
	if err != nil {
		return err
	}
	return s.queue.push(raw)
}

// writeQueued writes the queued frames.
func (s *socket) writeQueued() error {
	for {
		frame, ok := s.queue.pop()
		if !ok {
			return nil
		}
		if err := s.conn.Write(frame); err != nil {
			return err
		}
	}
}

// pingGuest sends ping frames, which guests answer with pong.
func (s *socket) pingGuest() error {
	ticker := time.NewTicker(s.handler.options.PingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.conn.Context().Done():
			return nil
		case <-ticker.C:
		}
		if err := s.send(&sentFrame{Type: framePing}); err != nil {
			return err
		}
	}
}
