package review

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"koine/kg"
)

// maxRounds bounds how often a decision is begun anew because another one came
// between.
const maxRounds = 8

// errChanged tells that the proposal is no longer what the decision was made
// ready for.
var errChanged = errors.New("the proposal has changed")

// Decide writes down what a reviewer says. The last approval that is required
// applies the patches, or marks the proposal conflicted where the graph does not
// take them; a rejection ends it. To say the same
// twice is to say it once.
//
// Errors: CodeNotFound where the caller may not see the proposal;
// CodePermissionDenied for the author, for who has none of the roles, and for who
// does not see all that it would do;
// CodeProposalClosed when it has ended; CodeRevisionConflict when expected is
// given and the proposal, or a subject that its patches are about, changed after
// it; those of Store.Update that are not about the patches.
func (s *Service) Decide(ctx context.Context, by Caller, id string, d Decision, comment string, expected *kg.Revision) (*Proposal, error) {
	if d != Approve && d != Reject {
		return nil, kg.Errorf(kg.CodeInvalid, "a decision is to approve or to reject").At("decision")
	}
	if len(comment) > MaxCommentBytes {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "a comment of %d bytes is longer than the %d that are stored", len(comment), MaxCommentBytes).At("comment")
	}
	for range maxRounds {
		p, err := s.get(ctx, by, id)
		if err != nil {
			return nil, err
		}
		if err := mayReview(by, p); err != nil {
			return nil, err
		}
		if err := s.seesAll(by, p); err != nil {
			return nil, err
		}
		if p.Status != Pending && said(p, by.Principal.ID, d) {
			return s.shown(p, by.Principal), nil // the answer to the first time was lost
		}
		r := &decision{service: s, by: by, proposal: p, decision: d, comment: comment, expected: expected}
		err = r.make(ctx)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return s.Get(ctx, by, id)
	}
	return nil, kg.Errorf(kg.CodeOverloaded, "too many decide about the proposal at one time")
}

// mayReview refuses the author, and who has none of the roles.
func mayReview(by Caller, p *Proposal) error {
	switch {
	case by.wrote(p.Author, p.Actor):
		return kg.Errorf(kg.CodePermissionDenied, "nobody decides about a proposal of their own")
	case by.Principal.IsAdmin():
		return nil
	case slices.ContainsFunc(p.ReviewerRoles, by.Principal.HasRole):
		return nil
	}
	return kg.Errorf(kg.CodePermissionDenied, "you are none of those who may review this: %s", strings.Join(p.ReviewerRoles, ", "))
}

// decision is one reviewer's, on its way.
type decision struct {
	service  *Service
	by       Caller
	proposal *Proposal // as it was read
	decision Decision
	comment  string
	expected *kg.Revision

	own error // what kept the decision from being made, and is not about the patches
}

// make commits the decision.
func (d *decision) make(ctx context.Context) error {
	if d.decision == Approve && d.completes(d.proposal) {
		return d.apply(ctx)
	}
	return d.commit(ctx, func(tx *kg.Tx, p *Proposal) error {
		if d.decision == Approve && d.completes(p) {
			return errChanged // another approval came between
		}
		if d.decision == Reject {
			return end(tx, p.ID, Rejected, d.by.Principal.ID)
		}
		return nil
	})
}

// completes tells whether the reviewer's approval is the last that is required.
func (d *decision) completes(p *Proposal) bool {
	approvers := p.approvers()
	if !slices.Contains(approvers, d.by.Principal.ID) {
		approvers = append(approvers, d.by.Principal.ID)
	}
	return len(approvers) >= p.RequiredApprovals
}

// commit writes the review in the reviewer's name, and what then does.
func (d *decision) commit(ctx context.Context, then func(*kg.Tx, *Proposal) error) error {
	meta := kg.Meta{Principal: d.by.Principal, Actor: d.by.Actor, ProposalID: d.proposal.ID}
	receipt, err := d.service.store.Update(ctx, meta, func(tx *kg.Tx) error {
		p, err := d.begin(tx)
		if err != nil {
			return err
		}
		if err := then(tx, p); err != nil {
			return err
		}
		return d.service.sweep(tx)
	})
	return accepted(receipt, err)
}

// accepted is the error of an update of koine's own: a verifier that refuses one
// has not left alone what it should.
func accepted(r kg.Receipt, err error) error {
	if err == nil && r.Verdict.Outcome != kg.Accepted {
		err = kg.Errorf(kg.CodeConstraintViolation, "%s: %s", r.Verdict.Reason, r.Verdict.Details)
	}
	return err
}

// begin reads the proposal inside the update, refuses what can no longer be
// decided, and writes the review down.
func (d *decision) begin(tx *kg.Tx) (*Proposal, error) {
	p, err := read(tx.MatchOwn, d.proposal.ID, false)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errNotFound(d.proposal.ID)
	}
	if p = p.at(tx.Time()); p.Status != Pending {
		return nil, errClosed(p)
	}
	if d.expected != nil {
		if err := unchanged(tx, d.proposal, p.Revision, *d.expected); err != nil {
			return nil, err
		}
	}
	return p, d.write(tx, p)
}

// said tells whether the principal has decided so before.
func said(p *Proposal, reviewer kg.AgentID, d Decision) bool {
	return slices.ContainsFunc(p.Reviews, func(r Review) bool { return r.Reviewer == reviewer && r.Decision == d })
}

// write writes the review down, unless the same was said before.
func (d *decision) write(tx *kg.Tx, p *Proposal) error {
	if said(p, d.by.Principal.ID, d.decision) {
		return nil
	}
	w := &writer{tx: tx, graph: graphOf(p.ID), source: d.by.Principal.ID}
	subject := kg.IRI(w.graph.Value() + "/review/" + strconv.Itoa(len(p.Reviews)+1))
	w.add(propReview, subject)
	w.about(subject, rdfType, classReview)
	w.about(subject, propReviewer, kg.IRI(string(d.by.Principal.ID)))
	w.about(subject, propReviewerActor, kg.IRI(string(d.by.actor())))
	w.about(subject, propDecision, kg.String(string(d.decision)))
	w.about(subject, propReviewed, kg.DateTime(tx.Time()))
	if d.comment != "" {
		w.about(subject, propComment, kg.String(d.comment))
	}
	return w.err
}

// unchanged refuses when the proposal, or a subject that its patches are about,
// changed after the revision.
func unchanged(tx *kg.Tx, p *Proposal, changed, after kg.Revision) error {
	if changed > after {
		return kg.Errorf(kg.CodeRevisionConflict, "the proposal changed in revision %d, after the expected %d", changed, after).At("expectedRevision")
	}
	return unchangedSubjects(tx, p, after)
}

func unchangedSubjects(tx *kg.Tx, p *Proposal, after kg.Revision) error {
	for i := range p.Patches {
		q := &p.Patches[i].Quad
		last, err := tx.LastChange(q.Graph, q.Subject)
		if err != nil {
			return err
		}
		if last > after {
			return kg.Errorf(kg.CodeRevisionConflict, "a statement that the proposal is about changed in revision %d, after the expected %d", last, after).At("expectedRevision")
		}
	}
	return nil
}

// stands tells whether the author of a proposal still has these rights.
func (s *Service) stands(p *Proposal, rights kg.Principal) bool {
	now, err := s.options.Standing(p.principal())
	return err == nil && reflect.DeepEqual(now, rights)
}

// lost says that the author of a proposal no longer has the rights to make it.
func lost(p *Proposal, err error) string {
	return fmt.Sprintf("the author %s may not ask for it any more: %v", p.Author, err)
}

// apply makes the update in the author's name and with the rights that it has
// now, in the commit that writes the last review down.
func (d *decision) apply(ctx context.Context) error {
	p := d.proposal
	author, err := d.service.options.Standing(p.principal())
	if err != nil {
		return d.conflict(ctx, lost(p, err))
	}
	if judge := d.service.judge; judge != nil {
		if err := judge(ctx, author, p.Patches); err != nil {
			return err
		}
	}
	meta := kg.Meta{
		Principal: author, Actor: p.Actor, Justification: p.Justification, TaskID: p.TaskID, SessionID: p.SessionID, MessageID: p.MessageID,
		ProposalID: p.ID, Reviewed: p.Rules,
	}
	d.own = nil
	receipt, err := d.service.store.Update(ctx, meta, func(tx *kg.Tx) error {
		now, err := d.begin(tx)
		if err == nil && !(d.completes(now) && d.service.stands(p, author)) {
			err = errChanged
		}
		if d.own = err; err != nil {
			return err
		}
		if err := d.patch(tx); err != nil {
			return err
		}
		d.own = d.applied(tx)
		return d.own
	})
	switch {
	case err == nil && receipt.Verdict.Outcome == kg.Accepted:
		return nil
	case err == nil:
		return d.conflict(ctx, conflictOf(receipt.Verdict))
	case d.own != nil:
		return d.own
	case !aboutPatches[kg.CodeOf(err)]:
		return err
	}
	return d.conflict(ctx, kg.AsError(err).Error())
}

// applied ends the proposal. It comes behind the patches, whose changes are
// judged by their place.
func (d *decision) applied(tx *kg.Tx) error {
	id := d.proposal.ID
	w := &writer{tx: tx, graph: graphOf(id), source: d.by.Principal.ID}
	w.add(propAppliedIn, kg.Integer(int64(tx.Revision())))
	if w.err != nil {
		return w.err
	}
	if err := end(tx, id, Applied, d.by.Principal.ID); err != nil {
		return err
	}
	return d.service.sweep(tx)
}

// patch applies the patches of the proposal.
func (d *decision) patch(tx *kg.Tx) error {
	if d.proposal.hasExpected {
		if err := unchangedSubjects(tx, d.proposal, d.proposal.expected); err != nil {
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

// aboutPatches are the codes of what is wrong with the patches; others are of the
// moment, and the proposal goes on waiting.
var aboutPatches = map[kg.Code]bool{
	kg.CodeInvalid: true, kg.CodeLimitExceeded: true, kg.CodeNotFound: true, kg.CodeGraphNotFound: true, kg.CodePermissionDenied: true,
	kg.CodeSourceForbidden: true, kg.CodeReserved: true, kg.CodeConstraintViolation: true, kg.CodeAlignmentViolation: true, kg.CodeRevisionConflict: true,
}

// conflictOf says why a verdict keeps the patches out.
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

// conflict ends the proposal because its patches could not be applied.
func (d *decision) conflict(ctx context.Context, why string) error {
	return d.commit(ctx, func(tx *kg.Tx, p *Proposal) error {
		if err := end(tx, p.ID, Conflicted, d.by.Principal.ID); err != nil {
			return err
		}
		w := &writer{tx: tx, graph: graphOf(p.ID), source: kg.System}
		w.text(propConflict, why)
		return w.err
	})
}

// Withdraw ends a proposal of the caller's own; an administrator may withdraw
// any. Errors are those of Decide.
func (s *Service) Withdraw(ctx context.Context, by Caller, id string) (*Proposal, error) {
	p, err := s.Get(ctx, by, id)
	if err != nil {
		return nil, err
	}
	if !by.wrote(p.Author, p.Actor) && !by.Principal.IsAdmin() {
		return nil, kg.Errorf(kg.CodePermissionDenied, "only its author withdraws a proposal")
	}
	meta := kg.Meta{Principal: by.Principal, Actor: by.Actor, ProposalID: id}
	receipt, err := s.store.Update(ctx, meta, func(tx *kg.Tx) error {
		now, err := read(tx.MatchOwn, id, false)
		if err != nil {
			return err
		}
		if now == nil {
			return errNotFound(id)
		}
		if now.at(tx.Time()).Status != Pending {
			return errClosed(now)
		}
		if err := end(tx, id, Withdrawn, by.Principal.ID); err != nil {
			return err
		}
		return s.sweep(tx)
	})
	if err := accepted(receipt, err); err != nil {
		return nil, err
	}
	return s.Get(ctx, by, id)
}

func errNotFound(id string) *kg.Error {
	return kg.Errorf(kg.CodeNotFound, "there is no proposal %s", id).At("id")
}

func errClosed(p *Proposal) *kg.Error {
	return kg.Errorf(kg.CodeProposalClosed, "the proposal is %s: it is no longer decided about", p.Status)
}
