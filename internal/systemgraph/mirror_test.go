package systemgraph_test

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"koine/internal/systemgraph"
	"koine/kg"
)

// A mirror that is loaded during writes misses nothing and applies nothing twice; and it
// receives only the records that it requested.
func TestMirrorLoadedAmongCommits(t *testing.T) {
	wanted := kg.Pattern{Predicate: systemgraph.Property("p"), Graph: system}
	var (
		mirror systemgraph.Mirror
		stands = map[kg.Quad]kg.Revision{}
		loaded atomic.Bool
	)
	take := func(_ kg.Revision, facts []systemgraph.Fact) {
		for _, f := range facts {
			if !wanted.Matches(f.Quad) {
				t.Errorf("told of %v", f.Quad)
			}
			if since, found := stands[f.Quad]; found == f.Exists {
				t.Errorf("%v: told %v at %d again, known since %d", f.Quad, f.Exists, f.Since, since)
			}
			if f.Exists {
				stands[f.Quad] = f.Since
			} else {
				delete(stands, f.Quad)
			}
		}
	}
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{OnSystemChange: func(c *kg.Commit) {
		if loaded.Load() {
			mirror.Follow(c, take, wanted)
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	write(t, store, subject, systemgraph.Record{"p": systemgraph.Values("before"), "q": systemgraph.Values("before")})
	loaded.Store(true)
	halfway := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range 40 {
			if i == 10 {
				close(halfway)
			}
			n := strconv.Itoa(i)
			write(t, store, subject, systemgraph.Record{"p": systemgraph.Values("before", n), "q": systemgraph.Values(n)})
		}
	})
	<-halfway
	// Earlier records are known already: a mirror begins with Load.
	fresh := map[kg.Quad]kg.Revision{}
	err = mirror.Load(t.Context(), store, func(_ kg.Revision, facts []systemgraph.Fact) {
		for _, f := range facts {
			fresh[f.Quad] = f.Since
		}
		stands = fresh
	}, wanted)
	if err != nil {
		t.Fatal(err)
	}
	writing.Wait()
	got := slices.SortedFunc(maps.Values(stands), func(a, b kg.Revision) int { return int(a) - int(b) })
	if !slices.Equal(got, []kg.Revision{1, store.Head().Revision}) {
		t.Errorf("at the end %v, head %d", stands, store.Head().Revision)
	}
}
