package channels

import (
	"context"
	"koine/channels/message"
	"time"
)

// Patient returns options with another pause between two checks for due messages.
func Patient(o Options, pause time.Duration) Options {
	o.pause = pause
	return o
}

// Due is how many messages are known to expire: they come to be known a little after
// they were published.
func (s *Service) Due() int {
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	return s.expiry.queue.Len()
}

// StopExpiry stops all writes about expiry.
func (s *Service) StopExpiry() { s.expiry.jobs.Stop() }

// RepliesTo are the sequences of the replies to a message that Replies looks at.
func (s *Service) RepliesTo(ctx context.Context, by Caller, id message.ID) ([]int64, error) {
	snapshot, p, err := s.locateMessage(ctx, by, id)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return repliesTo(snapshot, p.channel, id)
}
