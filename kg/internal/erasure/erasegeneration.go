package erasure

import (
	"maps"

	"koine/kg/internal/base"
)

// erasedGeneration is what was erased of a generation that does not count yet.
type erasedGeneration struct {
	sources    map[base.AgentID]int64      // assertions, by source
	since      map[base.Quad]base.Revision // of what is left, as eraser.since; 0 for the switch
	statements uint64                      // of which nothing is left
}

// erasedContents is what was erased of what graphs hold.
type erasedContents struct {
	// erased are, of what graphs hold that generations may replace, the assertions that
	// were erased, by graph and source; writing is what is known of generations that do
	// not count yet.
	erased  map[base.Term]map[base.AgentID]int64
	writing map[base.Revision]*erasedGeneration
}

func newErasedContents() *erasedContents {
	return &erasedContents{make(map[base.Term]map[base.AgentID]int64), make(map[base.Revision]*erasedGeneration)}
}

// erasedOf gives the assertions that were erased of a graph.
func (e *erasedContents) erasedOf(graph base.Term) map[base.AgentID]int64 {
	if e.erased[graph] == nil {
		e.erased[graph] = make(map[base.AgentID]int64)
	}
	return e.erased[graph]
}

// writingOf gives what is known of one that does not count yet.
func (e *erasedContents) writingOf(began base.Revision) *erasedGeneration {
	if e.writing[began] == nil {
		e.writing[began] = &erasedGeneration{sources: make(map[base.AgentID]int64), since: make(map[base.Quad]base.Revision)}
	}
	return e.writing[began]
}

// countErased counts the assertions that a change made or took away, and that are erased.
func (x *Eraser) countErased(was, is *base.Change, kept bool) {
	if !base.CountsForQuota(was.Quad.Predicate, was.Quad.Graph) {
		return
	}
	sum := x.erasedOf(was.Quad.Graph)
	add := func(c *base.Change, by int64) {
		for _, a := range c.After {
			if _, had := base.FindSource(c.Before, a.Source); !had {
				sum[a.Source] += by
			}
		}
		for _, a := range c.Before {
			if _, stays := base.FindSource(c.After, a.Source); !stays {
				sum[a.Source] -= by
			}
		}
	}
	add(was, 1)
	if kept {
		add(is, -1)
	}
}

// redactGeneration takes out of what a commit wrote of a generation what is erased, and says
// how many statements that were.
func (x *Eraser) redactGeneration(c *base.Commit) (touched uint64) {
	g := c.Written
	if g == nil || g.GivenUp {
		return 0
	}
	var kept []base.WrittenStatement
	for i := range g.Statements {
		s := g.Statements[i]
		q := s.Quad(g.Graph)
		left := s.Assertions
		switch {
		case !x.options.matches(&q):
		case x.options.Source == "":
			left = nil
		default:
			left = base.WithoutSource(s.Assertions, x.options.Source)
		}
		since, tracked := x.since[q]
		if !tracked && s.Since != 0 {
			stood, ok := x.stoodBefore(q, c.Revision)
			since, tracked = stood, ok && stood != s.Since
		}
		if len(left) == len(s.Assertions) && (!tracked || s.Since == 0) {
			kept = append(kept, s)
			continue
		}
		touched++
		e := x.writingOf(g.Began)
		for _, a := range s.Assertions {
			if _, stays := base.FindSource(left, a.Source); !stays {
				e.sources[a.Source]++
			}
		}
		if len(left) == 0 {
			e.statements++
			continue
		}
		if tracked && s.Since != 0 {
			s.Since = since
		}
		e.since[q] = s.Since
		s.Assertions = left
		kept = append(kept, s)
	}
	if touched > 0 {
		next := *g
		next.Statements = kept
		c.Written = &next
	}
	return touched
}

// redactReplacement brings what a commit says of the generation that counts from then on into
// line with what is left of it and of what counted before.
func (x *Eraser) redactReplacement(c *base.Commit) (altered bool) {
	r := c.Replaced
	if r == nil {
		return false
	}
	e := x.writing[r.Began]
	if e == nil {
		e = &erasedGeneration{}
	}
	delete(x.writing, r.Began)
	x.exchanged[r.Graph] = x.exchanged[r.Graph] || c.Revision > x.checkpoint
	shares := make(map[base.AgentID]int64)
	for _, s := range r.Sources {
		shares[s.Source] = s.By
	}
	for source, n := range e.sources {
		shares[source] -= n
	}
	for source, n := range x.erased[r.Graph] {
		shares[source] += n
	}
	altered = e.statements > 0 || len(e.sources) > 0 || len(x.erased[r.Graph]) > 0
	next := *r
	next.Sources, next.Statements = base.SortedShares(shares), r.Statements-min(r.Statements, e.statements)
	if altered { // the other counts are of what was erased too
		next.Uncounted, next.Before, next.Added, next.Removed = true, 0, 0, 0
	}
	c.Replaced = &next
	x.erased[r.Graph] = e.sources
	maps.DeleteFunc(x.since, func(q base.Quad, _ base.Revision) bool { return q.Graph == r.Graph })
	for q, since := range e.since {
		if since == 0 {
			since = c.Revision
		}
		x.since[q] = since
	}
	return altered
}

// stoodBefore is since when a statement has stood as it did before a revision, of one of
// which the log's head, which was cut, knew more.
func (x *Eraser) stoodBefore(q base.Quad, at base.Revision) (base.Revision, bool) {
	if x.sinceBefore == nil || x.exchanged[q.Graph] {
		return 0, false
	}
	return x.sinceBefore(q, at)
}
