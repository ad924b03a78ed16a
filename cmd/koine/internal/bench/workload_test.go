package bench

import "testing"

// Each update is given once, in batches up to the bound.
func TestAdditions(t *testing.T) {
	var a collection[uint64]
	for n := range uint64(updatesPerRemoval + 1) {
		a.add(n)
	}
	if first, rest, none := a.pop(updatesPerRemoval), a.pop(updatesPerRemoval), a.pop(updatesPerRemoval); len(first) != updatesPerRemoval || len(rest) != 1 || rest[0] != updatesPerRemoval || len(none) != 0 {
		t.Errorf("got %d, %v and %v", len(first), rest, none)
	}
}
