package kg

import (
	"context"
	"testing"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// TestCountsOfOneGraph proves that counting in a graph does not walk over the
// counts of all others, of which there may be very many.
func TestCountsOfOneGraph(t *testing.T) {
	id := func(n uint64) ID { return keys.Numbered(base.TagOf(IRI("urn:x")), n) }
	c := new(index.Catalogue)
	for g := uint64(1); g <= 10; g++ {
		d := new(index.Deltas)
		d.Add(keys.Predicate(id(g), id(1)), int64(g))
		d.Add(keys.Class(id(g), id(1)), 1)
		c.Add(d, Revision(g), func(string, index.Tally) {})
	}
	for in, want := range map[ID]int{{}: 10, id(1): 1, id(5): 1, id(10): 1, id(11): 0} {
		calls := 0
		c.Each(keys.PrefixPredicate, in, func(graph, _ ID, _ uint64) {
			if calls++; !in.IsZero() && graph != in {
				t.Errorf("in graph %x: told of %x", in, graph)
			}
		})
		if calls != want {
			t.Errorf("in graph %x: %d counts, want %d", in, calls, want)
		}
	}
}

// TestGraphsThatCannotBeNamedAreErrors proves that damage in the dictionary does
// not make a graph look empty.
func TestGraphsThatCannotBeNamedAreErrors(t *testing.T) {
	ctx := context.Background()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q := numbered(1)
	q.Graph = IRI("urn:g")
	commitOf(t, s, q)
	snap, err := s.View(ctx, View{})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	graph, _, err := snap.ID(q.Graph)
	if err != nil {
		t.Fatal(err)
	}
	lost := index.NewOverlay(snap.kv)
	lost.Delete(string(keys.Number(graph.Number())))
	snap.kv, snap.dict = lost, index.Dictionary{KV: lost, Cache: index.NewTermCache(16)}
	_, err = snap.Count(Pattern{})
	wantInternal(t, "Count", err)
	_, err = snap.Graphs()
	wantInternal(t, "Graphs", err)
	for _, p := range []Pattern{{}, {Subject: q.Subject}, {Object: q.Object}} {
		err = nil
		for _, err = range snap.Match(p) {
			break
		}
		wantInternal(t, "Match", err)
	}
}

func wantInternal(t *testing.T, what string, err error) {
	t.Helper()
	if CodeOf(err) != CodeInternal {
		t.Errorf("%s: got %v, want %s", what, err, CodeInternal)
	}
}

// TestInstances proves that the catalogue returns the size of a class only if it equals
// that in the view.
func TestInstances(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	class, other := IRI("urn:class"), IRI("urn:other")
	is := func(subject string, class, graph Term) Quad {
		return Quad{Subject: IRI(subject), Predicate: IRI(RDFType), Object: class, Graph: graph}
	}
	commitOf(t, s, is("urn:a", class, DefaultGraph), is("urn:b", class, DefaultGraph), is("urn:a", other, DefaultGraph), is("urn:a", other, IRI("urn:g")))
	old := s.Head().Revision
	commitOf(t, s, is("urn:c", class, DefaultGraph))
	for _, c := range []struct {
		name  string
		view  View
		class Term
		n     uint64
		known bool
	}{
		{"one graph", View{}, class, 3, true},
		{"two graphs", View{}, other, 2, false},
		{"two graphs, one shown", View{Graphs: []Term{IRI("urn:g")}}, other, 1, true},
		{"none shown", View{Graphs: []Term{IRI("urn:h")}}, class, 0, true},
		{"unknown", View{}, IRI("urn:never"), 0, true},
		{"of the past", View{At: old}, class, 0, false},
		{"some assertions", View{MinCertainty: 0.5}, class, 0, false},
	} {
		snap, err := s.View(t.Context(), c.view)
		if err != nil {
			t.Fatal(err)
		}
		n, known, err := snap.Instances(c.class)
		if err != nil || known != c.known || known && n != c.n {
			t.Errorf("%s: got %d, %t, %v; want %d, %t", c.name, n, known, err, c.n, c.known)
		}
		snap.Close()
	}
}
