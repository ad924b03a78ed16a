package kg_test

import (
	"fmt"
	"testing"

	"koine/kg"
)

// numbered writes statements of kg.Sequence into a journal.
func number(t *testing.T, s *kg.Store, graph kg.Term, numbers ...int64) kg.Receipt {
	t.Helper()
	r, err := s.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann", Method: kg.MethodLocal}}, func(tx *kg.Tx) error {
		for _, n := range numbers {
			q := kg.Quad{Subject: kg.IRI(fmt.Sprintf("urn:m:%d", n)), Predicate: kg.Sequence, Object: kg.Integer(n), Graph: graph}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func numbersFrom(t *testing.T, s *kg.Store, v kg.View, graph kg.Term, from int64) (out []int64) {
	t.Helper()
	v.Principal = kg.Principal{ID: "agent://ann"}
	v.AllGraphs = true
	snapshot, err := s.View(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for row, err := range snapshot.Numbered(graph, from) {
		if err != nil {
			t.Fatal(err)
		}
		n, _ := kg.IntegerOf(row.Object)
		out = append(out, n)
	}
	return out
}

// The numbers of a graph are found in their order from any on: now, in the past,
// after the index was built anew, and whatever else stands in other graphs.
func TestNumberedIsInOrderFromAnyNumberOn(t *testing.T) {
	dir := t.TempDir()
	o := kg.Options{MemTableBytes: kg.MinMemTableBytes, ReserveBytes: 1}
	s := openStore(t, dir, o)
	// No journals: in those Check wants the numbers without a gap.
	a, b := kg.IRI(kg.OwnGraphPrefix+"a"), kg.IRI(kg.OwnGraphPrefix+"b")
	number(t, s, a, 1, 2, 300)
	at := number(t, s, b, 2, 4, 1000).Revision
	number(t, s, a, 4, 70000)
	gone := kg.Quad{Subject: kg.IRI("urn:m:2"), Predicate: kg.Sequence, Object: kg.Integer(2), Graph: a}
	if _, err := s.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, func(tx *kg.Tx) error {
		if n, err := tx.CountOwn(a, kg.Sequence); n != 5 || err != nil {
			t.Errorf("before: %d, %v; want 5", n, err)
		}
		err := tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: gone})
		if n, err := tx.CountOwn(a, kg.Sequence); n != 4 || err != nil {
			t.Errorf("within: %d, %v; want 4", n, err)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true, false} {
		for _, row := range []struct {
			view  kg.View
			graph kg.Term
			from  int64
			want  string
		}{
			{kg.View{}, a, 0, "[1 4 300 70000]"},
			{kg.View{}, a, 2, "[4 300 70000]"},
			{kg.View{}, a, 4, "[4 300 70000]"},
			{kg.View{}, a, 5, "[300 70000]"},
			{kg.View{}, a, 70001, "[]"},
			{kg.View{}, b, 3, "[4 1000]"},
			{kg.View{}, kg.IRI(kg.OwnGraphPrefix + "c"), 1, "[]"},
			{kg.View{At: at}, a, 1, "[1 2 300]"},
			{kg.View{At: at}, a, 2, "[2 300]"},
		} {
			if got := fmt.Sprint(numbersFrom(t, s, row.view, row.graph, row.from)); got != row.want {
				t.Errorf("rebuilt %t: from %d of %v at %d: got %s, want %s", again, row.from, row.graph, row.view.At, got, row.want)
			}
		}
		if r, err := s.Check(t.Context(), kg.CheckOptions{}); err != nil || !r.Clean() {
			t.Errorf("check: %v, %v", r, err)
		}
		mustClose(t, s)
		o.Rebuild = !again
		s = openStore(t, dir, o)
	}
	mustClose(t, s)
}
