package kg

import (
	"context"
	"testing"

	"koine/kg/internal/keys"
)

// TestCountsOfOneGraph proves that counting in a graph does not walk over the
// counts of all others, of which there may be very many.
func TestCountsOfOneGraph(t *testing.T) {
	id := func(n uint64) ID { return keys.Numbered(tagOf(IRI("urn:x")), n) }
	c := new(catalogue)
	for g := uint64(1); g <= 10; g++ {
		c.add(deltas{string(keys.Predicate(id(g), id(1))): int64(g), string(keys.Class(id(g), id(1))): 1}, Revision(g), func(string, tally) {})
	}
	for in, want := range map[ID]int{{}: 10, id(1): 1, id(5): 1, id(10): 1, id(11): 0} {
		calls := 0
		c.each(keys.PrefixPredicate, in, func(graph, _ ID, _ uint64) {
			if calls++; !in.IsZero() && graph != in {
				t.Errorf("in graph %x: told of %x", in, graph)
			}
		})
		if calls != want {
			t.Errorf("in graph %x: %d counts, want %d", in, calls, want)
		}
	}
}

// TestGraphsThatCannotBeNamedAreErrors proves that damage in the dictionary does
// not make a graph look empty.
func TestGraphsThatCannotBeNamedAreErrors(t *testing.T) {
	ctx := context.Background()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q := numbered(1)
	q.Graph = IRI("urn:g")
	commitOf(t, s, q)
	snap, err := s.View(ctx, View{})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	graph, _, err := snap.ID(q.Graph)
	if err != nil {
		t.Fatal(err)
	}
	lost := newOverlay(snap.kv)
	lost.delete(keys.Number(graph.Number()))
	cache, err := newTermCache(16)
	if err != nil {
		t.Fatal(err)
	}
	snap.kv, snap.dict = lost, dictionary{kv: lost, cache: cache}
	_, err = snap.Count(Pattern{})
	wantInternal(t, "Count", err)
	_, err = snap.Graphs()
	wantInternal(t, "Graphs", err)
	for _, p := range []Pattern{{}, {Subject: q.Subject}, {Object: q.Object}} {
		err = nil
		for _, err = range snap.Match(p) {
			break
		}
		wantInternal(t, "Match", err)
	}
}

func wantInternal(t *testing.T, what string, err error) {
	t.Helper()
	if CodeOf(err) != CodeInternal {
		t.Errorf("%s: got %v, want %s", what, err, CodeInternal)
	}
}
