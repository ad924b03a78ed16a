package kg

import (
	"testing"
)

// TestReplacementAnsweredByItsKey shows that the generation of a replacement which is
// answered by its idempotency key at the switch is given up: the graph takes changes again.
func TestReplacementAnsweredByItsKey(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{wholeFrom: 3, wholeCommit: 2})
	m := Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}
	replaceWith(t, s, m, wholeQuads(0, 5))
	keyed := m
	keyed.IdempotencyKey, keyed.ContentHash = "edition 2", [32]byte{2}
	var first Receipt
	r := replaceWith(t, s, keyed, func(yield func(Quad, error) bool) {
		for q := range wholeQuads(2, 9) {
			if !yield(q, nil) {
				return
			}
		}
		var err error // the key is used meanwhile
		if first, err = s.Update(t.Context(), keyed, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: numbered(1)}) }); err != nil {
			t.Error(err)
		}
	})
	if !r.Replayed || r.Revision != first.Revision || r.Commits != 0 {
		t.Errorf("got %+v, want the answer of revision %d", r, first.Revision)
	}
	nothingIsLeft(t, s, m, wholeObjects(0, 5))
}
