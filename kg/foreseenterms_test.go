package kg

import (
	"context"
	"testing"
)

// askedKV counts what is asked of a layer.
type askedKV struct {
	kv
	gets int
}

func (c *askedKV) get(key []byte, fn func([]byte) error) (bool, error) {
	c.gets++
	return c.kv.get(key, fn)
}

// TestForeseenAsksMemoryAlone has an update look for a new term that was foreseen: Badger
// is asked where it is not the one that was asked before, and only there.
func TestForeseenAsksMemoryAlone(t *testing.T) {
	ctx := context.Background()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	term := IRI("urn:new")
	asks := func(f *foreseenTerm) (gets int) {
		t.Helper()
		_, err := s.Update(ctx, Meta{Principal: Principal{ID: "agent://a"}}, func(tx *Tx) error {
			d := tx.w.dict
			counted := &askedKV{kv: noKV{}}
			d.kv = &overlay{base: &overlay{base: counted, written: new(memTree)}, written: new(memTree)}
			_, found, err := d.foreseen(term, f)
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
	early := s.foreseeTerm(term)
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
	late := s.foreseeTerm(term)
	if got := asks(&late); got != 0 {
		t.Errorf("Badger is asked %d times of what was foreseen later", got)
	}
}

// TestForeseenIsHandedOver opens a store again, whose cache knows nothing: the term that
// Badger has is looked up once, by who foresees it.
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
	f := s.foreseeTerm(q.Subject)
	if _, cached := s.cache.id(q.Subject); f.id.IsZero() || f.key != nil || !cached {
		t.Errorf("foreseen as %+v, in the cache: %v", f, cached)
	}
}
