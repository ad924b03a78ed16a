package channels

import (
	"context"
	"slices"
	"time"

	"koine/kg"
)

// Bounds on asking.
const (
	DefaultAskTime = 30 * time.Second
	MaxAskTime     = 10 * time.Minute
	// MaxAnswers is how many responses AskAll collects.
	MaxAnswers = MaxRecipients
)

// Question is a request whose responses are waited for.
type Question struct {
	Publication // Interaction is Request when ""
	// Wait is how long; DefaultAskTime when 0, at most MaxAskTime. A request that does
	// not say when it expires does so then.
	Wait time.Duration
}

// Answer is what became of a Question.
type Answer struct {
	Receipt
	// Responses are those to the request that stand, in the order of their sequences.
	Responses []*Message
}

// Ask publishes a request and waits for the first response to it. One that was retracted
// is none: another is waited for. The same question with the same key waits for the
// response to the first one.
//
// Errors: CodeTimeout when none came in time, those who were asked
// are gone or the request was retracted, and CodeChannelClosed when none can come any more, with an Answer that has the request;
// CodeOverloaded when too many ask; the context's; those of Publish and Stream. A
// request whose facts are refused is not published: then there is no error, and no
// response.
func (s *Service) Ask(ctx context.Context, by Caller, q Question) (*Answer, error) {
	a, err := s.askAndCollect(ctx, by, q, func(a *Answer) bool { return len(a.Responses) == 1 })
	if err == nil && a.Message != nil && len(a.Responses) == 0 {
		err = kg.Errorf(kg.CodeTimeout, "nobody responded to the request in time")
	}
	return a, err
}

// AskAll publishes a request and collects the responses to it until the time is up,
// the channel closes, or each recipient has responded. A response that is retracted
// meanwhile does not count. That there is none is no error.
func (s *Service) AskAll(ctx context.Context, by Caller, q Question) (*Answer, error) {
	a, err := s.askAndCollect(ctx, by, q, func(a *Answer) bool {
		from := map[kg.AgentID]bool{}
		for _, m := range a.Responses {
			from[m.Author] = true
		}
		return len(from) == len(a.Message.Recipients) || len(a.Responses) == MaxAnswers
	})
	if kg.CodeOf(err) == kg.CodeChannelClosed && a.Message != nil {
		err = nil // closed while it waited
	}
	return a, err
}

// normalize brings a question into one form.
func (q *Question) normalize(now time.Time) error {
	if q.Interaction == "" {
		q.Interaction = Request
	}
	if q.Interaction != Request {
		return kg.Errorf(kg.CodeInvalid, "one asks with a request").At("messageType")
	}
	if q.Wait == 0 {
		q.Wait = DefaultAskTime
	}
	if q.Wait < 0 || q.Wait > MaxAskTime {
		return errTooMuch("timeout", "one waits for at most %v", MaxAskTime)
	}
	if q.ExpiresAt.IsZero() && q.IdempotencyKey == "" { // with a key it would be another one each time
		q.ExpiresAt = now.Add(q.Wait)
	}
	return nil
}

// askAndCollect publishes a request and gathers responses until it is enough.
func (s *Service) askAndCollect(ctx context.Context, by Caller, q Question, enough func(*Answer) bool) (*Answer, error) {
	if err := q.normalize(s.options.Clock()); err != nil {
		return nil, err
	}
	if s.pendingAsks.Add(1) > int64(s.options.MaxPendingAsks) {
		s.pendingAsks.Add(-1)
		e := kg.Errorf(kg.CodeOverloaded, "%d requests wait for responses already", s.options.MaxPendingAsks)
		e.RetryAfter = time.Second
		return nil, e
	}
	defer s.pendingAsks.Add(-1)
	receipt, err := s.Publish(ctx, by, q.Publication)
	if err != nil || receipt.Message == nil {
		return &Answer{Receipt: *receiptOrZero(receipt)}, err
	}
	a := &Answer{Receipt: *receipt}
	waiting, cancel := context.WithTimeout(ctx, q.Wait)
	defer cancel()
	// What comes behind the request is all there is to wait for, so that a stream from
	// there on misses nothing, however late it begins.
	stream, err := s.Stream(waiting, by, receipt.Message.Channel, &receipt.Message.Sequence)
	if err == nil {
		defer stream.Close()
		for m, failed := range stream.Messages() {
			if err = failed; err != nil {
				break
			}
			if m.Retracts != "" {
				a.Responses = slices.DeleteFunc(a.Responses, func(r *Message) bool { return r.ID == m.Retracts })
			}
			if m.Interaction == Response && m.Correlation == receipt.Message.ID && m.Withheld != Retracted {
				if a.Responses = append(a.Responses, m); enough(a) {
					return a, nil
				}
			}
			if m.ContentType == Notice || m.Retracts == receipt.Message.ID { // perhaps those who were asked have gone
				now, err := s.Message(waiting, by, receipt.Message.ID)
				if err == nil && (now.DeadlinePassed || now.Withheld == Retracted) {
					return a, nil
				}
			}
		}
	}
	if ctx.Err() == nil && waiting.Err() != nil {
		err = nil // the time is up
	} else if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return a, err
}

func receiptOrZero(r *Receipt) *Receipt {
	if r == nil {
		return new(Receipt)
	}
	return r
}
