package channels

import (
	"context"

	"koine/kg"
)

// Receipt is the answer to a publication.
type Receipt struct {
	// Message is the one that was published, or the first one with the same key;
	// nil when the facts were refused, and with them the message.
	Message *Message
	// Replayed tells that it is the first one.
	Replayed bool
	// Verdict is that on the facts. Where it is kg.Held, the message was published
	// and Message.ProposalID says where the facts wait.
	Verdict kg.Verdict
	// Affected counts the changes that the facts made.
	Affected int
}

// Publish appends a message to a channel. Members may.
//
// Errors: CodeChannelNotFound; CodePermissionDenied for who may read only;
// CodeChannelClosed; CodeIdempotencyConflict for a key that was used for another
// message; CodeLimitExceeded past a bound; CodeRateLimited past one in a minute;
// CodeNotMember and CodeNoRecipient for an address that nobody in the channel has;
// CodeMessageExpired for a response to a request that has expired; those of
// kg.Tx.Apply for the patches.
func (s *Service) Publish(ctx context.Context, by Caller, p Publication) (*Receipt, error) {
	return s.publishIn(ctx, by, p, nil)
}

// publishIn publishes in a channel that is there, or in one that is to be made.
func (s *Service) publishIn(ctx context.Context, by Caller, p Publication, make *Channel) (*Receipt, error) {
	pub, err := s.publishing(by, p)
	if err != nil {
		return nil, err
	}
	pub.make = make
	if coming := pub.coming(); coming != nil {
		s.table.coming.Store(coming.ID, coming)
		defer s.table.coming.CompareAndDelete(coming.ID, coming)
	}
	meta := by.meta("channels/publish")
	meta.MessageID, meta.Justification, meta.TaskID, meta.SessionID = string(pub.message.ID), p.Justification, p.TaskID, p.SessionID
	if len(p.Patches) > 0 {
		meta.WhenHeld = pub.withoutFacts
	}
	receipt, err := s.store.Update(ctx, meta, pub.withFacts)
	if err != nil {
		return nil, err
	}
	return pub.receipt(receipt), nil
}

// receipt is what is answered, of what the store answered.
func (p *publishing) receipt(r kg.Receipt) *Receipt {
	out := &Receipt{Message: p.done, Replayed: p.replayed, Verdict: r.Verdict}
	switch {
	case p.replayed:
		out.Verdict = kg.Verdict{}
		if p.done.ProposalID != "" {
			out.Verdict = kg.Verdict{Outcome: kg.Held, Reason: kg.ReasonHeld}
		}
	case r.Verdict.Outcome != kg.Accepted && r.Verdict.Outcome != kg.Held:
		out.Message = nil
	default:
		p.done.Revision = r.Revision
		if !p.dry {
			p.service.counting.published(p.done.Channel, p.done.Sequence)
		}
		if r.Verdict.Outcome == kg.Accepted {
			out.Affected = r.Affected - p.own
		}
	}
	return out
}
