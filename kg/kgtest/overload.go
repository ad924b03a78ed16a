package kgtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"koine/kg"
)

// testOverload proves that queues are bounded, and that a rejected caller is told when to retry and
// leaves nothing behind.
func testOverload(t *testing.T, f Factory) {
	t.Run("a full queue", func(t *testing.T) { testFullQueue(t, f) })
	t.Run("too long in the queue", func(t *testing.T) {
		s := f(t, kg.Options{QueueTime: time.Nanosecond})
		_, err := s.Update(within(t), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(quad("s", "p", "o"), "")}))
		checkOverloaded(t, err)
		if got := s.Head().Revision; got != 0 {
			t.Errorf("made revision %d", got)
		}
	})
	t.Run("given up in the queue", func(t *testing.T) { testCancelledUpdate(t, f) })
	t.Run("too many watchers", func(t *testing.T) {
		s := f(t, kg.Options{MaxWatchers: 3})
		var open []*kg.Watcher
		for range 3 {
			w, err := s.Watch(within(t), matchAll(), s.Head())
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, w)
		}
		_, err := s.Watch(within(t), matchAll(), s.Head())
		checkOverloaded(t, err)
		open[0].Close()
		if open[0], err = s.Watch(within(t), matchAll(), s.Head()); err != nil {
			t.Errorf("after one has gone: %v", err)
		}
		for _, w := range open {
			w.Close()
		}
	})
	t.Run("a full volume", func(t *testing.T) { testFullVolume(t, f) })
}

func checkOverloaded(t *testing.T, err error) {
	t.Helper()
	if e := kg.AsError(err); err == nil || e.Code != kg.CodeOverloaded || e.RetryAfter <= 0 {
		t.Errorf("got %v, want %s and when to try again", err, kg.CodeOverloaded)
	}
}

// blockCommitter keeps the committer busy until letGo is called.
func blockCommitter(t *testing.T, s *Store) (letGo func()) {
	t.Helper()
	busy, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := s.Update(ctx, kg.Meta{Principal: tester}, func(*kg.Tx) error {
			close(busy)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return errOwn
		})
		done <- err
	}()
	select {
	case <-busy:
	case <-ctx.Done():
		t.Fatal("the update does not begin")
	}
	return func() {
		close(release)
		if err := <-done; !errors.Is(err, errOwn) {
			t.Errorf("the update that was held: %v", err)
		}
	}
}

func testFullQueue(t *testing.T, f Factory) {
	const length = 5
	b := newBoth(t, f, kg.Options{QueueLength: length})
	letGo := blockCommitter(t, b.Store)
	ctx := within(t)
	waiting := make(chan error, length)
	for range length {
		go func() {
			_, err := b.Update(ctx, kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(quad("s", "p", "o"), ""), addWith(quad("s", "p", "o"), "", 0.5)}))
			waiting <- err
		}()
	}
	waitUntil(t, "the queue to fill", func() bool { return b.Stats().QueueLength == length })
	_, err := b.Update(ctx, kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(quad("s", "p", "too much"), "")}))
	checkOverloaded(t, err)
	letGo()
	for range length {
		if err := <-waiting; err != nil {
			t.Errorf("an update that waited: %v", err)
		}
	}
	replayNew(t, b)
	sameEverything(t, b.model, b.Store)
	b.update(kg.Meta{}, add(quad("s", "p", "again"), ""))
}

// testCancelledUpdate proves that an update is not made if its caller cancels it while it
// is queued.
func testCancelledUpdate(t *testing.T, f Factory) {
	s := f(t, kg.Options{})
	letGo := blockCommitter(t, s)
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan error, 1)
	go func() {
		_, err := s.Update(ctx, kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(quad("s", "p", "o"), "")}))
		done <- err
	}()
	waitUntil(t, "the update to wait", func() bool { return s.Stats().QueueLength == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	letGo()
	if _, err := s.Update(within(t), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(quad("s", "p", "next"), "")})); err != nil {
		t.Fatal(err)
	}
	if got := s.Head().Revision; got != 1 {
		t.Errorf("got revision %d, want 1: that of the next update only", got)
	}
}

// testFullVolume proves that updates are rejected below the reserve, and that reads and
// watches continue.
func testFullVolume(t *testing.T, f Factory) {
	var free atomic.Uint64
	free.Store(1000)
	b := newBoth(t, f, kg.Options{ReserveBytes: 1000, FreeBytes: func(string) (uint64, error) { return free.Load(), nil }})
	b.update(kg.Meta{}, add(quad("s", "p", "o"), ""))
	if err := b.Ready(); err != nil {
		t.Errorf("Ready with just the reserve free: %v", err)
	}
	free.Store(999)
	_, err := b.Update(within(t), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(quad("s", "p", "o2"), "")}))
	if code := kg.CodeOf(err); code != kg.CodeDiskFull {
		t.Errorf("below the reserve: got %q (%v), want %s", code, err, kg.CodeDiskFull)
	}
	if code := kg.CodeOf(b.Ready()); code != kg.CodeDiskFull {
		t.Errorf("Ready: got %q, want %s", code, kg.CodeDiskFull)
	}
	sameEverything(t, b.model, b.Store)
	if _, err := Watched(within(t), b.Store, matchAll(), b.Oldest(), 1); err != nil {
		t.Errorf("Watch: %v", err)
	}
	free.Store(1000)
	b.update(kg.Meta{}, add(quad("s", "p", "o3"), ""))
	if err := b.Ready(); err != nil {
		t.Errorf("Ready with space again: %v", err)
	}
}
