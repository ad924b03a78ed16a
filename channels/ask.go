package channels

import (
	"context"
	"slices"
	"time"

	"koine/channels/internal/check"
	"koine/channels/message"
	"koine/kg"
)

// Limits of Ask and AskAll.
const (
	DefaultAskTime = 30 * time.Second
	MaxAskTime     = 10 * time.Minute
	// MaxAnswers is the maximum number of responses that AskAll collects.
	MaxAnswers = message.MaxRecipients
)

// Question is a request with a wait for its responses.
type Question struct {
	Publication // Interaction defaults to Request
	// Wait is the maximum wait: DefaultAskTime if 0, at most MaxAskTime. A request
	// without ExpiresAt expires when the wait ends.
	Wait time.Duration
}

// Answer is the result of a Question.
type Answer struct {
	Receipt
	// Responses are the responses that were not retracted, in sequence order.
	Responses []*message.Message
}

// Complete reports whether every recipient of the published request has responded, or there
// are MaxAnswers responses.
func (a *Answer) Complete() bool {
	from := map[kg.AgentID]bool{}
	for _, m := range a.Responses {
		from[m.Author] = true
	}
	return len(from) == len(a.Message.Recipients) || len(a.Responses) == MaxAnswers
}

// Ask publishes a request and waits for the first response to it. A retracted response
// does not count. A repeated question with the same idempotency key waits for a
// response to the first request.
//
// Errors: CodeTimeout if no response arrives in time, if all recipients have been
// removed, or if the request was retracted; CodeChannelClosed if the channel closes
// first. Both come with an Answer that holds the request. CodeOverloaded if too many
// calls wait; the context's error; the errors of Publish and Stream. If the facts of
// the request are rejected, the request is not published: Ask returns no error and no
// response.
func (s *Service) Ask(ctx context.Context, by Caller, q Question) (*Answer, error) {
	a, err := s.askAndCollect(ctx, by, q, func(a *Answer) bool { return len(a.Responses) == 1 })
	if err == nil && a.Message != nil && len(a.Responses) == 0 {
		err = kg.Errorf(kg.CodeTimeout, "no response to the request arrived in time")
	}
	return a, err
}

// AskAll publishes a request and collects responses until the wait ends, the channel
// closes, or every recipient has responded. A response that is retracted meanwhile does
// not count. An empty result is not an error.
func (s *Service) AskAll(ctx context.Context, by Caller, q Question) (*Answer, error) {
	a, err := s.askAndCollect(ctx, by, q, (*Answer).Complete)
	if kg.CodeOf(err) == kg.CodeChannelClosed && a.Message != nil {
		err = nil // closed while it waited
	}
	return a, err
}

// normalize validates the question and fills in defaults.
func (q *Question) normalize(now time.Time) error {
	if q.Interaction == "" {
		q.Interaction = message.Request
	}
	if q.Interaction != message.Request {
		return kg.Errorf(kg.CodeInvalid, "messageType must be request").At("messageType")
	}
	if q.Wait == 0 {
		q.Wait = DefaultAskTime
	}
	if q.Wait < 0 || q.Wait > MaxAskTime {
		return check.TooMuch("timeout", "timeout must be between 0 and %v", MaxAskTime)
	}
	if q.ExpiresAt.IsZero() && q.IdempotencyKey == "" { // with a key, a varying time would make each repetition a different request
		q.ExpiresAt = now.Add(q.Wait)
	}
	return nil
}

// askAndCollect publishes a request and collects responses until enough reports true.
func (s *Service) askAndCollect(ctx context.Context, by Caller, q Question, enough func(*Answer) bool) (*Answer, error) {
	if err := q.normalize(s.options.Clock()); err != nil {
		return nil, err
	}
	if s.pendingAsks.Add(1) > int64(s.options.MaxPendingAsks) {
		s.pendingAsks.Add(-1)
		e := kg.Errorf(kg.CodeOverloaded, "%d requests are waiting for responses", s.options.MaxPendingAsks)
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
	// Responses follow the request in the channel, so a stream that starts at the
	// request's sequence misses none, however late it starts.
	stream, err := s.Stream(waiting, by, receipt.Message.Channel, &receipt.Message.Sequence)
	if err == nil {
		defer stream.Close()
		for m, failed := range stream.Messages() {
			if err = failed; err != nil {
				break
			}
			if m.Retracts != "" {
				a.Responses = slices.DeleteFunc(a.Responses, func(r *message.Message) bool { return r.ID == m.Retracts })
			}
			if m.Interaction == message.Response && m.Correlation == receipt.Message.ID && m.Withheld != message.Retracted {
				if a.Responses = append(a.Responses, m); enough(a) {
					return a, nil
				}
			}
			if m.ContentType == message.Notice || m.Retracts == receipt.Message.ID { // a recipient may have been removed
				now, err := s.Message(waiting, by, receipt.Message.ID)
				if err == nil && (now.DeadlinePassed || now.Withheld == message.Retracted) {
					return a, nil
				}
			}
		}
	}
	if ctx.Err() == nil && waiting.Err() != nil {
		err = nil // the wait ended
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
