package kg

import "testing"

// TestScratchBounds proves which commits share an array for their changes: those that
// may come to maxShared bytes, and whose changes had room.
func TestScratchBounds(t *testing.T) {
	shares := func(n, bytes int) bool {
		var s scratch
		room := s.changes()
		if cap(room) != roomAtOnce {
			t.Fatalf("there is room for %d changes", cap(room))
		}
		changes := room
		for range n {
			changes = append(changes, Change{ReplacedBy: 7})
		}
		kept := s.kept(changes, bytes)
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
