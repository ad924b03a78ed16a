package kg

import (
	"slices"
	"testing"

	"koine/kg/internal/index"
)

// TestScratchBounds proves which commits share an array for their changes: those of at most
// maxShared bytes whose changes fit.
func TestScratchBounds(t *testing.T) {
	shares := func(n, bytes int) bool {
		var s scratch
		room := s.changeList()
		if cap(room) != roomAtOnce {
			t.Fatalf("there is room for %d changes", cap(room))
		}
		changes := room
		for range n {
			changes = append(changes, Change{ReplacedBy: 7})
		}
		kept := s.retainChanges(changes, bytes)
		if len(kept) != n || cap(kept) != n || kept[n-1].ReplacedBy != 7 {
			t.Errorf("%d changes are kept as %d with room for %d", n, len(kept), cap(kept))
		}
		for _, c := range s.room[:cap(s.room)] {
			if c.ReplacedBy != 0 {
				t.Error("a change is left where the next ones go")
				break
			}
		}
		return &kept[0] == &room[:1][0]
	}
	for _, c := range []struct {
		n, bytes int
		want     bool
	}{{7, maxShared, true}, {7, maxShared + 1, false}, {roomAtOnce, 1, true}, {roomAtOnce + 1, 1, false}} {
		if got := shares(c.n, c.bytes); got != c.want {
			t.Errorf("%d changes of %d bytes share an array: %v, want %v", c.n, c.bytes, got, c.want)
		}
	}
}

// TestScratchLists proves which places for keys the next groups get: of up to maxKeysKept
// keys, maxLists of them, with nothing left in them.
func TestScratchLists(t *testing.T) {
	var s scratch
	give := func(keys int) {
		o := &index.Overlay{}
		for range keys {
			o.Pending = append(o.Pending, index.KeyWrite{Key: "k", Value: index.PlainKey})
		}
		o.Pending = slices.Clip(o.Pending)
		s.reclaimKeyList(o)
		if o.Pending != nil {
			t.Error("the overlay still has what the next group writes to")
		}
	}
	for _, c := range []struct{ keys, kept int }{{maxKeysKept + 1, 0}, {maxKeysKept, 1}, {1, 2}, {1, maxLists}} {
		if give(c.keys); len(s.lists) != c.kept {
			t.Errorf("with one of %d keys there are %d places, want %d", c.keys, len(s.lists), c.kept)
		}
	}
	for range maxLists {
		list := s.keyList()
		if len(list) != 0 || cap(list) == 0 {
			t.Fatalf("%d keys in a place for %d", len(list), cap(list))
		}
		for _, w := range list[:cap(list)] {
			if w != (index.KeyWrite{}) {
				t.Fatal("a key is left in the place")
			}
		}
	}
	if list := s.keyList(); list != nil {
		t.Errorf("a place for %d keys out of nothing", cap(list))
	}
}
