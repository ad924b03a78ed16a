package kgtest

import (
	"context"
	"testing"
	"time"

	"koine/kg"
)

// testClosing proves that Close ends everything with its reason and waits for running calls,
// and that later calls fail without blocking.
func testClosing(t *testing.T, f Factory) {
	t.Run("calls afterwards", func(t *testing.T) { testCallsAfterClose(t, f) })
	t.Run("watchers end", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(kg.Meta{}, add(quad("s", "p", "o"), ""))
		atHead := Record(t, b.Store, matchAll(), b.Head())
		behind := Record(t, b.Store, matchAll(), b.Oldest())
		if _, err := behind.Wait(within(t), 1); err != nil {
			t.Fatal(err)
		}
		b.MustClose()
		for _, rec := range []*Recorder{atHead, behind} {
			if err := rec.End(within(t)); kg.CodeOf(err) != kg.CodeClosed {
				t.Errorf("got %v, want %s", err, kg.CodeClosed)
			}
		}
		b.Reopen()
		sameEverything(t, b.model, b.Store)
	})
	t.Run("updates end", func(t *testing.T) { testUpdatesDuringClose(t, f) })
	t.Run("twice", func(t *testing.T) {
		s := f(t, kg.Options{})
		if err := s.Store.Close(); err != nil {
			t.Errorf("the first time: %v", err)
		}
		if err := s.Store.Close(); err != nil {
			t.Errorf("the second time: %v", err)
		}
		s.Store = nil
	})
}

func testCallsAfterClose(t *testing.T, f Factory) {
	s := f(t, kg.Options{})
	ctx := within(t)
	meta := kg.Meta{Principal: tester}
	if _, err := s.Update(ctx, meta, applyPatches([]kg.Patch{add(quad("s", "p", "o"), "")})); err != nil {
		t.Fatal(err)
	}
	head, closed := s.Head(), s.Store
	s.MustClose()
	for name, err := range map[string]error{
		"Update":     errOf(closed.Update(ctx, meta, applyPatches([]kg.Patch{add(quad("s", "p", "o2"), "")}))),
		"dry Update": errOf(closed.Update(ctx, kg.Meta{Principal: tester, DryRun: true}, applyPatches(nil))),
		"Load":       errOf(closed.Load(ctx, meta, func(func(kg.Quad, error) bool) {}, kg.LoadOptions{})),
		"View":       errOf(closed.View(ctx, kg.View{})),
		"Watch":      errOf(closed.Watch(ctx, matchAll(), head)),
		"WaitFor":    closed.WaitFor(ctx, head.Revision+1),
		"Resolve":    errOf(closed.Resolve(ctx, kg.Moment{Time: time.Now()})),
		"Commit":     errOf(closed.Commit(ctx, tester, 1)),
		"Check":      errOf(closed.Maintenance().Check(ctx, kg.CheckOptions{})),
		"Ready":      closed.Ready(),
	} {
		if code := kg.CodeOf(err); code != kg.CodeClosed {
			t.Errorf("%s: got %q (%v), want %s", name, code, err, kg.CodeClosed)
		}
	}
	if got := closed.Head(); got != head {
		t.Errorf("Head: got %v, want %v", got, head)
	}
	if token := closed.FormatPosition(head); token == "" {
		t.Error("FormatPosition gives nothing")
	}
	closed.Stats() // must not panic: it may be called at any time
}

func errOf[T any](_ T, err error) error { return err }

// testUpdatesDuringClose closes a store during updates: each of them is either in the log
// afterwards, or has failed because the store was closed.
func testUpdatesDuringClose(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	const writers = 8
	type outcome struct {
		made []kg.Revision
		err  error
	}
	outcomes := make(chan outcome, writers)
	store := b.Store.Store
	started := make(chan struct{}, writers)
	for w := range writers {
		go func() {
			var o outcome
			for i := 0; o.err == nil; i++ {
				q := quad("s", "p", "o")
				q.Object = kg.Integer(int64(w*1_000_000 + i))
				var r kg.Receipt
				if r, o.err = store.Update(context.Background(), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(q, "")})); o.err == nil {
					o.made = append(o.made, r.Revision)
				}
				if i == 3 || o.err != nil {
					started <- struct{}{}
				}
			}
			outcomes <- o
		}()
	}
	for range writers {
		<-started
	}
	b.MustClose()
	b.Reopen()
	made := map[kg.Revision]bool{}
	for range writers {
		o := <-outcomes
		if code := kg.CodeOf(o.err); code != kg.CodeClosed {
			t.Errorf("an update while the store closes: got %q (%v), want %s", code, o.err, kg.CodeClosed)
		}
		for _, r := range o.made {
			made[r] = true
		}
	}
	replayNew(t, b)
	sameEverything(t, b.model, b.Store)
	if len(made) != int(b.model.Head()) {
		t.Errorf("%d commits were answered, %d are there", len(made), b.model.Head())
	}
}
