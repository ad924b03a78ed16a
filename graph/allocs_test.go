//go:build !race

package graph_test

import (
	"testing"

	"koine/graph"
	"koine/internal/slowtest"
)

// The maximum numbers of allocations of the hot paths: about a third above the actual ones.
const (
	maxAllocsPerField  = 0.1  // of a page of many entities
	maxAllocsPerFilm   = 25.0 // of three levels: 3 performances, 3 actors, 35 fields
	maxAllocsOneEntity = 210. // of the smallest operation as a whole
)

// TestAllocations proves that values go straight into the answer: the fields of an entity
// cost no allocation of their own.
func TestAllocations(t *testing.T) {
	slowtest.Long(t)
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

// maxAllocsOfIDs is the additional cost of the ids of a page: the view is written once,
// regardless of the page's size.
const maxAllocsOfIDs = 60

// TestAllocationsOfIDs proves that an id costs no allocation and no reading of its own.
func TestAllocationsOfIDs(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.manyThings()
	for _, view := range []string{"", ", view: {at: 1, minCertainty: 0.5, graphs: [null]}"} {
		measure := func(field string) (allocations float64, read int64) {
			req := b.request(`{ entities(first: 1000`+view+`) { nodes { `+field+` } } }`, "")
			r := b.engine.Execute(t.Context(), req)
			if len(r.Errors) > 0 || len(r.Data) < 10_000 {
				t.Fatalf("%.100s %v", r.Data, r.Errors)
			}
			return testing.AllocsPerRun(5, func() { b.engine.Execute(t.Context(), req) }), int64(r.StatementsRead) + int64(r.Scans)
		}
		names, readNames := measure("iri")
		ids, readIDs := measure("id")
		t.Logf("%.0f allocations with iri, %.0f with id", names, ids)
		if ids > names+maxAllocsOfIDs || readIDs != readNames {
			t.Errorf("view %q: with iri %.0f allocations and %d reads, with id %.0f and %d", view, names, readNames, ids, readIDs)
		}
	}
}
