package kg

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Outcome is how a judgement ends.
type Outcome uint8

// The outcomes. The zero Outcome is Accepted.
const (
	Accepted Outcome = iota
	// Rejected refuses the update; the caller gets a result that says so.
	Rejected
	// Violation refuses it as a breach of the operator's rules; the caller gets
	// an error with CodeConstraintViolation.
	Violation
	// Held keeps it for review: nothing is written, and Hold says what it takes.
	Held
)

// Verdict is the judgement on an update.
type Verdict struct {
	Outcome Outcome
	// Reason is short ("Constraint Violation"); Details explains.
	Reason  string
	Details string
	// Hold is set where Outcome is Held. Not to be changed.
	Hold *Hold
	// Depends lists what an Accepted verdict was made from beyond the changes outside
	// koine's own graphs and what stands of their subjects: when any of it changes
	// before the commit, the update is judged again.
	Depends []Dependency
	// Own lists the subjects in koine's own graphs that the verdict is about. When the
	// update makes other changes of one of them, but for its number (Sequence) and the
	// time of the commit, it is judged again. Other changes in koine's own graphs decide
	// nothing.
	Own []Term
}

// Hold is what it takes to let a held update through.
type Hold struct {
	// Approvals is how many other principals have to approve; at least 1 counts.
	Approvals int
	// Roles lists who may review beside administrators; nil means RoleReviewer.
	Roles []string
	// Expires is how long it may wait; 0 leaves that to who keeps it.
	Expires time.Duration
	// Rules names what held it.
	Rules []string
}

// rejection is what the caller of a breach gets.
func (v Verdict) rejection() error {
	if v.Outcome != Violation {
		return nil
	}
	return errRejected(v)
}

// Judgement is what a Verifier is asked about.
type Judgement struct {
	Meta Meta
	// Changes that the update makes, in order, but for those of what proposals
	// would add. Links between changes (Replaces, ReplacedBy) keep their meaning
	// where none was left out.
	Changes []Change
	// Before reads the graph without them, After with them; both as the caller
	// sees it, koine's own graphs included but for what proposals would add. They end with the judgement.
	Before, After *Snapshot
}

// Verifier judges updates before they are committed. It runs on the caller's
// goroutine against a snapshot, and once more, there too, if one of the affected
// subjects or of what the verdict depends on changed before the commit (or
// Options.RulesVersion), or the update came to other changes because something else
// that it read did. An update that is overtaken MaxJudgements times is refused with
// CodeOverloaded. Nobody else waits while it runs. It must be safe for concurrent
// use, must not call Store.Update, and ends soon after its context does.
type Verifier interface {
	Verify(ctx context.Context, j Judgement) (Verdict, error)
}

// severity orders the outcomes: where several verifiers disagree, the hardest
// one counts.
var severity = [...]int{Accepted: 0, Held: 1, Rejected: 2, Violation: 3}

// Idler is a Verifier that may have nothing to judge by. While it is idle it is
// not asked, and updates go without the judging. What ends that is a commit to one
// of koine's own graphs: Options.OnSystemChange has told of it before the next
// update is executed.
type Idler interface{ Idle() bool }

// needsJudgement tells whether updates have to be judged.
func (s *Store) needsJudgement() bool {
	return s.options.Verifier != nil && !isIdle(s.options.Verifier)
}

func isIdle(v Verifier) bool {
	i, ok := v.(Idler)
	return ok && i.Idle()
}

// Verifiers asks several verifiers in turn. The hardest outcome counts, with the
// reason of the first that came to it and the details of all that did; what holds
// an update adds up. An error of one is that of all.
func Verifiers(list ...Verifier) Verifier { return verifiers(list) }

type verifiers []Verifier

// Idle tells whether all of them are.
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

// And is the verdict of both: the harder outcome, of equal ones the first with
// the details of both.
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

// merge is what it takes to satisfy both.
func (h *Hold) merge(o *Hold) *Hold {
	if h == nil || o == nil {
		return cmp.Or(h, o)
	}
	both := &Hold{Approvals: max(h.Approvals, o.Approvals), Rules: slices.Concat(h.Rules, o.Rules), Expires: h.Expires}
	if o.Expires > 0 && (both.Expires == 0 || o.Expires < both.Expires) {
		both.Expires = o.Expires
	}
	// Only who may review for the one and for the other, beside administrators.
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

// reviewerRoles are those that may review.
func (h *Hold) reviewerRoles() []string {
	if h.Roles == nil {
		return []string{RoleReviewer}
	}
	return h.Roles
}

// ReasonHeld is the reason of the verdict on a held update.
const ReasonHeld = "Pending Review"

// MaxHeldForBytes bounds what a commit tells about why an update was held.
const MaxHeldForBytes = 4 << 10

// HeldUpdate is an update that was not made, because its verdict is Held.
type HeldUpdate struct {
	Meta Meta
	// Patches are those that the update applied, in order and normalised: to
	// apply them is to make the update.
	Patches []Patch
	Verdict Verdict

	id    string // of what keeps it
	rules uint64 // Options.RulesVersion, of the verdict
}

// Holder keeps held updates, so that somebody can decide about them.
type Holder interface {
	// Hold writes, in a commit of its own and with Tx.ApplyOwn, what is kept of
	// the update, and gives the id under which it is found. It is called under
	// the committer, once for each held update. Where the same is kept already it
	// may write nothing, and give that id. An error refuses the update.
	Hold(tx *Tx, h *HeldUpdate) (id string, err error)
}

// shouldHold tells whether an update with this verdict is handed to the holder. One
// that comes out of a review already is not held twice.
func (s *Store) shouldHold(u *update, v Verdict) bool {
	return v.Outcome == Held && s.options.Holder != nil && u.held == nil && !u.patient && u.meta.ProposalID == ""
}

// forOwn is the verdict on an update that changed what is koine's own too: that
// part cannot be kept as patches. Unless the update says what becomes of it
// (Meta.WhenHeld), it is refused where it would be held.
func (v Verdict) forOwn(tx *Tx) Verdict {
	if v.Outcome == Held && tx.own && tx.meta.ProposalID == "" && tx.meta.WhenHeld == nil {
		return Verdict{Outcome: Rejected, Reason: "Needs Review", Details: v.Details}
	}
	return v
}

// heldUpdate is what is kept of an update, nil for one that is not held.
func heldUpdate(u *update, tx *Tx, v Verdict, rules uint64) *HeldUpdate {
	if v.Outcome != Held {
		return nil
	}
	if len(v.Details) > MaxHeldForBytes {
		v.Details = strings.ToValidUTF8(v.Details[:MaxHeldForBytes], "")
	}
	return &HeldUpdate{Meta: u.meta, Patches: tx.patches, Verdict: v, rules: rules}
}

// holdUpdate makes the update one that keeps what it would have done. It is not
// judged: what it writes is koine's own.
func (u *update) holdUpdate(holder Holder, held *HeldUpdate) {
	u.held, u.judged = held, nil
	u.meta.HasExpected = false // that was looked at before
	u.fn = func(tx *Tx) (err error) {
		held.id, err = holder.Hold(tx, held)
		if err == nil && held.Meta.WhenHeld != nil {
			err = held.Meta.WhenHeld(tx, held.id)
		}
		return err
	}
}
