package base

import (
	"cmp"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"time"
)

// Bounds on the texts of Meta, in bytes.
const (
	MaxJustificationBytes  = 16 << 10
	MaxIdempotencyKeyBytes = 256
	MaxReferenceBytes      = 1 << 10 // task, session, message
)

// Commit is an accepted update in the log: its changes, the principal, the time and the
// reason. It is read-only.
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
	Written *WrittenGeneration
}

// GraphReplacement is the replacement of a whole graph's content.
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
	Sources []SourceShare // by how much what they back changed
}

// Redacted is the replacement for a reader; partial tells that some of the graph may be
// hidden from it. How it was written is nobody's matter.
func (r *GraphReplacement) Redacted(partial bool) *GraphReplacement {
	if partial || r.Uncounted {
		return &GraphReplacement{Graph: r.Graph, Uncounted: true}
	}
	return &GraphReplacement{Graph: r.Graph, Before: r.Before, Statements: r.Statements, Added: r.Added, Removed: r.Removed}
}

// SourceShare is by how much the number of statements changed that a source backs.
type SourceShare struct {
	Source AgentID
	By     int64
}

// WrittenGeneration is a part of the content of a graph that counts later, or never.
type WrittenGeneration struct {
	Graph      Term
	Began      Revision
	Statements []WrittenStatement
	// GivenUp tells that the generation never counts, and that nothing more of it
	// comes.
	GivenUp bool
}

// WrittenStatement is one in a generation. Its graph is the generation's. A since of 0,
// and a revision of 0 of an assertion, stand for the commit by which the generation
// comes to count.
type WrittenStatement struct {
	Subject, Predicate, Object Term
	Since                      Revision
	Assertions                 []Assertion
}

func (s *WrittenStatement) Quad(graph Term) Quad {
	return Quad{s.Subject, s.Predicate, s.Object, graph}
}

// Change is one effect of a commit. The log has atomic changes, Add and Remove; a reader sees
// the Add of a Replace together with the statements removed by it.
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

// ChangesGraph tells whether the commit changes a statement of the graph.
func (c *Commit) ChangesGraph(graph Term) bool {
	return slices.ContainsFunc(c.Changes, func(ch Change) bool { return ch.Quad.Graph == graph })
}

// WithMotives returns the commit as its reader sees it: with why it was made if the
// principal made it or sees all that it changed, because that may speak of all of it. Of
// statements readable tells that, and of a graph that was replaced as a whole seesAll.
// Statements of a generation that does not count are seen by nobody.
func (c *Commit) WithMotives(p *Principal, readable func(*Quad) bool, seesAll func(*GraphReplacement) bool) *Commit {
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

func SortedShares(shares map[AgentID]int64) (out []SourceShare) {
	for _, source := range slices.SortedFunc(maps.Keys(shares), func(a, b AgentID) int { return cmp.Compare(a, b) }) {
		if by := shares[source]; by != 0 {
			out = append(out, SourceShare{source, by})
		}
	}
	return out
}

type SubjectInGraph struct{ Graph, Subject ID }

// Dependency is an input of a verdict, which holds until a commit changes one. It is one of
//   - the statements with this Node as their subject and this Predicate, or any predicate if
//     Predicate is zero;
//   - with Inverse, those with this Node as their object and this Predicate;
//   - with Graph, one of koine's own, all statements in it.
type Dependency struct {
	Node, Predicate Term
	Inverse         bool
	Graph           Term
}

// DependencySeed makes numbers of dependencies. Two that get the same number are
// taken for one, which costs a judgement and nothing else.
var DependencySeed = maphash.MakeSeed()

func (d Dependency) Number() uint64 { return maphash.Comparable(DependencySeed, d) }

// ChangedNumbers yields the numbers of the dependencies that the changes of a commit change.
func (c *Commit) ChangedNumbers() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range c.Changes {
			q := &c.Changes[i].Quad
			if !yield(Dependency{Node: q.Subject, Predicate: q.Predicate}.Number()) ||
				!yield(Dependency{Node: q.Subject}.Number()) ||
				!yield(Dependency{Node: q.Object, Predicate: q.Predicate, Inverse: true}.Number()) ||
				IsOwnGraph(q.Graph) && !yield(Dependency{Graph: q.Graph}.Number()) {
				return
			}
		}
	}
}
