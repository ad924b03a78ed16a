package kg_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestWalkIDs proves that WalkIDs passes the quads of MatchIDs in their order and counts as
// many reads, in every kind of view, with versions, deletions and parts of the index in
// Badger's tables, its memory and the store's, and that it ends with the first error.
func TestWalkIDs(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	s := kgtest.Disk(t, kg.Options{MemTableBytes: kg.MinMemTableBytes, Governor: kg.Governor{Access: hidesGraph{kg.IRI("urn:g1")}}})
	const commits = 30
	for i := range commits {
		if i == commits/3 || i == commits*2/3 {
			s.Reopen() // all so far goes to Badger
		}
		scatter(t, s, dice)
	}
	stranger := kg.Principal{ID: "agent://stranger"}
	for _, v := range []kg.View{{}, {At: commits / 2}, {Principal: stranger}, {MinCertainty: 0.5}, {Graphs: []kg.Term{kg.IRI("urn:g1")}}} {
		t.Run(fmt.Sprintf("at %d graphs %v certainty %v agent %s", v.At, v.Graphs, v.MinCertainty, v.Principal.ID), func(t *testing.T) {
			snap, err := s.View(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			for i := range 12 {
				patterns := somePatterns(t, snap, dice)
				if i == 0 {
					patterns = append(patterns, kg.IDPattern{})
				}
				for _, p := range patterns[:min(20, len(patterns))] {
					walkAsMatched(t, snap, p)
					if p.Predicate != (kg.ID{}) {
						walkAsMatched(t, snap, kg.IDPattern{Predicate: p.Predicate})
					}
				}
			}
		})
	}
}

// hidesGraph keeps a graph from a stranger.
type hidesGraph struct{ graph kg.Term }

func (h hidesGraph) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	return graph != h.graph || p.ID != "agent://stranger"
}

func walkAsMatched(t *testing.T, snap *kg.Snapshot, p kg.IDPattern) {
	t.Helper()
	var want, got []kg.IDQuad
	before := snap.StatementsRead()
	for _, row := range matched(t, snap, p, nil) {
		want = append(want, row.IDQuad)
	}
	between := snap.StatementsRead()
	if err := kg.WalkIDs(snap, p, func(q *kg.IDQuad) error { got = append(got, *q); return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%x: %d quads, want %d", p, len(got), len(want))
	}
	if read, more := between-before, snap.StatementsRead()-between; read != more {
		t.Fatalf("%x: %d statements read, want %d", p, more, read)
	}
	enough := errors.New("enough")
	n := 0
	err := kg.WalkIDs(snap, p, func(*kg.IDQuad) error {
		if n++; n > len(want)/2 {
			return enough
		}
		return nil
	})
	if len(want) > 0 && (!errors.Is(err, enough) || n != len(want)/2+1) {
		t.Fatalf("%x: ended after %d of %d with %v", p, n, len(want), err)
	}
}
