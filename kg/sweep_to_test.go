package kg_test

import (
	"math/rand/v2"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestSweepLeavesIteratorsWhole proves that a walk which changes to another order does not
// spoil the iterator of the first order, which the next walk gets.
func TestSweepLeavesIteratorsWhole(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	s := kgtest.Disk(t, kg.Options{})
	scatter(t, s, dice)
	s.Reopen() // into Badger
	snap, err := s.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	other, err := s.View(t.Context(), kg.View{}) // its iterators are its own
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	rows := matched(t, other, kg.IDPattern{}, nil)
	count := func(w *kg.Sweep, p kg.IDPattern) (n int) {
		for w.Seek(p, nil); w.Next(); {
			n++
		}
		return n
	}
	sweep := snap.Sweep()
	defer sweep.Close()
	for _, row := range rows[:8] {
		count(sweep, kg.IDPattern{Subject: row.Subject})
	}
	for _, row := range rows[:8] {
		count(sweep, kg.IDPattern{Predicate: row.Predicate})
	}
	again := snap.Sweep()
	defer again.Close()
	for _, row := range rows {
		if p := (kg.IDPattern{Subject: row.Subject}); count(again, p) == 0 {
			t.Fatalf("a subject of the graph has no statements: %x", p.Subject)
		}
	}
}

// TestSweepTo proves that skipping to a quad skips exactly the quads before it, for any
// bound positions of the pattern, and never goes back.
func TestSweepTo(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 2))
	s := kgtest.Disk(t, kg.Options{MemTableBytes: kg.MinMemTableBytes})
	for i := range 30 {
		if i == 20 {
			s.Reopen()
		}
		scatter(t, s, dice)
	}
	for _, v := range []kg.View{{}, {At: 15}, {MinCertainty: 0.5}} {
		snap, err := s.View(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		skipAsMatched(t, snap, dice)
	}
}

func skipAsMatched(t *testing.T, snap *kg.Snapshot, dice *rand.Rand) {
	t.Helper()
	defer snap.Close()
	all := matched(t, snap, kg.IDPattern{}, nil)
	sweep := snap.Sweep()
	defer sweep.Close()
	for range 300 {
		p := kg.IDPattern(all[dice.IntN(len(all))].IDQuad)
		for _, id := range [...]*kg.ID{&p.Subject, &p.Predicate, &p.Object, &p.Graph} {
			if dice.IntN(2) == 0 {
				*id = kg.ID{}
			}
		}
		want := matched(t, snap, p, nil)
		at := 0
		for sweep.Seek(p, nil); at < len(want); at++ {
			if dice.IntN(3) == 0 {
				to := dice.IntN(len(want))
				sweep.To(want[to].IDQuad)
				at = max(at, to)
			}
			if !sweep.Next() || sweep.Row().IDQuad != want[at].IDQuad {
				t.Fatalf("%x in order %s: got %x, want row %d of %d; %v", p, p.Order(), sweep.Row().IDQuad, at, len(want), sweep.Err())
			}
		}
		if sweep.Next() || sweep.Err() != nil {
			t.Fatalf("%x: more than %d rows, or %v", p, len(want), sweep.Err())
		}
	}
}
