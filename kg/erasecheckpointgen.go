package kg

import (
	"cmp"
	"maps"
	"slices"

	"koine/kg/internal/codec"
	"koine/kg/internal/keys"
)

// generation takes the table of generations in, when all terms are known. The names of
// their graphs stay.
func (c *erasedCheckpoint) generation(r checkpointRecord) error {
	if r.kind != 'N' {
		return nil
	}
	g, err := parseGeneration(append(keys.GenerationPrefix(), r.key...), r.value)
	if err != nil {
		return err
	}
	name, known := c.terms[g.graph.Number()]
	if !known {
		return codec.ErrMalformed
	}
	g.name, c.used[g.graph.Number()] = name, true
	if c.generations == nil {
		c.generations = newGenerations()
	}
	c.generations.setEntry(g)
	return nil
}

// byName is a statement with its graph's name in the place of the generation.
func (c *erasedCheckpoint) byName(ids IDQuad) IDQuad {
	ids.Graph = c.generations.name(ids.Graph)
	return ids
}

// inOrder lists what was touched so that each generation of a graph comes behind the one
// that it follows on.
func (c *erasedCheckpoint) inOrder() []IDQuad {
	return slices.SortedFunc(maps.Keys(c.touched), func(a, b IDQuad) int { return cmp.Compare(c.turnOf(a.Graph), c.turnOf(b.Graph)) })
}

// place is from when on a generation counts, 0 for what is kept under a graph's name; one
// that is being written is behind all.
func (c *erasedCheckpoint) turnOf(graph ID) Revision {
	switch g := c.generationOf(graph); {
	case g == nil:
		return 0
	case g.from == 0:
		return c.m.revision + 1
	default:
		return g.from
	}
}

// generationOf is the generation that is kept under an id, nil for a graph's name.
func (c *erasedCheckpoint) generationOf(graph ID) *generation {
	if c.generations == nil || graph.Tag() != keys.TagGeneration {
		return nil
	}
	return c.generations.entries[Revision(graph.Number())]
}

// follow brings since when a statement has stood in a generation into line with what is
// left of it in the one before, from which it was taken over.
func (c *erasedCheckpoint) follow(ids IDQuad, list []standing) {
	g := c.generationOf(ids.Graph)
	if g == nil {
		return
	}
	begins := c.turnOf(ids.Graph)
	earlier, found := c.generations.idAt(g.graph, begins-1)
	if !found {
		return
	}
	before := ids
	before.Graph = earlier
	st, found := c.stood(before, begins)
	if !found {
		return
	}
	for i := range list {
		if list[i].from != 0 && list[i].from < begins && equalAssertions(list[i].assertions, st.assertions) {
			list[i].from = st.from
		}
	}
}

// stood is how a statement that was touched stood before a revision in the content under
// an id.
func (c *erasedCheckpoint) stood(ids IDQuad, at Revision) (standing, bool) {
	for _, st := range c.touched[ids] {
		if st.from == 0 { // since its generation counts
			now := state{0, slices.Clone(st.assertions)}
			c.generations.settle(&now, ids.Graph)
			st.from, st.assertions = now.since, now.assertions
		}
		if st.from < at && (st.to == 0 || st.to >= at) {
			return st, true
		}
	}
	return standing{}, false
}

// note counts the assertions that were erased of a statement that stands, in what its
// graph holds or in a generation that does not count yet.
func (c *erasedCheckpoint) note(ids IDQuad, q *Quad, was, is standing) {
	if was.to != 0 {
		return
	}
	var sum map[AgentID]int64
	switch g := c.generationOf(ids.Graph); {
	case g != nil && g.dead:
		return
	case g != nil && g.from == 0:
		e := c.atCheckpoint.begun(g.began)
		if sum = e.sources; len(is.assertions) == 0 {
			e.statements++
		} else {
			e.since[*q] = is.from
		}
	case c.generations.current(c.generations.name(ids.Graph)) != ids.Graph || !isShared(q.Predicate, q.Graph):
		return
	default:
		sum = c.atCheckpoint.of(q.Graph)
	}
	for _, a := range was.assertions {
		if _, stays := findSource(is.assertions, a.Source); !stays {
			sum[a.Source]++
		}
	}
}

// noteTouched is note for the times in which a statement stood, and for what is left.
func (c *erasedCheckpoint) noteTouched(ids IDQuad, q *Quad, was, is []standing) {
	stands := func(list []standing) (st standing) {
		for _, at := range list {
			if at.to == 0 {
				st = at
			}
		}
		return st
	}
	if stood := stands(was); len(stood.assertions) > 0 {
		c.note(ids, q, stood, stands(is))
	}
}
