package kg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"koine/kg/internal/keys"
)

// keepsOne keeps one graph from strangers.
type keepsOne struct{}

func (keepsOne) Allowed(p Principal, graph Term, _ Right) bool {
	return graph != IRI("urn:g1") || p.ID != "agent://stranger"
}

// TestCachedRuns proves that walks that may be answered from cached runs return what a scan
// does, each of them twice, at the newest revision and in snapshots of before, for readers with
// different rights, while commits add, remove and replace statements; that the cache is used;
// and that it stays within its bound.
func TestCachedRuns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	const maxBytes = 4 << 10
	s, err := Open(t.TempDir(), Options{ReserveBytes: 1, RunCacheBytes: maxBytes, Governor: Governor{Access: keepsOne{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	node := func(n int) Term { return IRI(fmt.Sprintf("urn:n%d", dice.IntN(n))) }
	predicates := []Term{IRI("urn:p0"), IRI("urn:p1"), IRI("urn:p2"), IRI(RDFType)}
	graphs := []Term{DefaultGraph, DefaultGraph, IRI("urn:g1")}
	var old []*Snapshot
	view := func(agent AgentID) *Snapshot {
		snap, err := s.View(context.Background(), View{Principal: Principal{ID: agent}})
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	for range 60 {
		_, err := s.Update(context.Background(), Meta{}, func(tx *Tx) error {
			for range 1 + dice.IntN(12) {
				p := dice.IntN(len(predicates))
				patch := Patch{Op: Add, Quad: Quad{Subject: node(30), Predicate: predicates[p], Object: node(5), Graph: graphs[dice.IntN(len(graphs))]}}
				if p == 1 {
					patch.Quad.Graph = DefaultGraph
				}
				if patch.Op = []Op{Add, Add, Remove, Replace}[dice.IntN(4)]; patch.Op == Replace {
					patch.Quad.Object = Integer(int64(dice.IntN(4)))
				}
				if err := tx.Apply(patch); err != nil && CodeOf(err) != CodeNotFound {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range []AgentID{"agent://member", "agent://stranger"} {
			old = append(old, view(agent))
		}
		if len(old) > 6 {
			old[0].Close()
			old[1].Close()
			old = old[2:]
		}
		for _, i := range dice.Perm(len(old)) {
			for _, p := range predicates {
				ids, known, err := old[i].PatternIDs(Pattern{Predicate: p})
				if !known || err != nil {
					continue
				}
				walkTwice(t, old[i], ids)
				if ids, known, _ = old[i].PatternIDs(Pattern{Predicate: p, Object: node(5)}); known {
					walkTwice(t, old[i], ids)
				}
			}
		}
		if s.runs.bytes > maxBytes || s.runs.reserved != 0 || len(s.runs.building) != 0 {
			t.Fatalf("the cache has %d bytes, at most %d, and %d reserved for %d runs", s.runs.bytes, maxBytes, s.runs.reserved, len(s.runs.building))
		}
	}
	for _, snap := range old {
		snap.Close()
	}
	if s.runs.hits == 0 || s.runs.dropped == 0 {
		t.Errorf("%d runs were read from the cache and %d dropped", s.runs.hits, s.runs.dropped)
	}
}

// Runs that are read at the same time have at most half of the cache, each is read once, and what the
// cache has gives way to them.
func TestRunsBeingRead(t *testing.T) {
	c := newRunCache(64 << 10)
	key := func(n uint64) runKey { return runKey{predicate: keys.Numbered(keys.TagIRI, n)} }
	fill := func(r *cachedRun, n int) (fits bool) {
		q := IDQuad{Object: keys.Numbered(keys.TagIRI, 1)}
		for i := range n {
			q.Subject = keys.Numbered(keys.TagIRI, uint64(i))
			if !c.appendQuad(r, &q) {
				return false
			}
		}
		return true
	}
	for n := range uint64(6) {
		r := c.beginRun(key(n), ID{}, 1)
		if r == nil || !fill(r, 1024) {
			t.Fatalf("run %d is not read", n)
		}
		c.endRun(r, true)
	}
	had := c.bytes
	one, other := c.beginRun(key(10), ID{}, 1), c.beginRun(key(11), ID{}, 1)
	if again := c.beginRun(key(10), ID{}, 1); again != nil {
		t.Error("a run is read twice at the same time")
	}
	if !fill(one, 2048) {
		t.Error("the first does not fit")
	}
	if fill(other, 2048) {
		t.Errorf("two of %d bytes fit into half of %d", one.size(), c.maxBytes)
	}
	if c.bytes+c.reserved > c.maxBytes || c.reserved > c.maxBytes/2 || c.bytes >= had {
		t.Errorf("%d bytes, %d before, and %d reserved of %d", c.bytes, had, c.reserved, c.maxBytes)
	}
	c.endRun(other, false)
	c.endRun(one, true)
	if c.lookUp(key(10), 1) != one || c.lookUp(key(11), 1) != nil || c.reserved != 0 || len(c.building) != 0 {
		t.Errorf("after the end %d bytes are reserved for %d runs", c.reserved, len(c.building))
	}
	c.clear()
	if c.bytes != 0 || c.order.Len() != 0 || c.lookUp(key(10), 1) != nil {
		t.Errorf("%d bytes after clear", c.bytes)
	}
}

func walkTwice(t *testing.T, snap *Snapshot, p IDPattern) {
	t.Helper()
	var want []IDQuad
	for row, err := range snap.MatchIDs(p, nil) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, row.IDQuad)
	}
	for time := range 2 {
		var got []IDQuad
		before := snap.StatementsRead()
		if err := WalkIDs(snap, p, func(q *IDQuad) error { got = append(got, *q); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("walk %d at revision %d: %x\ngot  %x\nwant %x", time, snap.Revision(), p, got, want)
		}
		if n := snap.StatementsRead() - before; n != int64(len(want)) {
			t.Fatalf("walk %d read %d statements, want %d", time, n, len(want))
		}
	}
}
