package kg

import (
	"slices"
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

// Bounds on the texts of Meta, in bytes.
const (
	MaxJustificationBytes  = 16 << 10
	MaxIdempotencyKeyBytes = 256
	MaxReferenceBytes      = 1 << 10 // task, session, message
)

// Commit is an accepted update: what changed, and who, when and why. Not to be
// changed by who gets it.
type Commit struct {
	Revision  Revision
	Time      time.Time // UTC, milliseconds; never before that of an earlier commit
	Principal AgentID
	Actor     AgentID

	Justification  string
	TaskID         string
	SessionID      string
	MessageID      string
	IdempotencyKey string
	ContentHash    [32]byte

	// ProposalID names the proposal that the commit keeps (Held), or whose patches
	// it applied; "" for neither. HeldFor is what the verdict of the held update
	// told.
	ProposalID string
	Held       bool
	HeldFor    string

	Changes []Change

	// Replaced tells of the graph whose content the commit exchanged as a whole, nil
	// for none. What that did to single statements is in no Changes.
	Replaced *GraphReplacement
	// Written is what the commit wrote that counts only from a later one on, nil for
	// nothing. Readers of the log see nothing of it.
	Written *writtenGeneration
}

// GraphReplacement is the exchange of a whole graph's content.
type GraphReplacement struct {
	Graph Term
	// Before is how many statements the graph held, Statements how many it holds from
	// then on. Added counts those that came or got another assertion, Removed those
	// that went.
	Before, Statements, Added, Removed uint64
	// Uncounted tells that the counts are not told: they may be of what is hidden from
	// the reader, or of what was erased.
	Uncounted bool
	// Deleted tells that the graph was deleted: what its name stood for before is
	// found at no revision any more.
	Deleted bool
	// Anew, beside Deleted, tells that the name is about to be used again: from then on
	// the graph has the place in the order of graphs that a new name has.
	Anew bool

	Began   Revision      // of the generation: the first commit that wrote to it
	Sources []sourceShare // by how much what they back changed
}

// shown is the replacement for a reader; partial tells that some of the graph may be
// hidden from it. How it was written is nobody's matter.
func (r *GraphReplacement) shown(partial bool) *GraphReplacement {
	if partial || r.Uncounted {
		return &GraphReplacement{Graph: r.Graph, Uncounted: true}
	}
	return &GraphReplacement{Graph: r.Graph, Before: r.Before, Statements: r.Statements, Added: r.Added, Removed: r.Removed}
}

// sourceShare is by how much the number of statements changed that a source backs.
type sourceShare struct {
	source AgentID
	by     int64
}

// writtenGeneration is a part of the content of a graph that counts later, or never.
type writtenGeneration struct {
	graph      Term
	began      Revision
	statements []writtenStatement
	// givenUp tells that the generation never counts, and that nothing more of it
	// comes.
	givenUp bool
}

// writtenStatement is one in a generation. Its graph is the generation's. A since of 0,
// and a revision of 0 of an assertion, stand for the commit by which the generation
// comes to count.
type writtenStatement struct {
	subject, predicate, object Term
	since                      Revision
	assertions                 []Assertion
}

func (s *writtenStatement) quad(graph Term) Quad {
	return Quad{s.subject, s.predicate, s.object, graph}
}

// Change is one effect inside a commit. The log holds atomic changes, Add and
// Remove; a reader sees the add of a Replace with what it removed.
type Change struct {
	Op   Op
	Quad Quad
	// Assertion is the one that was made (Add, Replace) or withdrawn (Remove;
	// the first in order when the whole statement went).
	Assertion Assertion
	// Before and After are the assertions that backed the statement before and
	// after this change; none means that the statement did not exist.
	Before, After []Assertion
	// Since is the revision from which Before had stood, 0 without Before.
	Since Revision
	// Replaces, on the Add of a replace patch, holds the indexes of the changes
	// in this commit that took the other statements away; ReplacedBy, on those,
	// is the index of that Add. Both sides are absent (nil, -1) otherwise.
	Replaces   []uint32
	ReplacedBy int
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

// changes tells whether the commit changes a statement of the graph.
func (c *Commit) changes(graph Term) bool {
	return slices.ContainsFunc(c.Changes, func(ch Change) bool { return ch.Quad.Graph == graph })
}

// withMotives returns the commit as its reader sees it: with why it was made if the
// principal made it or sees all that it changed, because that may speak of all of it. Of
// statements readable tells that, and of a graph that was replaced as a whole seesAll.
// Statements of a generation that does not count are seen by nobody.
func (c *Commit) withMotives(p *Principal, readable func(*Quad) bool, seesAll func(*GraphReplacement) bool) *Commit {
	if c.madeBy(p) || c.Justification+c.TaskID+c.SessionID+c.MessageID+c.IdempotencyKey == "" {
		return c
	}
	if c.Written != nil || c.Replaced != nil && (c.Replaced.Uncounted || c.Replaced.Deleted || !seesAll(c.Replaced)) {
		return c.withoutMotives()
	}
	var last *Quad
	for i := range c.Changes {
		q := &c.Changes[i].Quad
		if last != nil && q.Graph == last.Graph && q.Predicate == last.Predicate {
			continue
		}
		if last = q; !readable(q) {
			return c.withoutMotives()
		}
	}
	return c
}

// madeBy tells whether the principal made the commit, or it was made in its name.
func (c *Commit) madeBy(p *Principal) bool { return c.Principal == p.ID || c.Actor == p.ID }

func (c *Commit) withoutMotives() *Commit {
	out := *c
	out.Justification, out.TaskID, out.SessionID, out.MessageID, out.IdempotencyKey = "", "", "", "", ""
	out.ContentHash = [32]byte{} // of the hidden part too
	return &out
}
