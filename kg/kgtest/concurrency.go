package kgtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// testConcurrency tests concurrent use of a store.
func testConcurrency(t *testing.T, f Factory) {
	t.Run("everybody at once", func(t *testing.T) { useConcurrently(t, f) })
	t.Run("a counter by expected revisions", func(t *testing.T) { countConcurrently(t, f) })
}

// countConcurrently has several writers increment a number: with expected revisions, no
// increment is lost.
func countConcurrently(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	const writers, each = 6, 20
	q := quad("s", "p", "o")
	q.Object = kg.Integer(0)
	b.update(kg.Meta{}, add(q, ""))
	ctx := within(t)
	increment := func() error {
		snap, err := b.View(ctx, kg.View{Principal: tester})
		if err != nil {
			return err
		}
		defer snap.Close()
		found, err := collect(snap.Match(kg.Pattern{Subject: q.Subject, Predicate: q.Predicate}))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("the number is %v, %w", found, err)
		}
		n, _ := found[0].Object.Number()
		next := q
		next.Object = kg.Integer(int64(n) + 1)
		meta := kg.Meta{Principal: tester, HasExpected: true, ExpectedRevision: snap.Revision()}
		_, err = b.Update(ctx, meta, applyPatches([]kg.Patch{replace(next, "")}))
		return err
	}
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < each; {
				switch err := increment(); {
				case err == nil:
					done++
				case kg.CodeOf(err) != kg.CodeRevisionConflict:
					t.Errorf("Update: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	replayNew(t, b)
	sameEverything(t, b.model, b.Store)
	q.Object = kg.Integer(writers * each)
	if now, _ := b.model.stateAt(q, b.model.Head()); len(now) == 0 {
		t.Errorf("the number is not %d in the end", writers*each)
	}
}

// useConcurrently runs writers, readers and watchers concurrently. It proves that every
// receipt names the commit of its update, that the log determines the state, that a
// reader sees whole commits only, including its own writes, that a check never finds a
// problem, and that all watchers see the same events.
func useConcurrently(t *testing.T, f Factory) {
	var ticks atomic.Int64 // of a clock that moves back as often as forward
	start := NewClock().Now()
	clock := func() time.Time { return start.Add(time.Duration(ticks.Add(1)%7) * time.Second) }
	b := newBoth(t, f, kg.Options{Clock: clock})
	var recorders []*Recorder
	for range 8 {
		recorders = append(recorders, Record(t, b.Store, matchAll(), b.Head()))
	}
	ctx, stopReading := context.WithCancel(within(t))
	var readers sync.WaitGroup
	readers.Go(func() { readWholeCommits(ctx, t, b.Store) })
	readers.Go(func() { readThenFollow(ctx, t, b.Store) })
	readers.Go(func() {
		for ctx.Err() == nil {
			b.MustCheck(context.Background())
		}
	})
	const writers, each = 8, 60
	receipts := make([][]kg.Receipt, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { receipts[w] = writePairs(within(t), t, b.Store, w, each) })
	}
	wg.Wait()
	stopReading()
	readers.Wait()
	if t.Failed() {
		t.FailNow()
	}
	replayNew(t, b)
	sameEverything(t, b.model, b.Store)
	if want := kg.Revision(writers * each); b.model.Head() != want {
		t.Errorf("got %d commits, want %d", b.model.Head(), want)
	}
	for w, list := range receipts {
		for i, r := range list {
			if got, want := b.model.Commits[r.Revision-1].TaskID, fmt.Sprint(w, " ", i); got != want {
				t.Errorf("the receipt of update %s names a commit of %s", want, got)
			}
		}
	}
	var first []string
	for _, rec := range recorders {
		h, err := rec.Wait(within(t), len(b.model.Events(matchAll(), rec.from)))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{Ordered(h), Unique(h), Gapless(h, b.model.Commits), Atomic(h, b.model.Commits), Filtered(h, b.model, matchAll())} {
			if err != nil {
				t.Error(err)
			}
		}
		if first == nil {
			first = eventLines(h.Events)
		}
		if diff := cmp.Diff(first, eventLines(h.Events)); diff != "" {
			t.Errorf("two watchers see different things:\n%s", diff)
		}
	}
}

// writePairs makes commits that each update a pair of statements: the left and the right value of
// a writer are always equal.
func writePairs(ctx context.Context, t *testing.T, s *Store, writer, n int) (receipts []kg.Receipt) {
	subject := fmt.Sprint("s", writer%3)
	for i := range n {
		value := kg.String(fmt.Sprint(writer, " ", i))
		left, right := quad(subject, "left", "o"), quad(subject, "right", "o")
		left.Object, right.Object = value, value
		meta := kg.Meta{Principal: tester, TaskID: fmt.Sprint(writer, " ", i)}
		r, err := s.Update(ctx, meta, applyPatches([]kg.Patch{replace(left, ""), replace(right, "")}))
		if err != nil {
			t.Errorf("Update: %v", err)
			return receipts
		}
		snap, err := s.View(ctx, kg.View{Principal: tester})
		if err != nil {
			t.Errorf("View: %v", err)
			return receipts
		}
		if snap.Revision() < r.Revision {
			t.Errorf("a read after the write of revision %d is of revision %d", r.Revision, snap.Revision())
		}
		snap.Close()
		receipts = append(receipts, r)
	}
	return receipts
}

// readWholeCommits compares left and right values until ctx is done.
func readWholeCommits(ctx context.Context, t *testing.T, s *Store) {
	last := kg.Revision(0)
	for ctx.Err() == nil {
		snap, err := s.View(context.Background(), kg.View{Principal: tester})
		if err != nil {
			t.Errorf("View: %v", err)
			return
		}
		left, err := collect(snap.Match(kg.Pattern{Predicate: kg.IRI("urn:left")}))
		if err != nil {
			t.Errorf("Match: %v", err)
		}
		right, err := collect(snap.Match(kg.Pattern{Predicate: kg.IRI("urn:right")}))
		if err != nil {
			t.Errorf("Match: %v", err)
		}
		if diff := cmp.Diff(values(left), values(right)); diff != "" {
			t.Errorf("revision %d holds half a commit (-left +right):\n%s", snap.Revision(), diff)
		}
		if snap.Revision() < last {
			t.Errorf("a later snapshot is of revision %d, an earlier one of %d", snap.Revision(), last)
		}
		last = snap.Revision()
		snap.Close()
	}
}

// readThenFollow takes snapshots and watches from their positions until ctx is done: the first
// event must be of the next commit.
func readThenFollow(ctx context.Context, t *testing.T, s *Store) {
	for ctx.Err() == nil {
		snap, err := s.View(ctx, kg.View{Principal: tester})
		if err != nil {
			return // ctx is done
		}
		from := snap.Position()
		snap.Close()
		events, err := Watched(ctx, s, matchAll(), from, 1)
		if err == nil && events[0].Position.Revision != from.Revision+1 {
			t.Errorf("the first event behind %s is at %s", positionText(from), positionText(events[0].Position))
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("watching from %s: %v", positionText(from), err)
			return
		}
	}
}

func values(statements []kg.Statement) map[string]string {
	out := map[string]string{}
	for _, s := range statements {
		out[s.Subject.String()] += s.Object.String()
	}
	return out
}
