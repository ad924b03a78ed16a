package kg

import (
	"context"
	"hash/maphash"
	"iter"
	"slices"
)

// Dependency is something that a verdict was made from. The verdict is good for
// as long as no commit changes it. It is one of
//   - a statement with this Node as its subject and this Predicate, or, where
//     Predicate is zero, with any;
//   - with Inverse, one with this Node as its object and this Predicate;
//   - with Graph, which is one of koine's own, any statement in it.
type Dependency struct {
	Node, Predicate Term
	Inverse         bool
	Graph           Term
}

// dependencySeed makes numbers of dependencies. Two that get the same number are
// taken for one, which costs a judgement and nothing else.
var dependencySeed = maphash.MakeSeed()

func (d Dependency) number() uint64 { return maphash.Comparable(dependencySeed, d) }

// numbers is what is kept of dependencies while an update waits.
func numbers(list []Dependency) []uint64 {
	out := make([]uint64, len(list))
	for i, d := range list {
		out[i] = d.number()
	}
	return out
}

// recently tells in which revision things were last changed that a verdict may
// depend on, for the newest revisions. It belongs to the committer.
type recently struct {
	last map[uint64]Revision
	// since is the revision up to which nothing is known.
	since Revision
	most  int // stands in for maxRecent; for tests
}

// maxRecent bounds what recently remembers: three numbers or four for each change.
const maxRecent = 1 << 17

// note takes a commit in.
func (r *recently) note(c *Commit) {
	most := r.most
	if most == 0 {
		most = maxRecent
	}
	if len(c.Changes) > most/4 || c.Replaced != nil {
		r.forget(c.Revision)
		return
	}
	if len(r.last) > most {
		r.forget(c.Revision - 1)
	}
	if r.last == nil {
		r.last = make(map[uint64]Revision)
	}
	for n := range c.changedNumbers() {
		r.last[n] = c.Revision
	}
}

// changedNumbers yields the numbers of the dependencies that the changes of a commit change.
func (c *Commit) changedNumbers() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range c.Changes {
			q := &c.Changes[i].Quad
			if !yield(Dependency{Node: q.Subject, Predicate: q.Predicate}.number()) ||
				!yield(Dependency{Node: q.Subject}.number()) ||
				!yield(Dependency{Node: q.Object, Predicate: q.Predicate, Inverse: true}.number()) ||
				IsOwnGraph(q.Graph) && !yield(Dependency{Graph: q.Graph}.number()) {
				return
			}
		}
	}
}

// changedIn reports whether one of the commits behind a revision, up to newest, changed one
// of the dependencies, and which; 0 where that is not known, because a commit replaced a
// graph as a whole or is not in the log any more. depends is sorted.
func changedIn(ctx context.Context, depends []uint64, after, newest Revision, commit func(Revision) (*Commit, error)) (which uint64, changed bool, err error) {
	for r := after + 1; r <= newest && len(depends) > 0; r++ {
		if ctx.Err() != nil {
			return 0, false, errGivenUp(ctx)
		}
		c, err := commit(r)
		if CodeOf(err) == CodeRevisionGone || err == nil && c.Replaced != nil {
			return 0, true, nil
		}
		if err != nil {
			return 0, false, err
		}
		for n := range c.changedNumbers() {
			if _, found := slices.BinarySearch(depends, n); found {
				return n, true, nil
			}
		}
	}
	return 0, false, nil
}

// forget makes everything up to the revision unknown.
func (r *recently) forget(up Revision) {
	clear(r.last)
	r.since = up
}

// changed tells whether any of the dependencies may have changed after the
// revision, and which; 0 where that is not known.
func (r *recently) changed(depends []uint64, after Revision) (which uint64, changed bool) {
	if len(depends) == 0 {
		return 0, false
	}
	if after < r.since {
		return 0, true
	}
	for _, n := range depends {
		if r.last[n] > after {
			return n, true
		}
	}
	return 0, false
}
