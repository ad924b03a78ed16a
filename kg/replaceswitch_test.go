package kg

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// TestReplacementAnsweredByItsKey shows that the generation of a replacement which is
// answered by its idempotency key at the switch is given up: the graph takes changes again.
func TestReplacementAnsweredByItsKey(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{wholeFrom: 3, wholeCommit: 2})
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	replaceWith(t, s, m, wholeQuads(0, 5))
	keyed := m
	keyed.IdempotencyKey, keyed.ContentHash = "edition 2", [32]byte{2}
	var first Receipt
	r := replaceWith(t, s, keyed, func(yield func(Quad, error) bool) {
		for q := range wholeQuads(2, 9) {
			if !yield(q, nil) {
				return
			}
		}
		var err error // the key is used meanwhile
		if first, err = s.Update(t.Context(), keyed, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: numbered(1)}) }); err != nil {
			t.Error(err)
		}
	})
	if !r.Replayed || r.Revision != first.Revision || r.Commits != 0 {
		t.Errorf("got %+v, want the answer of revision %d", r, first.Revision)
	}
	nothingIsLeft(t, s, m, wholeObjects(0, 5))
}

// revocable is an Access that withdraws the right to write from all principals.
type revocable struct {
	AllowAll
	revoked *atomic.Bool
}

func (r revocable) Allowed(_ Principal, _ Term, right Right) bool {
	return right == Read || !r.revoked.Load()
}

// TestReplacementWithoutTheRightAtTheSwitch shows that a principal that loses the right to
// write while its replacement is judged does not replace the graph, also if the new content
// is empty.
func TestReplacementWithoutTheRightAtTheSwitch(t *testing.T) {
	var revoked atomic.Bool
	v := &verdicts{of: func(Judgement) (Verdict, error) { return Verdict{}, nil }}
	s := openStore(t, t.TempDir(), Options{wholeFrom: 3, wholeCommit: 2, Governor: Governor{Verifier: v, Access: revocable{revoked: &revoked}}})
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	replaceWith(t, s, m, wholeQuads(0, 8))
	for _, n := range []int{0, 9} {
		v.of = func(Judgement) (Verdict, error) { revoked.Store(true); return Verdict{}, nil }
		if r, err := s.ReplaceGraph(t.Context(), m, wholeGraph, wholeQuads(0, n), ReplaceOptions{}); CodeOf(err) != CodePermissionDenied {
			t.Errorf("a replacement with %d statements gets %+v, %v", n, r, err)
		}
		revoked.Store(false)
		v.of = func(Judgement) (Verdict, error) { return Verdict{}, nil }
		nothingIsLeft(t, s, m, wholeObjects(0, 8))
	}
}

// TestReplacementOnAFullVolume shows that a replacement which fails for lack of space is
// given up in the reserve, so that the graph takes changes as soon as there is room. Where
// hardly anything of the reserve is left, it is given up when there is room: in the same
// store, and in one that was opened on the full volume.
func TestReplacementOnAFullVolume(t *testing.T) {
	const reserve = 64 << 20
	for name, row := range map[string]struct {
		free    uint64
		restart bool
	}{"in the reserve": {freeingBytes, false}, "when there is room": {freeingBytes - 1, false}, "opened again": {0, true}} {
		t.Run(name, func(t *testing.T) {
			var free atomic.Uint64
			free.Store(1 << 40)
			o := smallWhole()
			o.purgeRetry, o.ReserveBytes = time.Millisecond, reserve
			o.FreeBytes = func(string) (uint64, error) { return free.Load(), nil }
			dir := t.TempDir()
			open := func() *Store {
				t.Helper()
				s, err := Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
			s := open()
			m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
			replaceWith(t, s, m, wholeQuads(0, 5))
			_, err := s.ReplaceGraph(t.Context(), m, wholeGraph, func(yield func(Quad, error) bool) {
				for q := range wholeQuads(2, 9) {
					if !yield(q, nil) {
						return
					}
				}
				free.Store(row.free)
				yield(wholeQuad(9), nil)
			}, ReplaceOptions{})
			if CodeOf(err) != CodeDiskFull {
				t.Fatalf("without room it gets %v", err)
			}
			takes := func() bool {
				h := s.head.Load()
				return h.generations == nil || len(h.generations.Writing) == 0
			}
			given := row.free >= freeingBytes
			if takes() != given {
				t.Fatalf("given up: %v, want %v", takes(), given)
			}
			if given {
				if _, err := s.Update(t.Context(), m, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: wholeQuad(-1)}) }); CodeOf(err) != CodeDiskFull {
					t.Errorf("an update in the reserve gets %v", err)
				}
			}
			if row.restart {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open()
			}
			free.Store(1 << 40)
			for end := time.Now().Add(time.Minute); !takes(); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the graph is still closed though there is room")
				}
			}
			nothingIsLeft(t, s, m, wholeObjects(0, 5))
		})
	}
}

// TestReplacementOfStatementsWithMuchProvenance shows that a graph whose assertions have
// more bytes than a commit may have is replaced, whether they stay, are removed, or are
// carried over because the caller does not see them.
func TestReplacementOfStatementsWithMuchProvenance(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	const n = 4_000
	s := openStore(t, t.TempDir(), Options{Governor: Governor{Access: wall{}}})
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	provenance := slices.Concat([]byte{34}, bytes.Repeat([]byte("p"), 4_000), []byte{34}) // a string in JSON
	for from := 0; from < n; from += n / 2 {
		if _, err := s.Update(t.Context(), m, func(tx *Tx) error {
			for i := from; i < from+n/2; i++ {
				if err := tx.Apply(Patch{Op: Add, Quad: wholeQuad(i), Provenance: provenance}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	second := Meta{Principal: Principal{ID: "agent://second", Method: "key"}}
	for from := 0; from < n; from += n / 4 {
		if _, err := s.Update(t.Context(), second, func(tx *Tx) error {
			for i := from; i < from+n/4; i++ {
				if err := tx.Apply(Patch{Op: Add, Quad: wholeQuad(i), Provenance: provenance}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	other := Meta{Principal: Principal{ID: partly, Method: "key"}}
	if r := replaceWith(t, s, other, wholeQuads(0, n)); !r.Whole || r.Removed != 0 { // all stays, with both sources
		t.Errorf("got %+v", r)
	}
	r := replaceWith(t, s, other, wholeQuads(0, 1)) // a quarter is hidden, and carried over
	if want := uint64(n - n/4); !r.Whole || r.Removed != want {
		t.Errorf("got %+v, want %d removed", r, want)
	}
	if got := holdsAt(t, s, 0); len(got) != n/4 {
		t.Errorf("the graph has %d statements, want %d", len(got), n/4)
	}
	mustBeClean(t, s)
}
