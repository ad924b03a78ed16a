package receipts

import (
	"context"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/access"
	"koine/channels/message"
	"koine/kg"
)

// Summary is the state of a message for protocols that show one state: at its only
// recipient, otherwise at the caller; for the author of a message with several recipients
// it is Read when all of them have read it, and Delivered before.
type Summary struct {
	State State
	// ReadAt is when the message was read, if State is Read: by the last of them.
	ReadAt time.Time
}

// Summaries returns the states of messages of a channel that the caller has read from it.
//
// Errors: CodeChannelNotFound.
func (s *Receipts) Summaries(ctx context.Context, by access.Caller, id channel.ID, list []*message.Message) ([]Summary, error) {
	agent, e, snapshot, err := s.journal.ReadableView(ctx, by, id)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	over, err := s.journal.ClosedInSnapshot(snapshot, e)
	if err != nil {
		return nil, err
	}
	times := s.newReadTimes(ctx)
	defer times.close()
	known := map[kg.AgentID]*markers{}
	stateAt := func(at kg.AgentID, m *message.Message) (sum Summary, err error) {
		k := known[at]
		if k == nil {
			if k, err = MarkersOf(snapshot.Match, id, at); err != nil {
				return sum, err
			}
			known[at] = k
		}
		seen := *m
		seen.DeadlinePassed = seen.DeadlinePassed || over || m.HasExpired(s.now())
		if sum.State, err = k.ReceiptState(&seen); err == nil && sum.State == Read {
			sum.ReadAt, err = times.timeOf(k, m)
		}
		return sum, err
	}
	out := make([]Summary, len(list))
	for i, m := range list {
		agents := m.Recipients
		switch {
		case len(agents) == 1 || len(agents) > 1 && agent == m.Author:
		case agent != m.Author:
			agents = []kg.AgentID{agent}
		default:
			for j := range e.Members {
				if e.Members[j].Agent != m.Author {
					agents = append(agents, e.Members[j].Agent)
				}
			}
		}
		sum := Summary{State: Delivered}
		for j, at := range agents {
			one, err := stateAt(at, m)
			if err != nil {
				return nil, err
			}
			if one.State != Read {
				if sum = (Summary{State: Delivered}); one.State == Expired {
					sum.State = Expired
				}
				break
			}
			if j == 0 || one.ReadAt.After(sum.ReadAt) {
				sum = one
			}
		}
		out[i] = sum
	}
	return out, nil
}
