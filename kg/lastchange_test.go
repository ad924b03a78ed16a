package kg_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"koine/kg"
)

// unreadable is an Access that hides some graphs from all principals.
type unreadable []kg.Term

func (u unreadable) Allowed(_ kg.Principal, graph kg.Term, _ kg.Right) bool {
	return !slices.Contains(u, graph)
}

// The last change of a graph is that of any of its statements, also a removed one, and of
// no other graph's; a hidden graph has none.
func TestLastChange(t *testing.T) {
	g, other, hidden := kg.IRI("urn:g"), kg.IRI("urn:other"), kg.IRI("urn:hidden")
	statement := func(subject string, graph kg.Term) kg.Quad {
		return kg.Quad{Subject: kg.IRI(subject), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: graph}
	}
	dir := t.TempDir()
	store, err := kg.Open(dir, kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(op kg.Op, subject string, graph kg.Term) {
		t.Helper()
		_, err := store.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: op, Quad: statement(subject, graph)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	last := func(v kg.View, graph kg.Term) kg.Revision {
		t.Helper()
		s, err := store.View(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.LastChange(graph)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	apply(kg.Add, "urn:a", g)               // 1
	apply(kg.Add, "urn:b", g)               // 2
	apply(kg.Add, "urn:a", other)           // 3
	apply(kg.Add, "urn:a", hidden)          // 4
	apply(kg.Add, "urn:z", kg.DefaultGraph) // 5
	for graph, want := range map[kg.Term]kg.Revision{g: 2, other: 3, kg.DefaultGraph: 5, kg.IRI("urn:none"): 0} {
		if got := last(kg.View{}, graph); got != want {
			t.Errorf("%s changed in %d, want %d", graph, got, want)
		}
	}
	apply(kg.Remove, "urn:a", g) // 6
	if got := last(kg.View{}, g); got != 6 {
		t.Errorf("after a removal: %d, want 6", got)
	}
	// Content that is replaced as a whole changed in the commit of the switch.
	whole := func(yield func(kg.Quad, error) bool) {
		for i := range kg.MaxPatches + 1 {
			if !yield(statement(fmt.Sprint("urn:s:", i), g), nil) {
				return
			}
		}
	}
	replaced, err := store.ReplaceGraph(t.Context(), kg.Meta{}, g, whole, kg.ReplaceOptions{})
	if err != nil || !replaced.Whole {
		t.Fatal(replaced, err)
	}
	if got := last(kg.View{}, g); got != replaced.Revision {
		t.Errorf("after a whole replacement: %d, want %d", got, replaced.Revision)
	}
	apply(kg.Add, "urn:a", g)
	after := replaced.Revision + 1
	if got := last(kg.View{}, g); got != after {
		t.Errorf("after a change behind it: %d, want %d", got, after)
	}
	if got := last(kg.View{}, other); got != 3 {
		t.Errorf("the other graph: %d, want 3", got)
	}
	if got := last(kg.View{Graphs: []kg.Term{other}}, g); got != 0 {
		t.Errorf("of a graph outside the view: %d", got)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if store, err = kg.Open(dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: unreadable{hidden}}}); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if got := last(kg.View{}, g); got != after {
		t.Errorf("opened again: %d, want %d", got, after)
	}
	if got := last(kg.View{}, hidden); got != 0 {
		t.Errorf("a hidden graph tells of %d", got)
	}
}
