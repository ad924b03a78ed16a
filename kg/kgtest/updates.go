package kgtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"koine/kg"
)

// testUpdates tests receipts, conditions, time, and update functions that fail.
func testUpdates(t *testing.T, f Factory) {
	q, q2 := quad("s", "p", "o"), quad("s2", "p", "o")
	t.Run("revisions have no gap", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		for i := range 5 {
			if got := b.update(kg.Meta{}, addWith(q, "", float64(i)/10)); got.Revision != kg.Revision(i+1) {
				t.Errorf("got revision %d, want %d", got.Revision, i+1)
			}
			b.update(kg.Meta{}, remove(q2, ""))
			checkOwnError(t, b.Store)
			b.update(kg.Meta{DryRun: true}, add(q2, ""))
		}
	})
	t.Run("what is said with a commit is kept", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(kg.Meta{
			Principal: tester, Actor: "agent://actor", Justification: "because", TaskID: "t", SessionID: "s", MessageID: "m",
			IdempotencyKey: "k", ContentHash: [32]byte{1, 2, 3},
		}, add(q, ""), add(q2, "agent://other"))
		sameEverything(t, b.model, b.Store)
		b.Reopen()
		sameEverything(t, b.model, b.Store)
	})
	t.Run("time never goes back", func(t *testing.T) { testMonotonicTime(t, f) })
	t.Run("a dry run writes nothing", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(kg.Meta{}, add(q, ""))
		got := b.update(kg.Meta{DryRun: true}, add(q2, ""), remove(q, ""))
		if !got.DryRun || got.Committed || got.Affected != 2 || got.Revision != 1 {
			t.Errorf("got %+v", got)
		}
		sameEverything(t, b.model, b.Store)
	})
	t.Run("a function that fails leaves nothing", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(kg.Meta{}, add(q, ""))
		checkOwnError(t, b.Store)
		sameEverything(t, b.model, b.Store)
	})
	t.Run("a function that panics leaves nothing", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		for _, dry := range []bool{true, false} {
			_, err := b.Update(within(t), kg.Meta{Principal: tester, DryRun: dry}, func(tx *kg.Tx) error {
				if err := tx.Apply(add(q, "")); err != nil {
					return err
				}
				panic("the function is broken")
			})
			if code := kg.CodeOf(err); code != kg.CodeInternal {
				t.Errorf("got %q (%v), want %s", code, err, kg.CodeInternal)
			}
		}
		sameEverything(t, b.model, b.Store)
		b.update(kg.Meta{}, add(q, ""))
	})
	t.Run("one agent, one name", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		bare := kg.Meta{Principal: kg.Principal{ID: "tester"}, Actor: "actor", IdempotencyKey: "k"}
		full := kg.Meta{Principal: kg.Principal{ID: "agent://tester"}, Actor: "agent://actor", IdempotencyKey: "k"}
		if r, err := b.Update(within(t), bare, applyPatches([]kg.Patch{add(q, "source"), add(q2, "")})); err != nil || r.Revision != 1 {
			t.Fatalf("got %+v, %v", r, err)
		}
		want := b.model.Update(full, []kg.Patch{add(q, "agent://source"), add(q2, "")}, Stamp{1, b.time(t, 1)})
		sameEverything(t, b.model, b.Store)
		b.update(full, add(q, "agent://source"), add(q2, ""))
		if b.model.Head() != 1 || want.Receipt.Affected != 2 {
			t.Error("a retry under the other spelling was done again")
		}
		b.update(kg.Meta{}, remove(q, "agent://source"))
	})
	t.Run("revisions that are not there", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		if r, err := b.Resolve(within(t), kg.Moment{Time: time.Now().Add(time.Hour)}); r != 0 || err != nil {
			t.Errorf("Resolve of an empty store: got %d, %v, want 0", r, err)
		}
		b.update(kg.Meta{}) // empty update
		b.update(kg.Meta{}, add(q, ""))
		for _, r := range []kg.Revision{0, 2, 1 << 63} {
			if c, err := b.Commit(within(t), tester, r); kg.CodeOf(err) != kg.CodeNotFound {
				t.Errorf("Commit(%d): got %v, %v, want %s", r, c, err, kg.CodeNotFound)
			}
		}
	})
	t.Run("a caller that is gone writes nothing", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := b.Update(ctx, kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(q, "")})); err == nil {
			t.Error("an update of a caller that was gone before it began succeeds")
		}
		sameEverything(t, b.model, b.Store)
	})
	t.Run("expected revision", func(t *testing.T) { testExpectedRevision(t, f) })
	t.Run("own graphs stand beside the others", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(kg.Meta{}, add(quadIn(ownGraph, "s", "p", "o"), ""), add(q, ""))
		b.compareAll(kg.View{Principal: tester})
		b.compareAll(kg.View{Principal: tester, AllGraphs: true})
		b.compareAll(kg.View{Principal: tester, Graphs: []kg.Term{ownGraph}})
	})
}

func checkOwnError(t *testing.T, s *Store) {
	t.Helper()
	_, err := s.Update(within(t), kg.Meta{Principal: tester}, thenFail(applyPatches([]kg.Patch{add(quad("never", "p", "o"), "")})))
	if !errors.Is(err, errOwn) {
		t.Errorf("got %v, want the function's own error", err)
	}
}

func testMonotonicTime(t *testing.T, f Factory) {
	clock := NewClock()
	b := newBoth(t, f, kg.Options{Clock: clock.Now})
	start := clock.Now()
	var times []time.Time
	for i, move := range []time.Duration{0, time.Second, -time.Hour, 30 * time.Minute, 2 * time.Hour, 1500 * time.Microsecond} {
		clock.Move(move)
		got := b.update(kg.Meta{}, addWith(quad("s", "p", "o"), "", float64(i)/10))
		times = append(times, got.Time)
	}
	want := []time.Duration{0, time.Second, time.Second, time.Second, 90*time.Minute + time.Second, 90*time.Minute + time.Second + time.Millisecond}
	for i := range want {
		if got := times[i].Sub(start); got != want[i] {
			t.Errorf("commit %d: got %v after the start, want %v", i+1, got, want[i])
		}
	}
	for _, row := range []struct {
		after time.Duration
		want  kg.Revision
	}{
		{-time.Millisecond, 0}, {0, 1}, {999 * time.Millisecond, 1}, {time.Second, 4}, {time.Hour, 4},
		{90*time.Minute + time.Second, 5}, {24 * time.Hour, 6},
	} {
		got, err := b.Resolve(within(t), kg.Moment{Time: start.Add(row.after)})
		if err != nil || got != row.want {
			t.Errorf("RevisionAt %v after the start: got %d, %v, want %d", row.after, got, err, row.want)
		}
	}
	b.Reopen()
	clock.Move(-240 * time.Hour)
	if got := b.update(kg.Meta{}, remove(quad("s", "p", "o"), "")); got.Time.Before(times[5]) {
		t.Errorf("after opening again a commit is of %v, before %v", got.Time, times[5])
	}
}

func testExpectedRevision(t *testing.T, f Factory) {
	q, q2 := quad("s", "p", "o"), quad("s2", "p", "o")
	b := newBoth(t, f, kg.Options{})
	expect := func(r kg.Revision) kg.Meta { return kg.Meta{ExpectedRevision: r, HasExpected: true} }
	for _, step := range []struct {
		why     string
		meta    kg.Meta
		patches []kg.Patch
		commits bool
	}{
		{"makes 1", kg.Meta{}, []kg.Patch{add(q, "")}, true},
		{"makes 2", kg.Meta{}, []kg.Patch{add(q2, "")}, true},
		{"makes 3: s is as of 1", expect(1), []kg.Patch{addWith(q, "", 0.5)}, true},
		{"s changed in 3", expect(1), []kg.Patch{addWith(q, "", 0.6)}, false},
		{"s changed in 3, though this has no effect", expect(1), []kg.Patch{addWith(q, "", 0.5)}, false},
		{"s changed in 3, though this is not there", expect(1), []kg.Patch{remove(quad("s", "p", "o2"), "")}, false},
		{"s changed in 3, though nobody ever said this", expect(1), []kg.Patch{remove(quad("s", "p", "never"), "")}, false},
		{"makes 4: s2 is as of 2", expect(2), []kg.Patch{addWith(q2, "", 0.5)}, true},
		{"s changed in 3, s3 did not", expect(2), []kg.Patch{add(quad("s3", "p", "o"), ""), addWith(q, "", 0.7)}, false},
		{"makes 5: s3 is new", expect(0), []kg.Patch{add(quad("s3", "p", "o"), ""), add(quad("s3", "p2", "o"), "")}, true},
		{"s3 is no longer new", expect(0), []kg.Patch{add(quad("s3", "p3", "o"), "")}, false},
		{"makes 6: another graph", expect(0), []kg.Patch{add(quadIn(kg.IRI("urn:g"), "s3", "p2", "o"), "")}, true},
		{"ahead of the newest", expect(7), []kg.Patch{add(quad("s4", "p", "o"), "")}, false},
	} {
		if got := b.update(step.meta, step.patches...); got.Committed != step.commits {
			t.Errorf("%s: committed %v, want %v", step.why, got.Committed, step.commits)
		}
	}
	if b.model.Head() != 6 {
		t.Errorf("got %d commits, want 6", b.model.Head())
	}
	b.Reopen()
	for _, expected := range []kg.Revision{4, 5} { // s3 changed in 5
		if got := b.update(expect(expected), addWith(quad("s3", "p", "o"), "", 0.5)); got.Committed != (expected == 5) {
			t.Errorf("after opening again, expecting %d: committed %v", expected, got.Committed)
		}
	}
	sameEverything(t, b.model, b.Store)
}
