package idtable_test

import (
	"math/rand/v2"
	"testing"

	"koine/internal/query/idtable"
	"koine/kg"
)

// A set has what was added, as a map does, for ids of any number and for those without one.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	id := func() (id kg.ID) {
		id[0] = 0x02
		switch r.IntN(4) {
		case 0:
			id[0] = 0x21 // an integer
		case 1:
			id[2], id[5] = byte(r.IntN(2)), byte(r.IntN(2)) // far away
		}
		id[7], id[8] = byte(r.IntN(256)), byte(r.IntN(256))
		if r.IntN(8) == 0 {
			id[6] = byte(r.IntN(256))
		}
		return id
	}
	var s idtable.Set
	want := map[kg.ID]bool{}
	for range 100_000 {
		x := id()
		if s.Has(x) != want[x] {
			t.Fatalf("%x: %t", x, s.Has(x))
		}
		if r.IntN(2) == 0 {
			if isNew := s.Add(x); isNew == want[x] {
				t.Fatalf("%x is new: %t", x, isNew)
			}
			want[x] = true
		}
	}
	if s.Len() != len(want) || len(want) < 10_000 {
		t.Errorf("%d of %d ids", s.Len(), len(want))
	}
}
