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

	// ProposalID is the proposal that the commit holds (Held) or whose patches it applied,
	// "" for neither. HeldFor is the reason that the verdict of a held update gave.
	ProposalID string
	Held       bool
	HeldFor    string

	Changes []Change

	// Replaced describes the replacement of a graph's whole content, nil for none. Changes
	// does not list its effect on single statements.
	Replaced *GraphReplacement
	// Written is content that becomes current with a later commit, nil for none. Readers
	// of the log do not see it.
	Written *WrittenGeneration
}

// GraphReplacement is the replacement of a whole graph's content.
type GraphReplacement struct {
	Graph Term
	// Before and Statements are the numbers of statements before and after the
	// replacement. Added counts the statements that were added or got another assertion,
	// Removed those that were removed.
	Before, Statements, Added, Removed uint64
	// Uncounted tells that the counts are withheld, because they may include statements
	// that are hidden from the reader or erased.
	Uncounted bool
	// Deleted tells that the graph was deleted. Its earlier content is not readable at any
	// revision.
	Deleted bool
	// Anew, beside Deleted, tells that the name is about to be reused: the graph then
	// sorts among graphs like a new name.
	Anew bool

	Began   Revision      // the first commit that wrote to the generation
	Sources []SourceShare // changes of the counts by source
}

// Redacted returns the replacement for a reader, without the fields about how it was
// written. partial tells that some of the graph may be hidden from the reader; then the
// counts are withheld.
func (r *GraphReplacement) Redacted(partial bool) *GraphReplacement {
	if partial || r.Uncounted {
		return &GraphReplacement{Graph: r.Graph, Uncounted: true}
	}
	return &GraphReplacement{Graph: r.Graph, Before: r.Before, Statements: r.Statements, Added: r.Added, Removed: r.Removed}
}

// SourceShare is the change of the number of statements that a source backs.
type SourceShare struct {
	Source AgentID
	By     int64
}

// WrittenGeneration is a part of a graph's content that becomes current later, or never.
type WrittenGeneration struct {
	Graph      Term
	Began      Revision
	Statements []WrittenStatement
	// GivenUp tells that the generation was given up: it never becomes current, and no
	// commit adds to it.
	GivenUp bool
}

// WrittenStatement is a statement of a generation. Its graph is that of the generation. A
// zero Since, and a zero Revision of an assertion, stand for the commit that makes the
// generation current.
type WrittenStatement struct {
	Subject, Predicate, Object Term
	Since                      Revision
	Assertions                 []Assertion
}

// Quad returns the quad of the statement in the graph.
func (s *WrittenStatement) Quad(graph Term) Quad {
	return Quad{s.Subject, s.Predicate, s.Object, graph}
}

// Change is one effect of a commit. The log has atomic changes, Add and Remove; a reader sees
// the Add of a Replace together with the statements removed by it.
type Change struct {
	Op   Op
	Quad Quad
	// Assertion was made (Add, Replace) or withdrawn (Remove; the first one if the whole
	// statement was removed).
	Assertion Assertion
	// Before and After are the assertions of the statement before and after the change.
	// Without assertions the statement does not exist.
	Before, After []Assertion
	// Since is the revision from which on the statement had the assertions Before, 0
	// without them.
	Since Revision
	// Replaces, on the Add of a replace patch, has the indexes of the changes in this
	// commit that removed the other statements. ReplacedBy, on those, is the index of that
	// Add. Otherwise they are nil and -1.
	Replaces   []uint32
	ReplacedBy int
}

// ChangesGraph reports whether the commit changes a statement of the graph.
func (c *Commit) ChangesGraph(graph Term) bool {
	return slices.ContainsFunc(c.Changes, func(ch Change) bool { return ch.Quad.Graph == graph })
}

// WithMotives returns the commit for a reader. It includes the justification and the
// references only if the principal made the commit or can read all of its changes, because
// these texts may describe any of them. readable reports this of statements, seesAll of a
// graph that was replaced as a whole. Statements of a generation that is not current are
// not readable.
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

// madeBy reports whether the principal is the commit's principal or actor.
func (c *Commit) madeBy(p *Principal) bool { return c.Principal == p.ID || c.Actor == p.ID }

func (c *Commit) withoutMotives() *Commit {
	out := *c
	out.Justification, out.TaskID, out.SessionID, out.MessageID, out.IdempotencyKey = "", "", "", "", ""
	out.ContentHash = [32]byte{} // it covers the hidden part
	return &out
}

// SortedShares returns the nonzero shares in the order of the sources.
func SortedShares(shares map[AgentID]int64) (out []SourceShare) {
	for _, source := range slices.SortedFunc(maps.Keys(shares), func(a, b AgentID) int { return cmp.Compare(a, b) }) {
		if by := shares[source]; by != 0 {
			out = append(out, SourceShare{source, by})
		}
	}
	return out
}

// SubjectInGraph is a subject in a graph, by ids.
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

// DependencySeed is the seed of the hashes of dependencies. A collision costs an
// unnecessary judgement and nothing else.
var DependencySeed = maphash.MakeSeed()

// Number returns the hash of the dependency.
func (d Dependency) Number() uint64 { return maphash.Comparable(DependencySeed, d) }

// ChangedNumbers yields the hashes of the dependencies that the commit changes.
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
