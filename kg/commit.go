package kg

import (
	"time"
)

// Meta states who commits, why, and under which conditions.
type Meta struct {
	// Principal is the authenticated caller. Actor is the agent that it acts for and the
	// source of assertions that name none; "" means Principal.ID.
	Principal Principal
	Actor     AgentID

	Justification string
	TaskID        string
	SessionID     string
	MessageID     string

	// IdempotencyKey makes a retry safe, together with ContentHash, a hash of the request: the
	// same key of the same principal with the same hash returns the first answer
	// (Receipt.Replayed), with another hash CodeIdempotencyConflict.
	IdempotencyKey string
	ContentHash    [32]byte

	// ExpectedRevision, used if HasExpected is set, refuses the update with
	// CodeRevisionConflict if a statement of an affected (graph, subject) pair changed after
	// it.
	ExpectedRevision Revision
	HasExpected      bool

	// ProposalID names the proposal that the update applies, and Reviewed the rules that its
	// reviews have satisfied. Only package review sets them.
	ProposalID string
	Reviewed   []string

	// Method is the call that requested the update, such as "knowledge/update", and Metadata
	// the JSON object in the request. Verifiers read them; they are not stored.
	Method   string
	Metadata []byte

	// WhenHeld, if set, replaces the update's function if the update is held, in the commit
	// that stores it as a proposal: it writes, with Tx.ApplyOwn, the part that does not wait
	// for the review. Without it an update that calls ApplyOwn cannot be held. It must give
	// the same result each time.
	WhenHeld func(tx *Tx, proposalID string) error

	// DryRun judges the update and counts its changes, and writes nothing.
	DryRun bool
}

// Receipt is the result of an update.
type Receipt struct {
	// Revision is the commit's revision, or the newest one if the update had no effect.
	Revision Revision
	// Position is the position behind the commit.
	Position Position
	// Time is the commit's time; zero without a commit.
	Time time.Time
	// Committed reports whether there is a commit. An update without effect makes none, unless
	// it carries an idempotency key.
	Committed bool
	// Replayed means that this is the first answer to an earlier update with the same
	// idempotency key.
	Replayed bool
	DryRun   bool
	// Affected is the number of changes.
	Affected int
	// Replaced is the replacement of a whole graph by the update, nil for none.
	Replaced *GraphReplacement
	// Subjects lists the distinct subjects of the changed statements in order.
	Subjects []Term
	Verdict  Verdict
	// ProposalID is the id of the proposal, if the update was held.
	ProposalID string
}

// Justification returns the text that gives the reason for a commit. It returns "" if the
// commit gives none or is no longer kept. Unless the principal made the commit, it also
// returns "" if the commit changes a graph that the principal may not read, or replaced a
// graph that is partly hidden from it. Call it with revisions of visible assertions.
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
