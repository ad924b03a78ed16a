package channels

import (
	"context"
	"time"

	"koine/channels/message"
)

// Patient are options with another pause between two looks at what is due.
func Patient(o Options, pause time.Duration) Options {
	o.pause = pause
	return o
}

// Due is how many messages are known to expire: they come to be known a little after
// they were published.
func (s *Service) Due() int { return s.expiry.Queued() }

// StopExpiry stops all writes about expiry.
func (s *Service) StopExpiry() { s.expiry.Close() }

// RepliesTo are the sequences of the replies to a message that Replies looks at.
func (s *Service) RepliesTo(ctx context.Context, by Caller, id message.ID) ([]int64, error) {
	snapshot, p, err := s.locateMessage(ctx, by, id)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	return repliesTo(snapshot, p.channel, id)
}

// MaxLookedAt is maxLookedAt.
const MaxLookedAt = maxLookedAt
