package kgtest

import (
	"sync"
	"testing"

	"koine/kg"
)

// testIdempotency proves that a retry with the same key gets the first response and changes
// nothing, whatever happened in between.
func testIdempotency(t *testing.T, f Factory) {
	q := quad("s", "p", "o")
	keyed := func(key string, hash byte) kg.Meta {
		return kg.Meta{Principal: tester, IdempotencyKey: key, ContentHash: [32]byte{hash}}
	}
	t.Run("same content", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		first := b.update(keyed("k", 1), add(q, ""), add(quad("s2", "p", "o"), ""))
		b.update(kg.Meta{}, remove(q, ""))
		for range 2 {
			again := b.update(keyed("k", 1), add(q, ""), add(quad("s2", "p", "o"), ""))
			if !again.Replayed || again.Revision != first.Revision || again.Affected != 2 || len(again.Subjects) != 2 {
				t.Errorf("got %+v, want the first answer %+v", again, first)
			}
			b.Reopen()
		}
		sameEverything(t, b.model, b.Store)
	})
	t.Run("other content", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(keyed("k", 1), add(q, ""))
		b.update(keyed("k", 2), remove(q, ""))
		b.Reopen()
		b.update(keyed("k", 2), remove(q, ""))
		if b.model.Head() != 1 {
			t.Errorf("got %d commits, want 1", b.model.Head())
		}
		sameEverything(t, b.model, b.Store)
	})
	t.Run("another principal", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(keyed("k", 1), add(q, ""))
		other := keyed("k", 2)
		other.Principal.ID = "agent://other"
		b.update(other, remove(q, ""))
		if b.model.Head() != 2 {
			t.Errorf("got %d commits, want 2", b.model.Head())
		}
	})
	t.Run("without effect", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		got := b.update(keyed("k", 1), remove(q, ""))
		if !got.Committed || got.Revision != 1 || got.Affected != 0 {
			t.Errorf("got %+v, want an empty commit", got)
		}
		b.update(kg.Meta{}, add(q, ""))
		b.update(keyed("k", 1), remove(q, "")) // does not remove it now
		b.compareAll(kg.View{Principal: tester})
	})
	t.Run("refusals and dry runs are forgotten", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		dry := keyed("k", 1)
		dry.DryRun = true
		b.update(dry, add(q, ""))
		_, err := b.Update(within(t), keyed("k", 3), func(*kg.Tx) error { return errOwn })
		if err == nil {
			t.Error("a function that fails is a success")
		}
		if got := b.update(keyed("k", 2), add(q, "")); got.Replayed || !got.Committed {
			t.Errorf("got %+v, want a commit", got)
		}
	})
	t.Run("at the same time", func(t *testing.T) {
		store := f(t, kg.Options{})
		ctx := within(t)
		receipts := make([]kg.Receipt, 20)
		var wg sync.WaitGroup
		for i := range receipts {
			wg.Go(func() {
				var err error
				if receipts[i], err = store.Update(ctx, keyed("k", 1), applyPatches([]kg.Patch{add(q, "")})); err != nil {
					t.Errorf("Update: %v", err)
				}
			})
		}
		wg.Wait()
		firsts := 0
		for _, r := range receipts {
			if !r.Replayed {
				firsts++
			}
			if r.Revision != 1 || !r.Committed || r.Affected != 1 {
				t.Errorf("got %+v, want the answer of revision 1", r)
			}
		}
		if firsts != 1 || store.Head().Revision != 1 {
			t.Errorf("%d of 20 were done, up to revision %d; want 1", firsts, store.Head().Revision)
		}
	})
}
