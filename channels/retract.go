package channels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/channels/internal/vocab"
	"koine/channels/message"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Retraction is a request to retract a message.
type Retraction struct {
	Channel channel.ID
	Message message.ID
	Reason  string
	// WithdrawFacts also withdraws the assertions made with the message that still
	// stand unchanged, in the channel's own facts and in other graphs that the caller
	// can write. This includes assertions that a later message of the same source
	// repeated: the repetition asserted nothing new, and the store has no record of it.
	WithdrawFacts bool
	// DryRun returns the effect without changing anything.
	DryRun bool
}

// RetractionReceipt is the result of a Retraction.
type RetractionReceipt struct {
	Receipt
	// Withdrawn are the withdrawn assertions, each as the patch that removes it.
	Withdrawn []kg.Patch
	// Kept is the number of assertions that stand unchanged and were not withdrawn,
	// because the caller cannot read them or cannot write their graph. In the channel's
	// own facts this occurs only if the withdrawal awaits review, since a proposal is
	// made in the author's name.
	Kept int
	// WithdrawnProposal is the proposal with the facts of the message, which was
	// withdrawn with it; "" if there was none.
	WithdrawnProposal string
	// Proposal is the proposal in which the withdrawal awaits review, including one
	// made by an earlier call; "" if there is none.
	Proposal string
	DryRun   bool
}

// Retract retracts a message: a new message announces the retraction, and the content
// of the retracted one is removed from the present. It requires the author, an owner or
// a moderator. If the facts of the message still await review, their proposal is
// withdrawn. Retracting again returns the first retraction, and with WithdrawFacts it
// withdraws the facts that still stand, unless their withdrawal already awaits review.
//
// Errors: CodeNotFound if the message is not in the channel; CodePermissionDenied;
// CodeRevisionGone if facts are to be withdrawn and the log no longer has their commit;
// those of Publish.
func (s *Service) Retract(ctx context.Context, by Caller, r Retraction) (out *RetractionReceipt, err error) {
	for range maxRetractions {
		if out, err = s.retractOnce(ctx, by, r); !errors.Is(err, errMeanwhile) {
			return out, err
		}
	}
	return nil, kg.Errorf(kg.CodeOverloaded, "message is being changed concurrently: retry")
}

// maxRetractions bounds the attempts of a retraction if the message changes
// concurrently.
const maxRetractions = 4

// errMeanwhile reports that the message changed since the retraction was prepared.
var errMeanwhile = errors.New("message changed concurrently")

// retractOnce attempts a retraction. It fails with errMeanwhile if the message changes
// concurrently.
func (s *Service) retractOnce(ctx context.Context, by Caller, r Retraction) (*RetractionReceipt, error) {
	agent, e, err := s.table.RequireReadable(by, r.Channel)
	if err != nil {
		return nil, err
	}
	if err := e.MustRead(agent); err != nil {
		return nil, err
	}
	if err := checkReason("reason", r.Reason); err != nil {
		return nil, err
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
	if err := pub.addStatement(vocab.NewStatement(vocab.Retracts, target.ID.Entity())); err != nil {
		return nil, err
	}
	meta := by.UpdateMeta("channels/retract")
	meta.MessageID, meta.DryRun = string(cmp.Or(target.RetractedBy, pub.message.ID)), r.DryRun
	if r.WithdrawFacts {
		meta.WhenHeld = t.publishWithoutFacts
	}
	if r.Reason != "" && !r.DryRun {
		ctx = s.options.OneAdmission(ctx)
		if refused, err := s.scanRetraction(ctx, meta, pub); refused != nil || err != nil {
			return &RetractionReceipt{Receipt: *receiptOrZero(refused)}, err
		}
	}
	receipt, err := s.store.Update(ctx, meta, t.applyRetraction)
	if kg.CodeOf(err) == kg.CodeChannelClosed && len(facts) > 0 && target.Author == agent {
		e := *kg.AsError(err)
		e.Hint = fmt.Sprintf("to undo the facts of the message, revert the commit of revision %d (revertCommit)", facts[0].revision)
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

// retractOp is a retraction in progress.
type retractOp struct {
	*publishOp
	service *Service
	agent   kg.AgentID
	target  *message.Message // as of the start
	facts   []assertedFact
	applied []kg.Revision // revisions that applied its proposal, with these facts

	withdraw          bool
	withdrawn         []kg.Patch
	onBehalf          []kg.Patch // the withdrawn facts that the caller cannot write itself
	kept              int
	withdrawnProposal string // proposal withdrawn with the message
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
		case !stands: // withdrawn or asserted again since
		case !seen:
			t.kept++
		case tx.MayWrite(f.quad.Graph) == nil:
			t.withdrawn = append(t.withdrawn, f.removalPatch())
		case f.quad.Graph == t.message.Channel.FactsGraph(): // the channel's own facts are removed with the message
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

// publishWithoutFacts retracts the message while the withdrawal of its facts awaits
// review. Facts that the caller cannot write stay, because it cannot propose their
// removal.
func (t *retractOp) publishWithoutFacts(tx *kg.Tx, proposal string) error {
	t.kept += len(t.onBehalf)
	t.withdrawn, t.onBehalf = t.withdrawn[:len(t.withdrawn)-len(t.onBehalf)], nil
	return t.publishOp.publishWithoutFacts(tx, proposal)
}

// markRetracted removes the content of the message in the commit of the announcement
// by. It checks the message as of the update.
func (t *retractOp) markRetracted(tx *kg.Tx, by *message.Message) (again *message.Message, err error) {
	id := t.message.Channel
	target, err := message.Read(tx.MatchOwn, id, t.target.ID)
	if err != nil {
		return nil, err
	}
	if target == nil {
		return nil, message.ErrNotFound()
	}
	if target.Author != t.agent && !channel.Moderators.Includes(t.service.table.Get(id).RoleOf(t.agent), false) {
		return nil, check.Denied("only the author of the message, owners and moderators can retract it")
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
		return nil, kg.Errorf(kg.CodeInvalid, "retraction cannot be retracted").At("messageId")
	}
	if target.ProposalID != "" {
		taken, err := t.service.options.WithdrawProposal(tx, target.ProposalID, "message was retracted")
		if err != nil {
			return nil, err
		}
		if t.withdrawnProposal = ""; taken {
			t.withdrawnProposal = target.ProposalID
		}
	}
	if target.RetractedBy != "" {
		return message.Read(tx.MatchOwn, id, target.RetractedBy)
	}
	if err := message.RemovePayload(tx, id, target.ID); err != nil {
		return nil, err
	}
	return nil, tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: target.ID.Entity(), Predicate: vocab.RetractedBy, Object: by.ID.Entity(), Graph: id.MessagesGraph()}})
}

// assertedFact is an assertion as a message made it.
type assertedFact struct {
	quad     kg.Quad
	source   kg.AgentID
	revision kg.Revision
}

// removalPatch returns the patch that removes the assertion.
func (f *assertedFact) removalPatch() kg.Patch {
	return kg.Patch{Op: kg.Remove, Quad: f.quad, Source: f.source}
}

// isAsserted reports whether the assertion still stands unchanged in the reader's view.
func (f *assertedFact) isAsserted(match systemgraph.Matcher) (bool, error) {
	for st, err := range match(kg.Pattern(f.quad)) {
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(st.Assertions, func(a kg.Assertion) bool { return a.Source == f.source && a.Revision == f.revision }), nil
	}
	return false, nil
}

// factsOf lists the assertions made with a message or, if they awaited review, when
// their proposal was applied. applied holds the revisions that applied it.
func (s *Service) factsOf(ctx context.Context, m *message.Message) (out []assertedFact, applied []kg.Revision, err error) {
	revisions := []kg.Revision{m.Revision}
	if m.ProposalID != "" {
		snapshot, err := s.journal.SystemView(ctx)
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
		return nil, nil, check.TooMuch("withdrawFacts", "message asserts more statements than the limit of %d per update", kg.MaxPatches)
	}
	return out, applied, nil
}

// proposalRevisions returns the revision that applied a proposal, or none.
func proposalRevisions(match systemgraph.Matcher, proposal string) (out []kg.Revision, err error) {
	if proposal == "" {
		return nil, nil
	}
	graph := kg.IRI(kg.ProposalGraphPrefix + proposal)
	for st, err := range match(kg.Pattern{Subject: graph, Predicate: systemgraph.Property("appliedIn"), Graph: graph}) {
		if err != nil {
			return nil, err
		}
		out = append(out, kg.Revision(vocab.IntegerOf(st.Object)))
	}
	return out, nil
}

// findMessage returns a message of the channel, regardless of its readers.
func (s *Service) findMessage(ctx context.Context, id channel.ID, m message.ID) (*message.Message, error) {
	snapshot, err := s.journal.SystemView(ctx)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	found, err := message.Read(snapshot.Match, id, m)
	if err == nil && found == nil {
		err = message.ErrNotFound()
	}
	return found, err
}
