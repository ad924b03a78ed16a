package search

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"koine/channels/channel"
	"koine/internal/textindex"
	"koine/kg"
)

// MaxCounted bounds the hits that are counted, and MaxFacetValues the values of a facet.
const (
	MaxCounted     = 10_000
	MaxFacetValues = 100
)

// FacetKey is a property by which hits are counted.
type FacetKey uint8

// The facets. A hit counts once for each of its values.
const (
	FacetClass     FacetKey = iota // classes of the entity
	FacetPredicate                 // of its texts
	FacetGraph                     // of its texts; messages have none
	FacetChannel                   // of a message
	FacetAuthor                    // of the assertions of its texts that the filter admits
	facetKeys                      // how many there are
)

// Counts are the numbers of hits of a search.
type Counts struct {
	Hits int
	// Exact is false if there are more than MaxCounted hits: then so many of them are
	// counted, and all numbers are lower bounds.
	Exact  bool
	Facets []Facet // in the order of the request
}

// Facet has the numbers of hits by one property.
type Facet struct {
	Key    FacetKey
	Values []FacetValue // the most frequent first
	// Distinct is how many values there are, of which Values has the first.
	Distinct int
}

// FacetValue is a value of a facet.
type FacetValue struct {
	// Term is a class, a predicate or a graph; Name is the id of a channel or of an agent.
	Term  kg.Term
	Name  string
	Count int
}

// errCounted ends a visit after MaxCounted hits.
var errCounted = errors.New("search: enough hits are counted")

// Count counts the hits of a request that the snapshot shows, by each of the keys, with at
// most values of each. First, After and Order of the request have no effect.
//
// Errors: those of Search; CodeInvalid for a key that is given twice, and for values outside 1
// to MaxFacetValues.
func (s *Service) Count(ctx context.Context, snapshot *kg.Snapshot, r Request, by []FacetKey, values int) (c Counts, err error) {
	if values < 1 || values > MaxFacetValues {
		return c, kg.Errorf(kg.CodeInvalid, "first is %d; it must be from 1 to %d", values, MaxFacetValues).At("first")
	}
	if len(by) > int(facetKeys) {
		return c, kg.Errorf(kg.CodeLimitExceeded, "by lists %d facets; there are %d, each of which is given once", len(by), int(facetKeys)).At("by")
	}
	for i, key := range by {
		if slices.Contains(by[:i], key) {
			return c, kg.Errorf(kg.CodeInvalid, "by lists a facet twice").At("by")
		}
	}
	if r.Near != nil {
		return c, kg.Errorf(kg.CodeInvalid, "hits by nearness are not counted: everything with a vector is one")
	}
	r.After = nil
	f, err := s.openFinder(ctx, snapshot, &r)
	if err != nil {
		return c, err
	}
	counter := newCounter(f, by)
	c.Exact = true
	err = f.visitHits(func(h *textindex.Hit) error {
		if c.Hits == MaxCounted {
			c.Exact = false
			return errCounted
		}
		c.Hits++
		return counter.countHit(h)
	})
	if err != nil && err != errCounted {
		return c, err
	}
	for i, key := range by {
		facet, err := counter.readFacet(key, counter.tallies[i], values)
		if err != nil {
			return c, err
		}
		c.Facets = append(c.Facets, facet)
	}
	return c, nil
}

// counter counts hits by facets.
type counter struct {
	*finder
	keys    []FacetKey
	tallies []map[facetID]int    // for each key
	names   map[kg.ID]channel.ID // of graphs with messages; "" for others
	values  map[facetID]struct{} // of one hit and key
}

// facetID is a value of a facet: a term or a name.
type facetID struct {
	term kg.ID
	name string
}

func newCounter(f *finder, by []FacetKey) *counter {
	c := &counter{finder: f, keys: by, names: map[kg.ID]channel.ID{}, values: map[facetID]struct{}{}}
	for range by {
		c.tallies = append(c.tallies, map[facetID]int{})
	}
	return c
}

func (c *counter) countHit(h *textindex.Hit) error {
	for i, key := range c.keys {
		clear(c.values)
		if err := c.addValues(key, h); err != nil {
			return err
		}
		for v := range c.values {
			c.tallies[i][v]++
		}
	}
	return nil
}

// addValues adds the values of a hit.
func (c *counter) addValues(key FacetKey, h *textindex.Hit) error {
	if key == FacetClass {
		if c.filter.typeID.IsZero() {
			return nil
		}
		for row, err := range c.snapshot.MatchIDs(kg.IDPattern{Subject: h.Place.Subject.ID, Predicate: c.filter.typeID}, nil) {
			if err != nil {
				return err
			}
			if row.Object.IsResource() {
				c.values[facetID{term: row.Object}] = struct{}{}
			}
		}
		return nil
	}
	for _, m := range h.Texts {
		switch key {
		case FacetPredicate:
			c.values[facetID{term: m.Ref.Predicate}] = struct{}{}
		case FacetAuthor:
			list, err := c.filter.assertionsOf(rowOf(h.Place.Subject.ID, m.Ref))
			if err != nil {
				return err
			}
			for i := range list {
				c.values[facetID{name: string(list[i].Source)}] = struct{}{}
			}
		default:
			id, err := c.channelOf(m.Ref.Graph)
			switch {
			case err != nil:
				return err
			case key == FacetGraph && id == "":
				c.values[facetID{term: m.Ref.Graph}] = struct{}{}
			case key == FacetChannel && id != "":
				c.values[facetID{name: string(id)}] = struct{}{}
			}
		}
	}
	return nil
}

// channelOf returns the channel with its messages in a graph, "" for other graphs.
func (c *counter) channelOf(graph kg.ID) (channel.ID, error) {
	id, known := c.names[graph]
	if known {
		return id, nil
	}
	t, err := c.snapshot.Term(graph)
	if err != nil {
		return "", err
	}
	if channel.HoldsMessages(t) {
		id, _ = channel.OfGraph(t)
	}
	c.names[graph] = id
	return id, nil
}

// readFacet returns the most frequent values of a facet.
func (c *counter) readFacet(key FacetKey, tally map[facetID]int, most int) (f Facet, err error) {
	f = Facet{Key: key, Distinct: len(tally)}
	for id, n := range tally {
		v := FacetValue{Name: id.name, Count: n}
		if id.name == "" {
			if v.Term, err = c.snapshot.Term(id.term); err != nil {
				return f, err
			}
		}
		f.Values = append(f.Values, v)
	}
	slices.SortFunc(f.Values, func(a, b FacetValue) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.Term.Compare(b.Term), cmp.Compare(a.Name, b.Name))
	})
	f.Values = f.Values[:min(len(f.Values), most)]
	return f, nil
}
