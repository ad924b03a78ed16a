package kg

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Outcome is the result of a judgement.
type Outcome uint8

// The outcomes. The zero Outcome is Accepted.
const (
	Accepted Outcome = iota
	// Rejected refuses the update; the caller gets a result that says so.
	Rejected
	// Violation refuses the update as a breach of the operator's rules; the caller gets
	// CodeConstraintViolation.
	Violation
	// Held keeps the update for review: nothing is applied, and Hold states the conditions.
	Held
)

// Verdict is a Verifier's decision on an update.
type Verdict struct {
	Outcome Outcome
	// Reason is short ("Constraint Violation"); Details explains.
	Reason  string
	Details string
	// Hold is set if Outcome is Held. It is read-only.
	Hold *Hold
	// Depends lists the inputs of an Accepted verdict beyond the changes outside koine's own
	// graphs and the statements of their subjects. If one of them changes before the commit,
	// the update is judged again.
	Depends []Dependency
	// Own lists the subjects in koine's own graphs that the verdict is about. If the update
	// comes to other changes of one of them, apart from its number (Sequence) and the time of
	// the commit, it is judged again. Other changes in koine's own graphs do not matter.
	Own []Term
}

// Hold states the conditions for approving a held update.
type Hold struct {
	// Approvals is how many other principals must approve; values below 1 count as 1.
	Approvals int
	// Roles lists the roles that may review, beside administrators; nil means RoleReviewer.
	Roles []string
	// Expires is the longest wait for a review; 0 leaves it to the Holder.
	Expires time.Duration
	// Rules names the rules that held the update.
	Rules []string
}

// rejection returns the error for a Violation.
func (v Verdict) rejection() error {
	if v.Outcome != Violation {
		return nil
	}
	return errRejected(v)
}

// Judgement is the input of a Verifier.
type Judgement struct {
	Meta Meta
	// Changes are the update's changes in order, without the content of proposals. Links
	// between changes (Replaces, ReplacedBy) hold if nothing was left out.
	Changes []Change
	// Before and After read the graph without and with the changes, as the caller sees it,
	// with koine's own graphs but without the content of proposals. They are valid during the
	// judgement.
	Before, After *Snapshot
}

// Verifier judges updates before they are committed. It runs on the caller's goroutine against
// a snapshot and blocks nobody else. It runs again if, before the commit, an affected subject,
// a Dependency or Governor.RulesVersion changed, or if the update came to other changes. An
// update that is overtaken MaxJudgements times fails with CodeOverloaded. A Verifier must be
// safe for concurrent use, must not call Store.Update, and returns soon after its context
// ends.
type Verifier interface {
	Verify(ctx context.Context, j Judgement) (Verdict, error)
}

// severity orders the outcomes: the most severe of several verdicts counts.
var severity = [...]int{Accepted: 0, Held: 1, Rejected: 2, Violation: 3}

// Idler is a Verifier that may have no rules. While Idle returns true, updates skip the
// judgement. Only a commit to one of koine's own graphs ends that: Governor.OnSystemChange is
// called with it before the next update is executed.
type Idler interface{ Idle() bool }

// needsJudgement reports whether updates are judged.
func (s *Store) needsJudgement() bool {
	return s.options.Verifier != nil && !isIdle(s.options.Verifier)
}

func isIdle(v Verifier) bool {
	i, ok := v.(Idler)
	return ok && i.Idle()
}

// Verifiers combines verifiers, called in turn. The most severe outcome counts, with the
// reason of the first verdict that has it and the details of all of them; conditions of holds
// add up. An error of one verifier is returned.
func Verifiers(list ...Verifier) Verifier { return verifiers(list) }

type verifiers []Verifier

// Idle reports whether all verifiers are idle.
func (list verifiers) Idle() bool {
	return !slices.ContainsFunc(list, func(v Verifier) bool { return !isIdle(v) })
}

func (list verifiers) Verify(ctx context.Context, j Judgement) (Verdict, error) {
	var sum Verdict
	for _, verifier := range list {
		v, err := verifier.Verify(ctx, j)
		if err != nil {
			return Verdict{}, err
		}
		sum = sum.And(v)
	}
	return sum, nil
}

// And combines two verdicts: the more severe outcome, with the reason of the first that has it
// and the details of both.
func (v Verdict) And(o Verdict) Verdict {
	depends, own := slices.Concat(v.Depends, o.Depends), slices.Concat(v.Own, o.Own)
	switch {
	case severity[o.Outcome] > severity[v.Outcome]:
		o.Depends, o.Own = depends, own
		return o
	case o.Outcome == v.Outcome:
		v.Details = joinLines(v.Details, o.Details)
		v.Hold = v.Hold.merge(o.Hold)
	}
	v.Depends, v.Own = depends, own
	return v
}

func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// merge returns the conditions that satisfy both holds.
func (h *Hold) merge(o *Hold) *Hold {
	if h == nil || o == nil {
		return cmp.Or(h, o)
	}
	both := &Hold{Approvals: max(h.Approvals, o.Approvals), Rules: slices.Concat(h.Rules, o.Rules), Expires: h.Expires}
	if o.Expires > 0 && (both.Expires == 0 || o.Expires < both.Expires) {
		both.Expires = o.Expires
	}
	// Only roles that satisfy both holds may review, beside administrators.
	for _, role := range h.reviewerRoles() {
		if slices.Contains(o.reviewerRoles(), role) {
			both.Roles = append(both.Roles, role)
		}
	}
	if both.Roles == nil {
		both.Roles = []string{RoleAdmin}
	}
	return both
}

// reviewerRoles lists the roles that may review.
func (h *Hold) reviewerRoles() []string {
	if h.Roles == nil {
		return []string{RoleReviewer}
	}
	return h.Roles
}

// ReasonHeld is the reason in the verdict on a held update.
const ReasonHeld = "Pending Review"

// MaxHeldForBytes bounds the reason for holding an update, as stored in the commit.
const MaxHeldForBytes = 4 << 10

// HeldUpdate is an update that was not applied because its verdict is Held.
type HeldUpdate struct {
	Meta Meta
	// Patches are the update's patches, in order and normalised. Applying them makes the
	// update.
	Patches []Patch
	Verdict Verdict

	id    string // returned by Holder.Hold
	rules uint64 // Governor.RulesVersion at the verdict
}

// Holder stores held updates for review.
type Holder interface {
	// Hold stores the held update with Tx.ApplyOwn, in a commit of its own, and returns the id
	// of the record. The committer calls it once for each held update. If the same update is
	// stored already, it may write nothing and return that id. An error refuses the update.
	Hold(tx *Tx, h *HeldUpdate) (id string, err error)
}

// shouldHold reports whether an update with this verdict goes to the Holder. An update that
// comes from a review is not held again.
func (s *Store) shouldHold(u *update, v Verdict) bool {
	return v.Outcome == Held && s.options.Holder != nil && u.held == nil && !u.patient && u.meta.ProposalID == ""
}

// withOwnChanges adjusts the verdict on an update that also changes koine's own graphs. Those changes
// cannot be stored as patches, so the update is refused instead of held, unless Meta.WhenHeld
// handles them.
func (v Verdict) withOwnChanges(tx *Tx) Verdict {
	if v.Outcome == Held && tx.own && tx.meta.ProposalID == "" && tx.meta.WhenHeld == nil {
		return Verdict{Outcome: Rejected, Reason: "Needs Review", Details: v.Details}
	}
	return v
}

// heldUpdate returns the update as the Holder stores it, or nil if it is not held.
func heldUpdate(u *update, tx *Tx, v Verdict, rules uint64) *HeldUpdate {
	if v.Outcome != Held {
		return nil
	}
	if len(v.Details) > MaxHeldForBytes {
		v.Details = strings.ToValidUTF8(v.Details[:MaxHeldForBytes], "")
	}
	return &HeldUpdate{Meta: u.meta, Patches: tx.patches, Verdict: v, rules: rules}
}

// holdUpdate turns the update into one that stores the held update. It is not judged: it
// writes koine's own graphs only.
func (u *update) holdUpdate(holder Holder, held *HeldUpdate) {
	u.held, u.judged = held, nil
	u.meta.HasExpected = false // checked before
	u.fn = func(tx *Tx) (err error) {
		held.id, err = holder.Hold(tx, held)
		if err == nil && held.Meta.WhenHeld != nil {
			err = held.Meta.WhenHeld(tx, held.id)
		}
		return err
	}
}
