package kgtest

import (
	"fmt"
	"sync"
	"testing"

	"koine/kg"
)

// testLag proves that a watcher may be arbitrarily slow or late: it reads the log after the newest
// commits have left memory, and misses nothing.
func testLag(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{RingCommits: 32, RingBytes: 16 << 10})
	start := b.Head()
	idle, err := b.Watch(within(t), matchAll(), start)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	const writers, each = 8, 400
	first := make(chan struct{})
	slow := make(chan error, 1)
	written := make(chan struct{})
	var slowEvents []kg.Event
	go func() { // reads one event, and the rest after all writes
		w, err := b.Watch(within(t), matchAll(), start)
		close(first)
		if err != nil {
			slow <- err
			return
		}
		defer w.Close()
		for e, err := range w.Events() {
			if err != nil {
				slow <- err
				return
			}
			if slowEvents = append(slowEvents, e); len(slowEvents) == 1 {
				<-written
			}
			if len(slowEvents) == writers*each {
				break
			}
		}
		slow <- nil
	}()
	<-first
	manyWriters(t, b.Store, writers, each)
	close(written)
	replayNew(t, b)
	if err := <-slow; err != nil {
		t.Fatalf("a slow watcher: %v", err)
	}
	histories := map[string]History{"one that was slow": {start, slowEvents}}
	var events []kg.Event
	for e, err := range idle.Events() {
		if err != nil {
			t.Fatalf("one that did nothing: %v", err)
		}
		if events = append(events, e); len(events) == writers*each {
			break
		}
	}
	histories["one that did nothing"] = History{start, events}
	late, err := Watched(within(t), b.Store, matchAll(), b.Oldest(), writers*each)
	if err != nil {
		t.Fatalf("one that came late: %v", err)
	}
	histories["one that came late"] = History{b.Oldest(), late}
	for name, h := range histories {
		for _, err := range []error{Ordered(h), Unique(h), Gapless(h, b.model.Commits), Atomic(h, b.model.Commits), Filtered(h, b.model, matchAll())} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// manyWriters makes commits of one statement each, concurrently.
func manyWriters(t *testing.T, s *Store, writers, each int) {
	t.Helper()
	ctx := within(t)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				q := quad(fmt.Sprint("s", w), "p", fmt.Sprint("o", i))
				if _, err := s.Update(ctx, kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(q, "")})); err != nil {
					t.Errorf("Update: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// replayNew applies commits of others to the model.
func replayNew(t *testing.T, b *both) {
	t.Helper()
	for r := b.model.Head() + 1; r <= b.Head().Revision; r++ {
		c, err := b.Commit(within(t), tester, r)
		if err == nil {
			err = b.model.Replay(c)
		}
		if err != nil {
			t.Fatalf("following the log: %v", err)
		}
	}
}
