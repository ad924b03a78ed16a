package channels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"koine/kg"
)

// MaxReasonRunes bounds why a message is taken back.
const MaxReasonRunes = 1024

// Retraction takes a message back.
type Retraction struct {
	Channel ChannelID
	Message MessageID
	Reason  string
	// WithdrawFacts also withdraws the assertions that were made with the message, as
	// far as they stand as they were made: from the channel's own facts, and from where
	// else the caller may write. That is so also where another message said the same of
	// the same source later: it asserted nothing, and the store knows of no such thing.
	WithdrawFacts bool
	// DryRun tells what would be withdrawn, and changes nothing.
	DryRun bool
}

// RetractionReceipt is the answer to a Retraction.
type RetractionReceipt struct {
	Receipt
	// Withdrawn are the assertions that went, or would go, each as the patch that
	// takes it away.
	Withdrawn []kg.Patch
	// Kept counts those that stand as they were made and stay: the caller may not read
	// them, or not write where they are. In the channel's own facts that is so only where
	// the withdrawing waits for review, since a proposal is made in its author's name.
	Kept int
	// WithdrawnProposal is the proposal that the facts of the message waited in: it was, or would
	// be, withdrawn with the message. "" where none waited.
	WithdrawnProposal string
	// Proposal is that in which the withdrawing waits for review, also where it was asked
	// for before and waits still. "" where none does.
	Proposal string
	DryRun   bool
}

// Retract takes a message back: a message of its own says so, and the content of
// the first one goes from the present. Its author may, and the channel's owners and
// moderators. If its facts still wait in a proposal, that is withdrawn with it. To
// retract again is to be told of the first time; WithdrawFacts then withdraws what
// still stands. Where that waits for review already, it is not proposed again.
//
// Errors: CodeNotFound for a message that is not in the channel;
// CodePermissionDenied; CodeRevisionGone where facts are to be withdrawn of which
// the log no longer knows; those of Publish.
func (s *Service) Retract(ctx context.Context, by Caller, r Retraction) (out *RetractionReceipt, err error) {
	for range maxRetractions {
		if out, err = s.retractOnce(ctx, by, r); !errors.Is(err, errMeanwhile) {
			return out, err
		}
	}
	return nil, kg.Errorf(kg.CodeOverloaded, "too much becomes of the message at one time")
}

// maxRetractions bounds how often a retraction is begun anew because something became
// of the message between.
const maxRetractions = 4

// errMeanwhile tells that the message is not what the retraction was made ready for.
var errMeanwhile = errors.New("something became of the message")

func (s *Service) retractOnce(ctx context.Context, by Caller, r Retraction) (*RetractionReceipt, error) {
	agent, _, err := s.requireReadable(by, r.Channel)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(r.Reason) {
		return nil, kg.Errorf(kg.CodeInvalid, "a reason is UTF-8").At("reason")
	}
	if n := utf8.RuneCountInString(r.Reason); n > MaxReasonRunes {
		return nil, errTooMuch("reason", "a reason of %d characters is longer than the %d that it may have", n, MaxReasonRunes)
	}
	target, err := s.findMessage(ctx, r.Channel, r.Message)
	if err != nil {
		return nil, err
	}
	var facts []assertedFact
	var applied []kg.Revision
	if r.WithdrawFacts {
		if facts, applied, err = s.factsOf(ctx, target); err != nil {
			return nil, err
		}
	}
	text := "A message was retracted."
	if r.Reason != "" {
		text = r.Reason
	}
	part, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		return nil, err
	}
	ready := s.newPublishOp
	if r.DryRun {
		ready = s.newDryRunOp
	}
	pub, err := ready(by, Publication{Channel: r.Channel, Parts: []json.RawMessage{part}})
	if err != nil {
		return nil, err
	}
	t := &retractOp{publishOp: pub, service: s, agent: agent, target: target, facts: facts, applied: applied, withdraw: r.WithdrawFacts}
	pub.extra = t.markRetracted
	pub.message.Retracts = target.ID
	if err := pub.addStatement(statement{propRetracts, target.ID.Entity()}); err != nil {
		return nil, err
	}
	meta := by.updateMeta("channels/retract")
	meta.MessageID, meta.DryRun = string(cmp.Or(target.RetractedBy, pub.message.ID)), r.DryRun
	if r.WithdrawFacts {
		meta.WhenHeld = t.publishWithoutFacts
	}
	receipt, err := s.store.Update(ctx, meta, t.applyRetraction)
	if kg.CodeOf(err) == kg.CodeChannelClosed && len(facts) > 0 && target.Author == agent {
		e := *kg.AsError(err)
		e.Hint = fmt.Sprintf("what the message asserted can be undone: revert the commit of revision %d (revertCommit)", facts[0].revision)
		err = &e
	}
	if err != nil {
		return nil, err
	}
	out := &RetractionReceipt{Receipt: *pub.newReceipt(receipt), Withdrawn: t.withdrawn, Kept: t.kept, WithdrawnProposal: t.withdrawnProposal, Proposal: receipt.ProposalID, DryRun: r.DryRun}
	if out.Replayed && len(t.withdrawn) > 0 {
		out.Verdict = receipt.Verdict
	}
	if out.Affected = 0; receipt.Verdict.Outcome == kg.Accepted {
		out.Affected = len(t.withdrawn)
	}
	if r.DryRun {
		out.Message = nil
	}
	return out, nil
}

// retractOp is a retraction on its way.
type retractOp struct {
	*publishOp
	service *Service
	agent   kg.AgentID
	target  *Message // as it was
	facts   []assertedFact
	applied []kg.Revision // of its proposal, with these facts

	withdraw          bool
	withdrawn         []kg.Patch
	onBehalf          []kg.Patch // those of them that the caller could not write itself
	kept              int
	withdrawnProposal string // the proposal that went with it
}

// applyRetraction retracts the message and withdraws its facts.
func (t *retractOp) applyRetraction(tx *kg.Tx) error {
	t.withdrawn, t.onBehalf, t.kept, t.withdrawnProposal = nil, nil, 0, ""
	if _, err := t.publishMessage(tx, ""); err != nil {
		return err
	}
	for _, f := range t.facts {
		stands, err := f.isAsserted(tx.MatchOwn)
		if err != nil {
			return err
		}
		seen, err := f.isAsserted(tx.Match)
		switch {
		case err != nil:
			return err
		case !stands: // withdrawn or said anew since
		case !seen:
			t.kept++
		case tx.MayWrite(f.quad.Graph) == nil:
			t.withdrawn = append(t.withdrawn, f.removalPatch())
		case f.quad.Graph == t.message.Channel.FactsGraph(): // whose message goes, its facts there go too
			t.onBehalf = append(t.onBehalf, f.removalPatch())
		default:
			t.kept++
		}
	}
	for _, p := range t.withdrawn {
		if err := tx.Apply(p); err != nil {
			return err
		}
	}
	for _, p := range t.onBehalf {
		if err := tx.ApplyOwn(p); err != nil {
			return err
		}
	}
	t.withdrawn = append(t.withdrawn, t.onBehalf...)
	return nil
}

// publishWithoutFacts retracts the message while the withdrawing of its facts waits in a
// proposal. What the caller could not write itself it cannot propose: that stays.
func (t *retractOp) publishWithoutFacts(tx *kg.Tx, proposal string) error {
	t.kept += len(t.onBehalf)
	t.withdrawn, t.onBehalf = t.withdrawn[:len(t.withdrawn)-len(t.onBehalf)], nil
	return t.publishOp.publishWithoutFacts(tx, proposal)
}

// markRetracted takes the content of the message away, in the commit of the one that says
// so. It looks at the message as it stands there.
func (t *retractOp) markRetracted(tx *kg.Tx, by *Message) (again *Message, err error) {
	id := t.message.Channel
	target, err := readMessage(tx.MatchOwn, id, t.target.ID)
	if err != nil {
		return nil, err
	}
	if target == nil {
		return nil, errNoMessage()
	}
	if target.Author != t.agent && !Moderators.includes(t.service.table.get(id).roles[t.agent], false) {
		return nil, errDenied("only its author, and owners and moderators of the channel retract a message")
	}
	if t.withdraw {
		applied, err := proposalRevisions(tx.MatchOwn, target.ProposalID)
		if err != nil {
			return nil, err
		}
		if target.RetractedBy != t.target.RetractedBy || !slices.Equal(applied, t.applied) {
			return nil, errMeanwhile
		}
	}
	if target.Retracts != "" {
		return nil, kg.Errorf(kg.CodeInvalid, "a retraction is not retracted").At("messageId")
	}
	if target.ProposalID != "" {
		taken, err := t.service.options.WithdrawProposal(tx, target.ProposalID, "its message was retracted")
		if err != nil {
			return nil, err
		}
		if t.withdrawnProposal = ""; taken {
			t.withdrawnProposal = target.ProposalID
		}
	}
	if target.RetractedBy != "" {
		return readMessage(tx.MatchOwn, id, target.RetractedBy)
	}
	if err := removePayload(tx, id, target.ID); err != nil {
		return nil, err
	}
	return nil, tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: target.ID.Entity(), Predicate: propRetractedBy, Object: by.ID.Entity(), Graph: id.MessagesGraph()}})
}

// assertedFact is an assertion as a message made it.
type assertedFact struct {
	quad     kg.Quad
	source   kg.AgentID
	revision kg.Revision
}

// removalPatch is the patch that takes the assertion away.
func (f *assertedFact) removalPatch() kg.Patch {
	return kg.Patch{Op: kg.Remove, Quad: f.quad, Source: f.source}
}

// isAsserted tells whether the assertion stands as it was made, for who reads so.
func (f *assertedFact) isAsserted(match matcher) (bool, error) {
	for st, err := range match(kg.Pattern(f.quad)) {
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(st.Assertions, func(a kg.Assertion) bool { return a.Source == f.source && a.Revision == f.revision }), nil
	}
	return false, nil
}

// factsOf lists the assertions that were made with a message, or when the proposal
// was applied in which they waited: in which revision that was, none while it was not.
func (s *Service) factsOf(ctx context.Context, m *Message) (out []assertedFact, applied []kg.Revision, err error) {
	revisions := []kg.Revision{m.Revision}
	if m.ProposalID != "" {
		snapshot, err := s.systemView(ctx)
		if err != nil {
			return nil, nil, err
		}
		applied, err = proposalRevisions(snapshot.Match, m.ProposalID)
		snapshot.Close()
		if err != nil {
			return nil, nil, err
		}
		revisions = applied
	}
	for _, r := range revisions {
		c, err := s.store.Commit(ctx, kg.SystemPrincipal(), r)
		if err != nil {
			return nil, nil, err
		}
		for i := range c.Changes {
			if ch := &c.Changes[i]; ch.Op == kg.Add && !kg.IsOwnGraph(ch.Quad.Graph) {
				out = append(out, assertedFact{ch.Quad, ch.Assertion.Source, r})
			}
		}
	}
	if len(out) > kg.MaxPatches {
		return nil, nil, errTooMuch("withdrawFacts", "the message asserts more than the %d statements that one update withdraws", kg.MaxPatches)
	}
	return out, applied, nil
}

// proposalRevisions is the revision in which a proposal was applied, none while it was not.
func proposalRevisions(match matcher, proposal string) (out []kg.Revision, err error) {
	if proposal == "" {
		return nil, nil
	}
	graph := kg.IRI(kg.ProposalGraphPrefix + proposal)
	for st, err := range match(kg.Pattern{Subject: graph, Predicate: vocabTerm("appliedIn"), Graph: graph}) {
		if err != nil {
			return nil, err
		}
		out = append(out, kg.Revision(integerValue(st.Object)))
	}
	return out, nil
}

// findMessage gives a message of the channel, whoever may read it.
func (s *Service) findMessage(ctx context.Context, id ChannelID, m MessageID) (*Message, error) {
	snapshot, err := s.systemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	found, err := readMessage(snapshot.Match, id, m)
	if err == nil && found == nil {
		err = errNoMessage()
	}
	return found, err
}

func errNoMessage() *kg.Error {
	return kg.Errorf(kg.CodeNotFound, "there is no such message in the channel").At("messageId")
}
