package erasure

import (
	"maps"

	"koine/kg/base"
)

// erasedGeneration counts the erased content of a generation that is not current yet.
type erasedGeneration struct {
	sources    map[base.AgentID]int64      // assertions, by source
	since      map[base.Quad]base.Revision // of the rest, as Eraser.since; 0 for the generation's switch
	statements uint64                      // without a remaining assertion
}

// erasedContents counts the erased content of graphs.
type erasedContents struct {
	// erased counts the erased assertions of graphs that a generation may replace, by
	// graph and source. writing has the counts of generations that are not current yet.
	erased  map[base.Term]map[base.AgentID]int64
	writing map[base.Revision]*erasedGeneration
}

func newErasedContents() *erasedContents {
	return &erasedContents{make(map[base.Term]map[base.AgentID]int64), make(map[base.Revision]*erasedGeneration)}
}

// erasedOf returns the counts of a graph.
func (e *erasedContents) erasedOf(graph base.Term) map[base.AgentID]int64 {
	if e.erased[graph] == nil {
		e.erased[graph] = make(map[base.AgentID]int64)
	}
	return e.erased[graph]
}

// writingOf returns the counts of a generation that is not current yet.
func (e *erasedContents) writingOf(began base.Revision) *erasedGeneration {
	if e.writing[began] == nil {
		e.writing[began] = &erasedGeneration{sources: make(map[base.AgentID]int64), since: make(map[base.Quad]base.Revision)}
	}
	return e.writing[began]
}

// countErased counts the erased assertions that a change had added or removed.
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

// redactGeneration removes the erased content from the part of a generation that a commit
// wrote, and returns the number of statements changed.
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

// redactReplacement updates the counts of a graph replacement to the content that remains
// before and after it.
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
	if altered { // the other counts include erased content
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

// stoodBefore returns Since of a statement before a revision, if only the checkpoint
// before a trimmed log has it.
func (x *Eraser) stoodBefore(q base.Quad, at base.Revision) (base.Revision, bool) {
	if x.sinceBefore == nil || x.exchanged[q.Graph] {
		return 0, false
	}
	return x.sinceBefore(q, at)
}
