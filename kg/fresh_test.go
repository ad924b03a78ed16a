package kg_test

import (
	"context"
	"testing"

	"koine/kg"
)

// TestRemovedAmongFresh removes a statement that Badger has, after its value was written
// with those of new ones: it must not come back.
func TestRemovedAmongFresh(t *testing.T) {
	s := openStore(t, t.TempDir(), smallOptions())
	q := func(i int64) kg.Quad {
		return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(i)}
	}
	up := func(p ...kg.Patch) {
		if _, err := s.Update(context.Background(), kg.Meta{Principal: tester}, apply(p)); err != nil {
			t.Fatal(err)
		}
	}
	up(kg.Patch{Op: kg.Add, Quad: q(1), Certainty: 0.5, HasCertainty: true})
	s.Exclusive(func() {}) // Badger has it
	up(kg.Patch{Op: kg.Add, Quad: q(2)}, kg.Patch{Op: kg.Add, Quad: q(3)}, kg.Patch{Op: kg.Add, Quad: q(1)})
	up(kg.Patch{Op: kg.Remove, Quad: q(1)})
	s.Exclusive(func() {})
	mustCheck(t, s)
}
