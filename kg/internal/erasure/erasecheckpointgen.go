package erasure

import (
	"cmp"
	"maps"
	"slices"

	"koine/kg/internal/base"
	"koine/kg/internal/codec"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// readGeneration takes the table of generations in, when all terms are known. The names of
// their graphs stay.
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

// byName is a statement with its graph's name in the place of the generation.
func (c *ErasedCheckpoint) byName(ids base.IDQuad) base.IDQuad {
	ids.Graph = c.generations.NameID(ids.Graph)
	return ids
}

// touchedInOrder lists what was touched so that each generation of a graph comes behind the one
// that it follows on.
func (c *ErasedCheckpoint) touchedInOrder() []base.IDQuad {
	return slices.SortedFunc(maps.Keys(c.touched), func(a, b base.IDQuad) int { return cmp.Compare(c.startOf(a.Graph), c.startOf(b.Graph)) })
}

// place is from when on a generation counts, 0 for what is kept under a graph's name; one
// that is being written is behind all.
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

// generationOf is the generation that is kept under an id, nil for a graph's name.
func (c *ErasedCheckpoint) generationOf(graph base.ID) *index.Generation {
	if c.generations == nil || graph.Tag() != keys.TagGeneration {
		return nil
	}
	return c.generations.Entries[base.Revision(graph.Number())]
}

// alignSince brings since when a statement has stood in a generation into line with what is
// left of it in the one before, from which it was taken over.
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

// intervalBefore is how a statement that was touched stood before a revision in the content under
// an id.
func (c *ErasedCheckpoint) intervalBefore(ids base.IDQuad, at base.Revision) (interval, bool) {
	for _, st := range c.touched[ids] {
		if st.from == 0 { // since its generation counts
			now := base.State{0, slices.Clone(st.assertions)}
			c.generations.SettleState(&now, ids.Graph)
			st.from, st.assertions = now.Since, now.Assertions
		}
		if st.from < at && (st.to == 0 || st.to >= at) {
			return st, true
		}
	}
	return interval{}, false
}

// countErased counts the assertions that were erased of a statement that stands, in what its
// graph holds or in a generation that does not count yet.
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

// countTouched is note for the times in which a statement stood, and for what is left.
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
