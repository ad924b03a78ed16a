package proposals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"koine/kg"
)

// maxRounds limits the retries of a decision after concurrent decisions.
const maxRounds = 8

// errChanged means that the proposal changed after it was read.
var errChanged = errors.New("the proposal has changed")

// Decide records a review. The last required approval applies the patches, or marks the
// proposal conflicted if the graph does not accept them; a rejection ends it. Repeating
// a decision has no effect.
//
// Errors: CodeNotFound if the caller may not see the proposal; CodePermissionDenied for
// the author, for a caller without a reviewer role, and for a caller that does not see
// all patches; CodeProposalClosed if it has ended; CodeRevisionConflict if expected is
// given and the proposal, or a subject of its patches, changed after it; those of
// Store.Update that do not concern the patches.
func (s *Service) Decide(ctx context.Context, by Caller, id string, d Decision, comment string, expected *kg.Revision) (*Proposal, error) {
	if d != Approve && d != Reject {
		return nil, kg.Errorf(kg.CodeInvalid, "the decision must be approve or reject").At("decision")
	}
	if len(comment) > MaxCommentBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the comment has %d bytes, more than the limit of %d", len(comment), MaxCommentBytes).At("comment")
	}
	for range maxRounds {
		p, err := s.getWhole(ctx, by, id, 0)
		if err != nil {
			return nil, err
		}
		p.statusAt(s.options.Clock())
		if err := checkReviewer(by, p); err != nil {
			return nil, err
		}
		if err := s.checkSeesAll(by, p); err != nil {
			return nil, err
		}
		if p.Status != Pending && hasDecided(p, by.Principal.ID, d) {
			return s.withoutHidden(p, by.Principal), nil // a retry after a lost answer
		}
		r := &decision{service: s, by: by, proposal: p, decision: d, comment: comment, expected: expected}
		err = r.commitDecision(ctx)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return s.Get(ctx, by, id)
	}
	return nil, kg.Errorf(kg.CodeOverloaded, "too many concurrent decisions on the proposal; try again")
}

// checkReviewer returns an error for the author and for a caller without a reviewer role.
func checkReviewer(by Caller, p *Proposal) error {
	switch {
	case by.isAuthor(p.Author, p.Actor):
		return kg.Errorf(kg.CodePermissionDenied, "you cannot review your own proposal")
	case by.Principal.IsAdmin():
		return nil
	case slices.ContainsFunc(p.ReviewerRoles, by.Principal.HasRole):
		return nil
	}
	return kg.Errorf(kg.CodePermissionDenied, "reviewing the proposal requires one of the roles: %s", strings.Join(p.ReviewerRoles, ", "))
}

// decision is a review in progress.
type decision struct {
	service  *Service
	by       Caller
	proposal *Proposal // as it was read
	decision Decision
	comment  string
	expected *kg.Revision

	own error // failure of the decision itself, not of the patches
}

func (d *decision) commitDecision(ctx context.Context) error {
	if d.decision == Approve && d.isLast(d.proposal) {
		return d.applyProposal(ctx)
	}
	return d.commitReview(ctx, func(tx *kg.Tx, p *Proposal) error {
		if d.decision == Approve && d.isLast(p) {
			return errChanged // a concurrent approval
		}
		if d.decision == Reject {
			return d.service.endProposal(tx, p.ID, Rejected, d.by.Principal.ID, cmp.Or(d.comment, "A reviewer rejected it."))
		}
		return nil
	})
}

// isLast reports whether the reviewer's approval is the last one required.
func (d *decision) isLast(p *Proposal) bool {
	approvers := p.approvers()
	if !slices.Contains(approvers, d.by.Principal.ID) {
		approvers = append(approvers, d.by.Principal.ID)
	}
	return len(approvers) >= p.RequiredApprovals
}

// commitReview records the review in the reviewer's name and calls then in the same update.
func (d *decision) commitReview(ctx context.Context, then func(*kg.Tx, *Proposal) error) error {
	meta := kg.Meta{Principal: d.by.Principal, Actor: d.by.Actor, ProposalID: d.proposal.ID}
	receipt, err := d.service.store.Update(ctx, meta, func(tx *kg.Tx) error {
		p, err := d.recordReview(tx)
		if err != nil {
			return err
		}
		if err := then(tx, p); err != nil {
			return err
		}
		return d.service.expireOne(tx)
	})
	return verdictError(receipt, err)
}

// verdictError converts the verdict on an update of koine's own to an error: a verifier
// must not refuse it.
func verdictError(r kg.Receipt, err error) error {
	if err == nil && r.Verdict.Outcome != kg.Accepted {
		err = kg.Errorf(kg.CodeConstraintViolation, "%s: %s", r.Verdict.Reason, r.Verdict.Details)
	}
	return err
}

// recordReview reads the proposal inside the update, returns an error if it can no longer be
// decided, and records the review.
func (d *decision) recordReview(tx *kg.Tx) (*Proposal, error) {
	p, err := readPending(tx, d.proposal.ID)
	if err != nil {
		return nil, err
	}
	if d.expected != nil {
		if err := checkUnchanged(tx, d.proposal, p.Revision, *d.expected); err != nil {
			return nil, err
		}
	}
	return p, d.writeReview(tx, p)
}

// hasDecided reports whether the principal has made this decision before.
func hasDecided(p *Proposal, reviewer kg.AgentID, d Decision) bool {
	return slices.ContainsFunc(p.Reviews, func(r Review) bool { return r.Reviewer == reviewer && r.Decision == d })
}

// writeReview records the review, unless it repeats an earlier one.
func (d *decision) writeReview(tx *kg.Tx, p *Proposal) error {
	if hasDecided(p, d.by.Principal.ID, d.decision) {
		return nil
	}
	w := &writer{tx: tx, graph: graphOf(p.ID), source: d.by.Principal.ID}
	subject := kg.IRI(w.graph.Value() + "/review/" + strconv.Itoa(len(p.Reviews)+1))
	w.addProperty(propReview, subject)
	w.addAbout(subject, rdfType, classReview)
	w.addAbout(subject, propReviewer, kg.IRI(string(d.by.Principal.ID)))
	w.addAbout(subject, propReviewerActor, kg.IRI(string(d.by.actingAgent())))
	w.addAbout(subject, propDecision, kg.String(string(d.decision)))
	w.addAbout(subject, propReviewed, kg.DateTime(tx.Time()))
	if d.comment != "" {
		w.addAbout(subject, propComment, kg.String(d.comment))
	}
	return w.err
}

// checkUnchanged returns an error if the proposal, or a subject of its patches, changed
// after the revision.
func checkUnchanged(tx *kg.Tx, p *Proposal, changed, after kg.Revision) error {
	if changed > after {
		return kg.Errorf(kg.CodeRevisionConflict, "the proposal changed in revision %d, after the expected %d", changed, after).At("expectedRevision")
	}
	return checkSubjects(tx, p, after)
}

func checkSubjects(tx *kg.Tx, p *Proposal, after kg.Revision) error {
	for i := range p.Patches {
		q := &p.Patches[i].Quad
		last, err := tx.LastChange(q.Graph, q.Subject)
		if err != nil {
			return err
		}
		if last > after {
			return kg.Errorf(kg.CodeRevisionConflict, "a subject of the proposal changed in revision %d, after the expected %d", last, after).At("expectedRevision")
		}
	}
	return nil
}

// rightsUnchanged reports whether the author still has these rights.
func (s *Service) rightsUnchanged(p *Proposal, rights kg.Principal) bool {
	now, err := s.options.CurrentRights(p.authorThen())
	return err == nil && reflect.DeepEqual(now, rights)
}

// applyProposal applies the patches in the author's name and with the author's current rights,
// in the commit that records the last review.
func (d *decision) applyProposal(ctx context.Context) error {
	p := d.proposal
	author, err := d.service.options.CurrentRights(p.authorThen())
	if err != nil {
		return d.endConflicted(ctx, fmt.Sprintf("the author %s no longer has the rights for it: %v", p.Author, err))
	}
	if judge := d.service.patchCheck; judge != nil && len(p.Patches) > 0 {
		if err := judge(ctx, author, p.Patches); err != nil {
			return err
		}
	}
	meta := kg.Meta{
		Principal: author, Actor: p.Actor, Justification: p.Justification, TaskID: p.TaskID, SessionID: p.SessionID, MessageID: p.MessageID,
		ProposalID: p.ID, Reviewed: p.Rules,
	}
	publish, done, err := d.service.prepareMessage(ctx, author, p)
	if err != nil {
		if !aboutPatches[kg.CodeOf(err)] {
			return err
		}
		return d.endConflicted(ctx, kg.AsError(err).Error())
	}
	defer done()
	d.own = nil
	receipt, err := d.service.store.Update(ctx, meta, func(tx *kg.Tx) error {
		now, err := d.recordReview(tx)
		if err == nil && !(d.isLast(now) && d.service.rightsUnchanged(p, author)) {
			err = errChanged
		}
		if d.own = err; err != nil {
			return err
		}
		if publish != nil {
			err = publish(tx)
		} else {
			err = d.applyPatches(tx)
		}
		if err != nil {
			return err
		}
		d.own = d.endApplied(tx)
		return d.own
	})
	switch {
	case err == nil && receipt.Verdict.Outcome == kg.Accepted:
		return nil
	case err == nil:
		return d.endConflicted(ctx, conflictOf(receipt.Verdict))
	case d.own != nil:
		return d.own
	case !aboutPatches[kg.CodeOf(err)]:
		return err
	}
	return d.endConflicted(ctx, kg.AsError(err).Error())
}

// endApplied ends the proposal. It runs after the patches, because changes are judged by
// their index.
func (d *decision) endApplied(tx *kg.Tx) error {
	id := d.proposal.ID
	w := &writer{tx: tx, graph: graphOf(id), source: d.by.Principal.ID}
	w.addProperty(propAppliedIn, kg.Integer(int64(tx.Revision())))
	if w.err != nil {
		return w.err
	}
	if err := d.service.endProposal(tx, id, Applied, d.by.Principal.ID, ""); err != nil {
		return err
	}
	return d.service.expireOne(tx)
}

func (d *decision) applyPatches(tx *kg.Tx) error {
	if d.proposal.hasExpected {
		if err := checkSubjects(tx, d.proposal, d.proposal.expected); err != nil {
			return err
		}
	}
	for i, p := range d.proposal.Patches {
		if err := tx.Apply(p); err != nil {
			return kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}

// aboutPatches are the codes of errors in the patches; after others the proposal stays
// pending.
var aboutPatches = map[kg.Code]bool{
	kg.CodeInvalid: true, kg.CodeLimitExceeded: true, kg.CodeNotFound: true, kg.CodeGraphNotFound: true, kg.CodePermissionDenied: true,
	kg.CodeSourceForbidden: true, kg.CodeReserved: true, kg.CodeConstraintViolation: true, kg.CodeAlignmentViolation: true, kg.CodeRevisionConflict: true,
	kg.CodeChannelNotFound: true, kg.CodeChannelClosed: true, kg.CodeScopeNotFound: true, kg.CodeScopeEnded: true, kg.CodeNotMember: true, kg.CodeNoRecipient: true,
	kg.CodeMessageExpired: true,
}

// conflictOf returns the reason for which a verdict refuses the patches.
func conflictOf(v kg.Verdict) string {
	reason := v.Reason
	if v.Outcome == kg.Held {
		reason = "held by a rule that its review has not satisfied"
	}
	if v.Details != "" {
		reason += ": " + v.Details
	}
	return reason
}

// endConflicted ends the proposal because its patches could not be applied.
func (d *decision) endConflicted(ctx context.Context, why string) error {
	return d.commitReview(ctx, func(tx *kg.Tx, p *Proposal) error {
		if err := d.service.endProposal(tx, p.ID, Conflicted, d.by.Principal.ID, why); err != nil {
			return err
		}
		w := &writer{tx: tx, graph: graphOf(p.ID), source: kg.System}
		w.addText(propConflict, why)
		return w.err
	})
}

// Withdraw ends a proposal of the caller; an administrator may withdraw any. Errors are
// those of Decide.
func (s *Service) Withdraw(ctx context.Context, by Caller, id string) (*Proposal, error) {
	p, err := s.Get(ctx, by, id)
	if err != nil {
		return nil, err
	}
	if !by.isAuthor(p.Author, p.Actor) && !by.Principal.IsAdmin() {
		return nil, kg.Errorf(kg.CodePermissionDenied, "only the author may withdraw a proposal")
	}
	meta := kg.Meta{Principal: by.Principal, Actor: by.Actor, ProposalID: id}
	receipt, err := s.store.Update(ctx, meta, func(tx *kg.Tx) error {
		if _, err := readPending(tx, id); err != nil {
			return err
		}
		if err := s.endProposal(tx, id, Withdrawn, by.Principal.ID, "An administrator withdrew it."); err != nil {
			return err
		}
		return s.expireOne(tx)
	})
	if err := verdictError(receipt, err); err != nil {
		return nil, err
	}
	return s.Get(ctx, by, id)
}

// WithdrawIn withdraws a proposal with a reason, in the commit of an update that retracts
// its origin. It reports false if the proposal has ended or does not exist.
func (s *Service) WithdrawIn(tx *kg.Tx, id, why string) (withdrawn bool, err error) {
	p, err := readProposal(tx.MatchOwn, id, false)
	if err != nil || p == nil || p.statusAt(tx.Time()).Status != Pending {
		return false, err
	}
	if err := s.endProposal(tx, id, Withdrawn, kg.System, why); err != nil {
		return false, err
	}
	w := &writer{tx: tx, graph: graphOf(id), source: kg.System}
	w.addText(propConflict, why)
	return w.err == nil, w.err
}

func errNotFound(id string) *kg.Error {
	return kg.Errorf(kg.CodeNotFound, "proposal %s does not exist", id).At("id")
}

func errClosed(p *Proposal) *kg.Error {
	return kg.Errorf(kg.CodeProposalClosed, "the proposal is already %s", p.Status)
}
