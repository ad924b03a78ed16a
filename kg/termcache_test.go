package kg

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

func cachedTerm(n uint64) Term {
	text := fmt.Sprint("urn:term:", n/4) // four kinds of each text
	switch n % 4 {
	case 0:
		return IRI(text)
	case 1:
		return Blank(text)
	case 2:
		return LangString(text, "en")
	}
	return Typed(text, "urn:type")
}

// TestTermCache fills a cache to its bound and far past it: it has all, or the newest and
// some, and its answers are always correct.
func TestTermCache(t *testing.T) {
	const places = 1 << 12
	c := index.NewTermCache(places - 100)
	if len(c.ByNumber) != places || len(c.ByTerm)*index.TermWays != places {
		t.Fatalf("%d and %d places, want %d", len(c.ByNumber), len(c.ByTerm)*index.TermWays, places)
	}
	known := func(n uint64) (both int) {
		if id, ok := c.ID(cachedTerm(n)); ok {
			if want := keys.Numbered(base.TagOf(cachedTerm(n)), n); id != want {
				t.Fatalf("term %d has the id %v, want %v", n, id, want)
			}
			both++
		}
		if term := c.Term(n); term != nil {
			if *term != cachedTerm(n) {
				t.Fatalf("number %d is %v, want %v", n, *term, cachedTerm(n))
			}
			both++
		}
		return both
	}
	for n := uint64(1); n <= 10*places; n++ {
		if known(n) != 0 {
			t.Fatalf("term %d is there before it came", n)
		}
		c.Add(cachedTerm(n), n)
		c.Add(cachedTerm(n), n) // as two do at the same time
		if known(n) != 2 {
			t.Fatalf("term %d is not there", n)
		}
		if n != places {
			continue
		}
		found := 0
		for m := uint64(1); m <= n; m++ {
			found += known(m)
		}
		if found < 2*places*8/10 { // sets that are full turn some away
			t.Errorf("full, the cache knows %d of %d", found, 2*places)
		}
	}
	found := 0
	for n := uint64(1); n <= 10*places; n++ {
		found += known(n)
	}
	if found > 2*places || found < 2*places*9/10 {
		t.Errorf("overfull, the cache knows %d, want about %d", found, 2*places)
	}
	newest := 0
	for n := uint64(10*places - places/4 + 1); n <= 10*places; n++ {
		if _, ok := c.ID(cachedTerm(n)); ok {
			newest++
		}
	}
	if newest < places/4*8/10 {
		t.Errorf("of the newest %d terms it knows %d", places/4, newest)
	}
	long := String(strings.Repeat("x", index.MaxCachedTerm+1))
	c.Add(long, 7)
	if _, ok := c.ID(long); ok {
		t.Error("a long text is in the cache")
	}
	if _, ok := c.ID(String(strings.Repeat("x", index.MaxCachedTerm))); ok {
		t.Error("a text is there that never came")
	}
	fits := String(strings.Repeat("x", index.MaxCachedTerm))
	if c.Add(fits, 1<<40); c.Term(1<<40) == nil {
		t.Error("a text of the longest that fits is not in the cache")
	}
}

// TestTermCacheTogether has many add and ask at the same time, in few sets.
func TestTermCacheTogether(t *testing.T) {
	c := index.NewTermCache(64)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := uint64(1); n < 5000; n++ {
				c.Add(cachedTerm(n%200), n%200)
				for m := n; m < n+3; m++ {
					if id, ok := c.ID(cachedTerm(m % 200)); ok && id != keys.Numbered(base.TagOf(cachedTerm(m%200)), m%200) {
						t.Errorf("term %d has the id %v", m%200, id)
					}
					if term := c.Term(m % 200); term != nil && *term != cachedTerm(m%200) {
						t.Errorf("number %d is %v", m%200, *term)
					}
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkTermCache looks up existing terms, and as many missing ones.
func BenchmarkTermCache(b *testing.B) {
	const terms = 1 << 15
	c := index.NewTermCache(1 << 17)
	list := make([]Term, 2*terms)
	for i := range list {
		list[i] = IRI(fmt.Sprint("https://example.com/entity/", i))
		if i%2 == 0 {
			c.Add(list[i], uint64(i))
		}
	}
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			c.ID(list[i*7919%len(list)])
		}
	})
}
