package kg

import "context"

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
)

// Verdict is the judgement on an update.
type Verdict struct {
	Outcome Outcome
	// Reason is short ("Constraint Violation"); Details explains.
	Reason  string
	Details string
}

// err is what the caller of a breach gets.
func (v Verdict) err() error {
	if v.Outcome != Violation {
		return nil
	}
	return errRejected(v)
}

// Judgement is what a Verifier is asked about.
type Judgement struct {
	Meta Meta
	// Changes that the update makes, in order.
	Changes []Change
	// Before reads the graph without them.
	Before *Snapshot
}

// Verifier judges updates before they are committed. It runs on the caller's
// goroutine against a snapshot, and once more under the committer only if one
// of the affected subjects changed since, or the update now makes other changes
// because something else that it read did. It must be safe for concurrent use
// and must not call Store.Update.
type Verifier interface {
	Verify(ctx context.Context, j Judgement) (Verdict, error)
}
