package index

import (
	"koine/kg/internal/base"
	"koine/kg/internal/keys"
)

// Backed is the count of one source, by its key.
func (c *Catalogue) Backed(key string) uint64 {
	t, _ := c.Tallies.Get(key)
	return t.Count
}

// Backers tells of how many sources there are statements, and the most that one
// of them backs.
func (c *Catalogue) Backers() (sources, most uint64) {
	c.Tallies.Ascend(string([]byte{keys.PrefixSource}), func(key string, t Tally) bool {
		if key[0] != keys.PrefixSource {
			return false
		}
		if t.Count > 0 {
			sources++
			most = max(most, t.Count)
		}
		return true
	})
	return sources, most
}

// backer is a source with the key of its count: most changes of a commit are of
// the same one.
type backer struct {
	source base.AgentID
	key    []byte
}

// countSources notes whose statement a change makes or takes away.
func (w *IndexWriter) countSources(c *base.Change) error {
	switch {
	case w.Uncounted || !base.IsShared(c.Quad.Predicate, c.Quad.Graph):
		return nil
	case c.Op == base.Add:
		if _, had := base.FindSource(c.Before, c.Assertion.Source); had {
			return nil
		}
		return w.countSource(c.Assertion.Source, 1)
	case len(c.After) > 0:
		return w.countSource(c.Assertion.Source, -1)
	}
	for i := range c.Before {
		if err := w.countSource(c.Before[i].Source, -1); err != nil {
			return err
		}
	}
	return nil
}

func (w *IndexWriter) countSource(source base.AgentID, by int64) error {
	if w.backer.source != source {
		id, err := w.number(base.AgentTerm(source)) // has one: it stands in an assertion
		if err != nil {
			return err
		}
		w.backer = backer{source, keys.Source(id.Number())}
	}
	w.Deltas.Add(w.backer.key, by)
	return nil
}

// CountedKey is in an index that holds the counts by source, which those of
// earlier forms do not.
var CountedKey = keys.Meta("counted by source, with journals")

// IsCounted tells whether the index up to the marker holds the counts by source.
func IsCounted(k KV, m Marker) (bool, error) {
	if m.Revision == 0 {
		return true, nil // there is nothing to count
	}
	return k.Get(CountedKey, func([]byte) error { return nil })
}

// SourceCounts are counts by the keys of sources.
type SourceCounts map[string]uint64

// Add counts the sources of a value of SPOG.
func (c SourceCounts) Add(value []byte) error {
	_, err := base.ParseState(value, func(number uint64) (base.AgentID, error) {
		c[string(keys.Source(number))]++
		return base.Anonymous, nil // its name is of no account
	})
	return err
}

// SharedGraphs remembers which graphs are koine's own, and which of these journals.
type SharedGraphs struct {
	Dict Dictionary
	// Generations are those of the newest revision: only what counts then is shared.
	Generations *Generations
	parts       base.ID // zero until it is asked for
	Known       map[base.ID]shareOf
}

// shareOf is what of a graph counts for the share of its sources.
type shareOf uint8

const (
	shareNone shareOf = iota
	shareParts
	shareAll
)

// Has tells whether the statement counts.
func (g *SharedGraphs) Has(q *base.IDQuad) (bool, error) {
	if q.Graph == keys.DefaultGraph && g.Generations == nil {
		return true, nil
	}
	share, known := g.Known[q.Graph]
	if !known {
		tenure, counts := g.Generations.TenureOf(q.Graph)
		t, err := g.Dict.Term(g.Generations.Name(q.Graph))
		if err != nil {
			return false, err
		}
		switch {
		case !counts || tenure.Until != 0:
		case base.IsShared(base.Term{}, t):
			share = shareAll
		case base.IsShared(base.Parts, t):
			share = shareParts
		}
		if g.Known == nil {
			g.Known = make(map[base.ID]shareOf)
			if g.parts, _, err = g.Dict.ID(base.Parts); err != nil {
				return false, err
			}
		}
		g.Known[q.Graph] = share
	}
	return share == shareAll || share == shareParts && q.Predicate == g.parts, nil
}
