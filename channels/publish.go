package channels

import (
	"context"

	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// Receipt is the result of a publication.
type Receipt struct {
	// Message is the published message, or the earlier one with the same key. It is nil
	// if the facts were rejected, which also rejects the message.
	Message *message.Message
	// Replayed means that Message is the earlier one.
	Replayed bool
	// Verdict is the verdict on the facts. If it is kg.Held, the message was published,
	// and Message.ProposalID names the proposal that holds the facts.
	Verdict kg.Verdict
	// Affected is the number of changes made by the facts.
	Affected int
}

// Publish appends a message to a channel. It requires the right Rights.Post.
//
// Errors: CodeChannelNotFound; CodePermissionDenied; CodeChannelClosed;
// CodeIdempotencyConflict for a key that was used for a different message;
// CodeLimitExceeded; CodeRateLimited; CodeNotMember and CodeNoRecipient for an address
// that no agent in the channel has; CodeMessageExpired for a response to an expired
// request; those of kg.Tx.Apply for the patches.
func (s *Service) Publish(ctx context.Context, by Caller, p Publication) (*Receipt, error) {
	return s.publishTo(ctx, by, p, nil)
}

// publishTo publishes in an existing channel or, if make is not nil, in a channel that
// is created with the message.
func (s *Service) publishTo(ctx context.Context, by Caller, p Publication, make *channel.Channel) (*Receipt, error) {
	pub, err := s.newPublishOp(by, p)
	if err != nil {
		return nil, err
	}
	pub.newChannel = make
	if coming := pub.pendingEntry(); coming != nil {
		defer s.table.AddPending(coming)()
	}
	meta := by.UpdateMeta("channels/publish")
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

// newReceipt converts the receipt of the store.
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
			p.service.counter.NotePublished(p.published.Channel, p.published.Sequence)
		}
		if r.Verdict.Outcome == kg.Accepted {
			out.Affected = r.Affected - p.ownChanges
		}
	}
	return out
}
