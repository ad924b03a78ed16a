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
	return s.publishTo(ctx, by, p, nil)
}

// publishTo publishes in a channel that is there, or in one that is to be made.
func (s *Service) publishTo(ctx context.Context, by Caller, p Publication, make *Channel) (*Receipt, error) {
	pub, err := s.newPublishOp(by, p)
	if err != nil {
		return nil, err
	}
	pub.newChannel = make
	if coming := pub.pendingEntry(); coming != nil {
		s.table.pending.Store(coming.ID, coming)
		defer s.table.pending.CompareAndDelete(coming.ID, coming)
	}
	meta := by.updateMeta("channels/publish")
	meta.MessageID, meta.Justification, meta.TaskID, meta.SessionID = string(pub.message.ID), p.Justification, p.TaskID, p.SessionID
	if len(p.Patches) > 0 {
		meta.WhenHeld = pub.publishWithoutFacts
	}
	receipt, err := s.store.Update(ctx, meta, pub.publishWithFacts)
	if err != nil {
		return nil, err
	}
	return pub.newReceipt(receipt), nil
}

// newReceipt is what is answered, of what the store answered.
func (p *publishOp) newReceipt(r kg.Receipt) *Receipt {
	out := &Receipt{Message: p.published, Replayed: p.replayed, Verdict: r.Verdict}
	switch {
	case p.replayed:
		out.Verdict = kg.Verdict{}
		if p.published.ProposalID != "" {
			out.Verdict = kg.Verdict{Outcome: kg.Held, Reason: kg.ReasonHeld}
		}
	case r.Verdict.Outcome != kg.Accepted && r.Verdict.Outcome != kg.Held:
		out.Message = nil
	default:
		p.published.Revision = r.Revision
		if !p.dryRun {
			p.service.counter.notePublished(p.published.Channel, p.published.Sequence)
		}
		if r.Verdict.Outcome == kg.Accepted {
			out.Affected = r.Affected - p.ownChanges
		}
	}
	return out
}
