package recent_test

import (
	"sync"
	"testing"

	"koine/internal/recent"
)

func TestValues(t *testing.T) {
	const places = 4
	v := recent.New[string, int](places)
	want := func(number uint64, key string, value int, found bool) {
		t.Helper()
		if got, ok := v.Find(number, key); got != value || ok != found {
			t.Errorf("%d %q: got %d, %v, want %d, %v", number, key, got, ok, value, found)
		}
	}
	want(0, "", 0, false) // an empty place has no key, not the zero one
	for n := range uint64(places) {
		v.Keep(n, "a", int(n)+1)
	}
	for n := range uint64(places) {
		want(n, "a", int(n)+1, true)
	}
	want(1, "b", 0, false)
	v.Keep(places, "a", 10) // one more than there are places
	want(places, "a", 10, true)
	want(0, "a", 10, true)
	want(1, "a", 2, true)
	if got := v.FindOrKeep(1, "a", 7); got != 2 {
		t.Errorf("got %d, want the value that is kept, 2", got)
	}
	if got := v.FindOrKeep(1, "b", 7); got != 7 {
		t.Errorf("got %d, want the new value, 7", got)
	}
	want(1, "a", 0, false)
}

// Of those that come at the same time all get one value.
func TestFindOrKeepAtOnce(t *testing.T) {
	v := recent.New[string, *int](1)
	got := make([]*int, 16)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = v.FindOrKeep(0, "a", new(int)) })
	}
	all.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Errorf("%d has another value than 0", i)
		}
	}
}
