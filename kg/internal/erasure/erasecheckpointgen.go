package erasure

import (
	"cmp"
	"maps"
	"slices"

	"koine/kg/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// readGeneration adds a record to the table of generations. All terms must be known. The
// names of the graphs stay in the dictionary.
func (c *ErasedCheckpoint) readGeneration(r CheckpointRecord) error {
	if r.kind != 'N' {
		return nil
	}
	g, err := index.ParseGeneration(append(keys.GenerationPrefix(), r.Key...), r.Value)
	if err != nil {
		return err
	}
	name, known := c.terms[g.Graph.Number()]
	if !known {
		return codec.ErrMalformed
	}
	g.Name, c.used[g.Graph.Number()] = name, true
	if c.generations == nil {
		c.generations = index.NewGenerations()
	}
	c.generations.SetEntry(g)
	return nil
}

// byName replaces the generation in a statement by the name of its graph.
func (c *ErasedCheckpoint) byName(ids base.IDQuad) base.IDQuad {
	ids.Graph = c.generations.NameID(ids.Graph)
	return ids
}

// touchedInOrder lists the touched statements so that each generation of a graph comes
// after its predecessor.
func (c *ErasedCheckpoint) touchedInOrder() []base.IDQuad {
	return slices.SortedFunc(maps.Keys(c.touched), func(a, b base.IDQuad) int { return cmp.Compare(c.startOf(a.Graph), c.startOf(b.Graph)) })
}

// startOf returns the revision at which a generation became current: 0 for content under a
// graph's name, and a revision after all others for a generation that is being written.
func (c *ErasedCheckpoint) startOf(graph base.ID) base.Revision {
	switch g := c.generationOf(graph); {
	case g == nil:
		return 0
	case g.From == 0:
		return c.marker.Revision + 1
	default:
		return g.From
	}
}

// generationOf returns the generation with an id, or nil for a graph's name.
func (c *ErasedCheckpoint) generationOf(graph base.ID) *index.Generation {
	if c.generations == nil || graph.Tag() != keys.TagGeneration {
		return nil
	}
	return c.generations.Entries[base.Revision(graph.Number())]
}

// alignSince updates Since of a statement that a generation took over unchanged to the
// value that remains in the previous generation.
func (c *ErasedCheckpoint) alignSince(ids base.IDQuad, list []interval) {
	g := c.generationOf(ids.Graph)
	if g == nil {
		return
	}
	begins := c.startOf(ids.Graph)
	earlier, found := c.generations.IDAt(g.Graph, begins-1)
	if !found {
		return
	}
	before := ids
	before.Graph = earlier
	st, found := c.intervalBefore(before, begins)
	if !found {
		return
	}
	for i := range list {
		if list[i].from != 0 && list[i].from < begins && base.EqualAssertions(list[i].assertions, st.assertions) {
			list[i].from = st.from
		}
	}
}

// intervalBefore returns the interval of a touched statement before a revision, in the
// content under an id.
func (c *ErasedCheckpoint) intervalBefore(ids base.IDQuad, at base.Revision) (interval, bool) {
	for _, st := range c.touched[ids] {
		if st.from == 0 { // since its generation is current
			now := base.State{Since: 0, Assertions: slices.Clone(st.assertions)}
			c.generations.SettleState(&now, ids.Graph)
			st.from, st.assertions = now.Since, now.Assertions
		}
		if st.from < at && (st.to == 0 || st.to >= at) {
			return st, true
		}
	}
	return interval{}, false
}

// countErased counts the erased assertions of a current statement, or of one in a
// generation that is not current yet.
func (c *ErasedCheckpoint) countErased(ids base.IDQuad, q *base.Quad, was, is interval) {
	if was.to != 0 {
		return
	}
	var sum map[base.AgentID]int64
	switch g := c.generationOf(ids.Graph); {
	case g != nil && g.Abandoned:
		return
	case g != nil && g.From == 0:
		e := c.atCheckpoint.writingOf(g.Began)
		if sum = e.sources; len(is.assertions) == 0 {
			e.statements++
		} else {
			e.since[*q] = is.from
		}
	case c.generations.CurrentID(c.generations.NameID(ids.Graph)) != ids.Graph || !base.CountsForQuota(q.Predicate, q.Graph):
		return
	default:
		sum = c.atCheckpoint.erasedOf(q.Graph)
	}
	for _, a := range was.assertions {
		if _, stays := base.FindSource(is.assertions, a.Source); !stays {
			sum[a.Source]++
		}
	}
}

// countTouched calls countErased with the current state of a statement before and after
// the erasure.
func (c *ErasedCheckpoint) countTouched(ids base.IDQuad, q *base.Quad, was, is []interval) {
	stands := func(list []interval) (st interval) {
		for _, at := range list {
			if at.to == 0 {
				st = at
			}
		}
		return st
	}
	if stood := stands(was); len(stood.assertions) > 0 {
		c.countErased(ids, q, stood, stands(is))
	}
}
