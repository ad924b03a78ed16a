package kg_test

import (
	"slices"
	"testing"

	"koine/kg"
)

// A blank node names a graph as an IRI does: in updates and loads of either way, in
// views, counts, lists of graphs, streams and after a start. No other graph is meant by
// its label.
func TestBlankNodeNamesAGraph(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, kg.Options{})
	g, h := kg.Blank("g"), kg.Blank("h")
	at := func(i int, graph kg.Term) kg.Quad {
		return kg.Quad{Subject: kg.Blank("g"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i)), Graph: graph}
	}
	loaded := func(yield func(kg.Quad, error) bool) {
		_ = yield(at(1, g), nil) && yield(at(2, h), nil) && yield(at(3, kg.IRI("urn:g")), nil)
	}
	if _, err := s.Load(within(t), kg.Meta{}, loaded, kg.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Add, Quad: at(4, g)}) }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		v, err := s.View(within(t), kg.View{Graphs: []kg.Term{g}})
		if err != nil {
			t.Fatal(err)
		}
		var got []kg.Quad
		for st, err := range v.Match(kg.Pattern{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, st.Quad)
		}
		if want := []kg.Quad{at(1, g), at(4, g)}; !slices.Equal(got, want) {
			t.Errorf("the view of %s shows %v, want %v", g, got, want)
		}
		if n, err := v.Count(kg.Pattern{Graph: g}); err != nil || n != 2 {
			t.Errorf("counted %d, %v, want 2", n, err)
		}
		graphs, err := v.Graphs()
		if err != nil || len(graphs) != 1 || graphs[0].Term != g || graphs[0].Count != 2 {
			t.Errorf("graphs %v, %v", graphs, err)
		}
		v.Close()
		mustCheck(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, dir, kg.Options{})
	}
	literal := kg.Quad{Subject: kg.Blank("s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: kg.String("g")}
	_, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Add, Quad: literal}) })
	if kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("a literal as a graph: %v", err)
	}
}
