package kg

import (
	"context"
	"fmt"
	"testing"

	"koine/kg/internal/keys"
)

// TestEstimates proves that an estimate is the catalogue's count of the graphs in the view,
// and reports if only reading would be exact.
func TestEstimates(t *testing.T) {
	ctx := context.Background()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Update(ctx, Meta{}, func(tx *Tx) error {
		for i := range 60 {
			q := Quad{Subject: IRI(fmt.Sprintf("urn:s:%d", i)), Predicate: IRI(fmt.Sprintf("urn:p:%d", i%3)), Object: Integer(1), Graph: IRI(fmt.Sprintf("urn:g:%d", i%5))}
			if i%6 == 0 {
				q.Predicate, q.Object = IRI(RDFType), IRI("urn:class")
			}
			if err := tx.Apply(Patch{Op: Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.View(ctx, View{})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	id := func(t Term) ID {
		id, _, _ := snap.ID(t)
		return id
	}
	typeID, class, one := id(IRI(RDFType)), id(IRI("urn:class")), id(Integer(1))
	for _, row := range []struct {
		name    string
		pattern IDPattern
		n       uint64
		known   bool
	}{
		{"all", IDPattern{}, 60, true},
		{"predicate", IDPattern{Predicate: id(IRI("urn:p:1"))}, 20, true},
		{"predicate in part taken by types", IDPattern{Predicate: id(IRI("urn:p:0"))}, 10, true},
		{"class", IDPattern{Predicate: typeID, Object: class}, 10, true},
		{"class in a graph", IDPattern{Predicate: typeID, Object: class, Graph: id(IRI("urn:g:0"))}, 2, true},
		{"graph", IDPattern{Graph: id(IRI("urn:g:4"))}, 12, true},
		{"value", IDPattern{Predicate: id(IRI("urn:p:1")), Object: one}, 20, false},
		{"no predicate", IDPattern{Predicate: class}, 0, true},
	} {
		if n, known, err := snap.Estimate(row.pattern); n != row.n || known != row.known || err != nil {
			t.Errorf("%s: got %d, %t, %v, want %d, %t", row.name, n, known, err, row.n, row.known)
		}
	}
	if keys.NeedsPredicates(IDQuad{Object: one}) != (IDPattern{Object: one}.Order() == "POSG") {
		t.Error("a literal alone is looked up through POSG")
	}
}
