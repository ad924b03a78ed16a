package kg

import (
	"time"
)

// Meta says who commits, why, and under which conditions.
type Meta struct {
	// Principal is the authenticated caller; Actor is the agent it acts for
	// and the source of assertions that name none. "" means Principal.ID.
	Principal Principal
	Actor     AgentID

	Justification string
	TaskID        string
	SessionID     string
	MessageID     string

	// IdempotencyKey, with ContentHash over what was asked for, makes a retry
	// safe: the same key of the same principal with the same content gets the
	// first answer (Receipt.Replayed), other content CodeIdempotencyConflict.
	IdempotencyKey string
	ContentHash    [32]byte

	// ExpectedRevision refuses the update with CodeRevisionConflict when a
	// statement of an affected (graph, subject) pair changed after it. Used
	// only if HasExpected.
	ExpectedRevision Revision
	HasExpected      bool

	// ProposalID names the proposal whose patches these are, and Reviewed the
	// rules that its reviews have satisfied. Only package review sets them.
	ProposalID string
	Reviewed   []string

	// Method is how the update was asked for, such as "knowledge/update", and
	// Metadata the JSON object that came with it. Verifiers look at them; they are
	// not stored.
	Method   string
	Metadata []byte

	// WhenHeld, if set, is called in the place of the update's function where the
	// update is held, in the commit that keeps it as a proposal: it writes, with
	// Tx.ApplyOwn, what does not wait. Without it an update that calls ApplyOwn
	// cannot be held. It must give the same whenever it is called.
	WhenHeld func(tx *Tx, proposalID string) error

	// DryRun judges and counts, and writes nothing.
	DryRun bool
}

// Receipt is the answer to an update.
type Receipt struct {
	// Revision that the update made, or the head's when it had no effect.
	Revision Revision
	// Position behind the commit.
	Position Position
	// Time of the commit; zero when there is none.
	Time time.Time
	// Committed tells whether there is a commit. An update without effect makes
	// none, unless it carries an idempotency key.
	Committed bool
	// Replayed tells that this is the first answer to an earlier update with
	// the same idempotency key.
	Replayed bool
	DryRun   bool
	// Affected counts the changes.
	Affected int
	// Replaced is the exchange of a whole graph that the update made, nil for none.
	Replaced *GraphReplacement
	// Subjects are those whose statements changed, in order, each once.
	Subjects []Term
	Verdict  Verdict
	// ProposalID names the proposal that a held update became.
	ProposalID string
}

// Justification is why the commit of a revision was made, as far as the principal may
// know: "" where the commit gives no reason or is not kept any more, and where it
// changes something that the principal may not read, or replaced a graph of which
// something may be hidden from it, unless the principal made it.
// It is for the revisions of assertions that the snapshot shows.
func (s *Snapshot) Justification(r Revision) (string, error) {
	if s.commit == nil || r == 0 || r > s.position.Revision {
		return "", nil
	}
	c, err := s.commit(r)
	if CodeOf(err) == CodeRevisionGone {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	asked := lastAnswer{current: VersionOf(s.access)}
	readable := func(graph Term) bool {
		return asked.mayRead(s.access, &s.view.Principal, graph) && !s.generations.Hides(graph, c.Revision)
	}
	return c.WithMotives(&s.view.Principal, func(q *Quad) bool {
		return readable(q.Graph) && (s.hides == nil || !s.hides(q.Predicate, q.Graph))
	}, func(r *GraphReplacement) bool {
		return readable(r.Graph) && s.hides == nil && s.view.Doubts == nil && (s.forgets == nil || !s.forgets(r.Graph))
	}).Justification, nil
}
