package kg

import "testing"

// TestTurns proves that waiters for the same key are served in the order of their arrival,
// that a waiter for several keys waits for all, and that nothing is kept of those that
// left.
func TestTurns(t *testing.T) {
	var queues updateQueues
	names := []string{"a", "b", "ab", "a again", "c", "ba"}
	keys := map[string][]uint64{"a": {1}, "b": {2}, "ab": {1, 2}, "a again": {1}, "c": {3}, "ba": {2, 1}}
	at := map[string]*queuedUpdate{}
	for _, name := range names {
		at[name] = queues.join(keys[name])
	}
	for _, step := range []struct {
		leaves string
		ready  []string
	}{
		{"", []string{"a", "b", "c"}},
		{"a", []string{"b", "c"}},
		{"b", []string{"ab", "c"}},
		{"a again", []string{"ab", "c"}}, // a waiter without a turn may leave too
		{"c", []string{"ab"}},
		{"ab", []string{"ba"}},
		{"ba", nil},
	} {
		if step.leaves != "" {
			queues.leave(at[step.leaves])
			delete(at, step.leaves)
		}
		want := map[string]bool{}
		for _, name := range step.ready {
			want[name] = true
		}
		for name, one := range at {
			ready := false
			select {
			case <-one.ready:
				ready = true
			default:
			}
			if ready != want[name] {
				t.Errorf("behind %q, the turn of %q: %v", step.leaves, name, ready)
			}
		}
	}
	if n := len(queues.queues); n != 0 {
		t.Errorf("%d queues are left", n)
	}
}
