package index

import (
	"koine/kg/base"
	"koine/kg/internal/keys"
)

// SourceCount returns the number of statements that a source backs, by the key of its
// count.
func (c *Catalogue) SourceCount(key string) uint64 {
	t, _ := c.Tallies.Get(key)
	return t.Count
}

// SourceTotals returns the number of sources that back statements, and the largest number
// of statements that one of them backs.
func (c *Catalogue) SourceTotals() (sources, most uint64) {
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

// sourceKey is a source with the key of its count. It is cached, because most changes of a
// commit have the same source.
type sourceKey struct {
	source base.AgentID
	key    []byte
}

// countSources updates the counts of the sources that a change adds to a statement or
// removes from it.
func (w *IndexWriter) countSources(c *base.Change) error {
	switch {
	case w.WithoutSourceCounts || !base.CountsForQuota(c.Quad.Predicate, c.Quad.Graph):
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
	if w.lastSource.source != source {
		id, err := w.numberTerm(base.AgentTerm(source)) // has one: it stands in an assertion
		if err != nil {
			return err
		}
		w.lastSource = sourceKey{source, keys.Source(id.Number())}
	}
	w.Deltas.Add(w.lastSource.key, by)
	return nil
}

// SourceCountsKey is a key that the index has if it holds the counts by source. Indexes of
// earlier versions lack it.
var SourceCountsKey = keys.Meta("counted by source, with journals")

// HasSourceCounts reports whether the index up to the marker holds the counts by source.
func HasSourceCounts(k KV, m Marker) (bool, error) {
	if m.Revision == 0 {
		return true, nil // there is nothing to count
	}
	return k.Get(SourceCountsKey, func([]byte) error { return nil })
}

// SourceCounts maps the keys of sources to their statement counts.
type SourceCounts map[string]uint64

// Add counts the sources in a value of the SPOG order.
func (c SourceCounts) Add(value []byte) error {
	_, err := base.ParseState(value, func(number uint64) (base.AgentID, error) {
		c[string(keys.Source(number))]++
		return base.Anonymous, nil // only the number is used
	})
	return err
}

// QuotaGraphs caches for each graph which of its statements count toward the quotas of
// their sources.
type QuotaGraphs struct {
	Dictionary Dictionary
	// Generations is the table of the newest revision: only current content counts.
	Generations *Generations
	parts       base.ID // zero until the first lookup
	Scopes      map[base.ID]quotaScope
}

// quotaScope tells which statements of a graph count toward the quotas of their sources.
type quotaScope uint8

const (
	quotaNone quotaScope = iota
	quotaParts
	quotaAll
)

// Counts reports whether the statement counts toward the quotas of its sources.
func (g *QuotaGraphs) Counts(q *base.IDQuad) (bool, error) {
	if q.Graph == keys.DefaultGraph && g.Generations == nil {
		return true, nil
	}
	share, known := g.Scopes[q.Graph]
	if !known {
		tenure, counts := g.Generations.TenureOf(q.Graph)
		t, err := g.Dictionary.Term(g.Generations.NameID(q.Graph))
		if err != nil {
			return false, err
		}
		switch {
		case !counts || tenure.Until != 0:
		case base.CountsForQuota(base.Term{}, t):
			share = quotaAll
		case base.CountsForQuota(base.Parts, t):
			share = quotaParts
		}
		if g.Scopes == nil {
			g.Scopes = make(map[base.ID]quotaScope)
			if g.parts, _, err = g.Dictionary.ID(base.Parts); err != nil {
				return false, err
			}
		}
		g.Scopes[q.Graph] = share
	}
	return share == quotaAll || share == quotaParts && q.Predicate == g.parts, nil
}
