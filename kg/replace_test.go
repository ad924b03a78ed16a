package kg

import (
	"fmt"
	"testing"

	"koine/kg/internal/index"
)

// countedKV counts the keys that cursors come to.
type countedKV struct {
	index.KV
	keys *int
}

type countedCursor struct {
	index.Cursor
	keys *int
}

func (c countedKV) Scan(prefix []byte) index.Cursor { return countedCursor{c.KV.Scan(prefix), c.keys} }

func (c countedCursor) Next() {
	*c.keys++
	c.Cursor.Next()
}

// TestReplaceReadsItsGraphOnly proves that replacing a property does not read the
// statements of the subject in other graphs.
func TestReplaceReadsItsGraphOnly(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const graphs, objects = 100, 3
	var all []Quad
	for g := range graphs {
		for i := range objects {
			q := numbered(i)
			q.Graph = IRI(fmt.Sprint("urn:g:", g))
			all = append(all, q)
		}
	}
	commitOf(t, s, all...)
	p, err := s.pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.unpin(p)
	read := 0
	base := countedKV{p.kv, &read}
	tx := &Tx{w: index.NewIndexWriter(index.NewOverlay(base), base, s.cache, p.head.nextNumber)}
	others, err := tx.otherObjects(&all[graphs/2*objects])
	if err != nil || len(others) != objects-1 || read > objects {
		t.Errorf("got %v, %v, after %d keys, want %d objects after %d", others, err, read, objects-1, objects)
	}
}
