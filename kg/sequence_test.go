package kg_test

import (
	"fmt"
	"testing"

	"koine/kg"
)

// numbered writes statements of kg.Sequence into a journal.
func number(t *testing.T, s *kg.Store, graph kg.Term, numbers ...int64) kg.Receipt {
	t.Helper()
	return order(t, s, kg.Add, kg.Sequence, graph, numbers...)
}

// order adds or removes statements of a property that is in order.
func order(t *testing.T, s *kg.Store, op kg.Op, property, graph kg.Term, numbers ...int64) kg.Receipt {
	t.Helper()
	r, err := s.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann", Method: kg.MethodLocal}}, func(tx *kg.Tx) error {
		for _, n := range numbers {
			q := kg.Quad{Subject: kg.IRI(fmt.Sprintf("urn:m:%d", n)), Predicate: property, Object: kg.Integer(n), Graph: graph}
			if err := tx.ApplyOwn(kg.Patch{Op: op, Quad: q}); err != nil {
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

// The numbers of a graph are found in their order from any one on: in the present, in the
// past, after the index was rebuilt, and with any content of other graphs.
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
		if r, err := s.Maintenance().Check(t.Context(), kg.CheckOptions{}); err != nil || !r.Clean() {
			t.Errorf("check: %v, %v", r, err)
		}
		mustClose(t, s)
		o.Rebuild = !again
		s = openStore(t, dir, o)
	}
	mustClose(t, s)
}

// Ordered properties are found in order from any number on, and after any subject with it;
// each property has an order of its own.
func TestInOrder(t *testing.T) {
	dir := t.TempDir()
	o := kg.Options{MemTableBytes: kg.MinMemTableBytes, ReserveBytes: 1}
	s := openStore(t, dir, o)
	g, first, second := kg.IRI(kg.JournalGraphPrefix+"o"), kg.Ordered(1), kg.Ordered(255)
	order(t, s, kg.Add, first, g, 5, -70000, -3, 300)
	at := order(t, s, kg.Add, second, g, -1).Revision
	order(t, s, kg.Add, first, kg.IRI(kg.JournalGraphPrefix+"p"), 4)
	order(t, s, kg.Remove, first, g, -3)
	if _, err := s.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "agent://ann"}}, func(tx *kg.Tx) error {
		return tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:m:300"), Predicate: first, Object: kg.Integer(5), Graph: g}})
	}); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true, false} {
		for _, row := range []struct {
			at       kg.Revision
			property kg.Term
			from     int64
			behind   string
			want     string
		}{
			{0, first, -1 << 63, "", "[-70000 urn:m:-70000 5 urn:m:5 5 urn:m:300 300 urn:m:300]"},
			{0, first, 5, "", "[5 urn:m:5 5 urn:m:300 300 urn:m:300]"},
			{0, first, 5, "urn:m:5", "[5 urn:m:300 300 urn:m:300]"},
			{0, first, 5, "urn:m:300", "[300 urn:m:300]"},
			{0, second, -5, "", "[-1 urn:m:-1]"},
			{0, kg.Ordered(2), -5, "", "[]"},
			{at, first, -70000, "urn:m:-70000", "[-3 urn:m:-3 5 urn:m:5 300 urn:m:300]"},
		} {
			if got := fmt.Sprint(inOrder(t, s, row.at, g, row.property, row.from, row.behind)); got != row.want {
				t.Errorf("rebuilt %t: %v from %d behind %q at %d: got %s, want %s", again, row.property, row.from, row.behind, row.at, got, row.want)
			}
		}
		if r, err := s.Maintenance().Check(t.Context(), kg.CheckOptions{}); err != nil || !r.Clean() {
			t.Errorf("check: %v, %v", r, err)
		}
		mustClose(t, s)
		o.Rebuild = !again
		s = openStore(t, dir, o)
	}
	mustClose(t, s)
}

func inOrder(t *testing.T, s *kg.Store, at kg.Revision, graph, property kg.Term, from int64, behind string) (out []string) {
	t.Helper()
	snapshot, err := s.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://ann"}, AllGraphs: true, At: at})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	var subject kg.ID
	if behind != "" {
		if subject, _, err = snapshot.ID(kg.IRI(behind)); err != nil {
			t.Fatal(err)
		}
	}
	var p kg.IDPattern
	p.Graph, _, _ = snapshot.ID(graph)
	p.Predicate, _, _ = snapshot.ID(property)
	if p.Order() != "GPOS" {
		t.Errorf("%v is read in the order %s", property, p.Order())
	}
	for row, err := range snapshot.InOrder(graph, property, from, subject) {
		if err != nil {
			t.Fatal(err)
		}
		q, err := snapshot.Quad(row)
		if err != nil {
			t.Fatal(err)
		}
		if q.Predicate != property {
			t.Errorf("%v among %v", q.Predicate, property)
		}
		out = append(out, q.Object.Value(), q.Subject.Value())
	}
	return out
}
