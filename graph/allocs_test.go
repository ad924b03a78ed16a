//go:build !race

package graph_test

import (
	"testing"

	"koine/graph"
)

// The greatest numbers of allocations that the hot paths may make: about a
// third above what they do make.
const (
	maxAllocsPerField  = 0.1  // of a page of many entities
	maxAllocsPerFilm   = 25.0 // of three levels: 3 performances, 3 actors, 35 fields
	maxAllocsOneEntity = 210. // of the smallest operation as a whole
)

// TestAllocations proves that what is read goes straight into the answer: the
// fields of an entity cost no allocation of their own.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		name, variables, query string
		fill                   func(*bench)
		per, most              float64
	}{
		{name: "fields of a page of entities", query: thingsQuery, fill: (*bench).manyThings, per: benchEntities * benchFields, most: maxAllocsPerField},
		{name: "nested levels", query: filmQuery, variables: `{"n": 100}`, fill: func(b *bench) { b.performances(100) }, per: 100, most: maxAllocsPerFilm},
		{name: "one entity", query: `{ entity(iri: "ex:ada") { iri label age: value(predicate: "ex:age") } }`, fill: (*bench).team, per: 1, most: maxAllocsOneEntity},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, graph.Options{})
			c.fill(b)
			req := b.request(c.query, c.variables)
			if r := b.execute(c.query, c.variables); len(r.Errors) > 0 {
				t.Fatal(r.Errors)
			}
			n := testing.AllocsPerRun(5, func() { b.engine.Execute(t.Context(), req) }) / c.per
			t.Logf("%.3f allocations", n)
			if n > c.most {
				t.Errorf("%.3f allocations for each, want at most %v", n, c.most)
			}
		})
	}
}
