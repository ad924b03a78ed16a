package kg

import (
	"context"
	"testing"

	"koine/kg/internal/index"
)

// askedKV counts the reads of a layer.
type askedKV struct {
	index.KV
	gets int
}

func (c *askedKV) Get(key []byte, fn func([]byte) error) (bool, error) {
	c.gets++
	return c.KV.Get(key, fn)
}

// TestForeseenAsksMemoryAlone has an update look up a new prefetched term: Badger is read
// if it is another one than at the prefetch, and only then.
func TestForeseenAsksMemoryAlone(t *testing.T) {
	ctx := context.Background()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	term := IRI("urn:new")
	asks := func(f *index.PrefetchedTerm) (gets int) {
		t.Helper()
		_, err := s.Update(ctx, Meta{Principal: Principal{ID: "agent://a"}}, func(tx *Tx) error {
			d := tx.w.Dictionary
			counted := &askedKV{KV: noKV{}}
			d.KV = &index.Overlay{Base: &index.Overlay{Base: counted, Written: new(index.MemTree)}, Written: new(index.MemTree)}
			_, found, err := d.PrefetchedID(term, f)
			if found {
				t.Error("a term out of nothing")
			}
			gets = counted.gets
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return gets
	}
	early := s.prefetchTerm(term)
	if got := asks(&early); got != 0 {
		t.Errorf("Badger is asked %d times", got)
	}
	commitOf(t, s, numbered(1))
	if got := asks(&early); got != 0 {
		t.Errorf("Badger is asked %d times after a commit that it does not have", got)
	}
	s.exclusive <- func() {} // which Badger gets before
	if got := asks(&early); got != 1 {
		t.Errorf("Badger is asked %d times once it has more", got)
	}
	late := s.prefetchTerm(term)
	if got := asks(&late); got != 0 {
		t.Errorf("Badger is asked %d times of what was foreseen later", got)
	}
}

// TestForeseenIsHandedOver opens a store again, whose cache is empty: the term in Badger is
// looked up once, by the prefetch.
func TestForeseenIsHandedOver(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := numbered(1)
	q.Subject = IRI("urn:known")
	commitOf(t, s, q)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := s.prefetchTerm(q.Subject)
	if _, cached := s.cache.ID(q.Subject); f.ID.IsZero() || f.Key != nil || !cached {
		t.Errorf("foreseen as %+v, in the cache: %v", f, cached)
	}
}
