package proposals

import (
	"cmp"
	"context"

	"koine/internal/systemgraph"
	"koine/kg"
)

// Messages publishes messages that were held before they were published
// (channels.Held). A proposal keeps who reviews a message, and its facts as patches;
// the content stays with Messages.
type Messages interface {
	// MayReview reports whether a principal other than the author may see the message.
	// It takes no lock.
	MayReview(p kg.Principal, author kg.AgentID, channel, recipient string) bool
	// PrepareHeld prepares the publication with the author's present rights. publish is
	// called in the commit of the last approval, done after it.
	PrepareHeld(ctx context.Context, author kg.Principal, actor kg.AgentID, channel, message string, facts []kg.Patch) (publish func(*kg.Tx) error, done func(), err error)
	// EndHeld removes the content in the commit that ends the proposal, and tells the
	// author why the message was not published unless why is "".
	EndHeld(tx *kg.Tx, channel, message, proposal string, author kg.AgentID, published bool, why string) error
}

// SetMessages sets what publishes held messages. It must be called before Open.
func (s *Service) SetMessages(m Messages) { s.table.messages = m }

// HoldMessage creates the proposal of a message, in the commit that stores the message
// (channels.HeldReviews). It fails with CodeLimitExceeded if its author, or the server,
// has too many held messages.
func (s *Service) HoldMessage(tx *kg.Tx, h *kg.HeldUpdate, channel, recipient string) (string, error) {
	pieces, err := encodePatches(h.Patches)
	if err != nil {
		return "", err
	}
	if err := s.expireOne(tx); err != nil {
		return "", err
	}
	all, own := s.table.lists.countHeld(h.Meta.Principal.ID, tx.Time())
	switch {
	case own >= s.options.HeldPerAgent:
		e := kg.Errorf(kg.CodeLimitExceeded, "the author has %d messages waiting for review, the limit", own)
		e.Limit, e.Hint = "heldPerAgent", "wait until some are decided, or withdraw some"
		return "", e
	case all >= s.options.HeldMessages:
		e := kg.Errorf(kg.CodeLimitExceeded, "the server has %d messages waiting for review, the limit", all)
		e.Limit, e.Hint = "heldMessages", "retry when some have been decided"
		return "", e
	}
	return s.writeProposal(tx, h, pieces, property{propChannel, channel}, property{propRecipient, recipient})
}

// prepareMessage prepares the publication of the message that the proposal holds;
// publish is nil if it holds none.
func (s *Service) prepareMessage(ctx context.Context, author kg.Principal, p *Proposal) (publish func(*kg.Tx) error, done func(), err error) {
	if p.Channel == "" {
		return nil, func() {}, nil
	}
	if s.table.messages == nil {
		return nil, nil, kg.Errorf(kg.CodeInternal, "proposal %s holds a message, and nothing publishes it", p.ID)
	}
	return s.table.messages.PrepareHeld(ctx, author, p.Actor, p.Channel, p.MessageID, p.Patches)
}

// endMessage ends the hold of the message of a proposal, if it holds one. An author that
// withdraws a message is not told.
func (s *Service) endMessage(tx *kg.Tx, id string, status Status, by kg.AgentID, why string) error {
	if s.table.messages == nil {
		return nil
	}
	for st, err := range tx.MatchOwn(kg.Pattern{Subject: graphOf(id), Predicate: propChannel, Graph: graphOf(id)}) {
		if err != nil {
			return err
		}
		channel := st.Object.Value()
		p, err := readProposal(tx.MatchOwn, id, false)
		if err != nil {
			return err
		}
		if status == Withdrawn && (by == p.Author || by == p.Actor) {
			why = ""
		}
		return s.table.messages.EndHeld(tx, channel, p.MessageID, id, cmp.Or(p.Actor, p.Author), status == Applied, why)
	}
	return nil
}

// maxExpiredAtOnce bounds the proposals that one call of ExpireHeld ends.
const maxExpiredAtOnce = 100

// ExpireHeld records the expiry of proposals in commits of its own, so that the authors
// of held messages are told, and reports whether there may be more
// (channels.HeldReviews).
func (s *Service) ExpireHeld(ctx context.Context) (more bool, err error) {
	for range maxExpiredAtOnce {
		if s.table.lists.firstExpired(s.options.Clock()) == "" {
			return false, nil
		}
		if err := systemgraph.Update(ctx, s.store, kg.Meta{Principal: kg.SystemPrincipal()}, s.expireOne); err != nil {
			return false, err
		}
	}
	return true, nil
}
