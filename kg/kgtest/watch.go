package kgtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// testWatch tests the events of each kind of change, the start and the end of a watcher, and that a
// snapshot and the events behind it are consistent.
func testWatch(t *testing.T, f Factory) {
	t.Run("what is told", func(t *testing.T) { testEventKinds(t, f) })
	t.Run("every filter", func(t *testing.T) { testEveryFilter(t, f) })
	t.Run("commit by commit", func(t *testing.T) { testWatchCommits(t, f) })
	t.Run("a snapshot, then what follows", func(t *testing.T) { testSnapshotThenFollow(t, f) })
	t.Run("refused", func(t *testing.T) {
		s := f(t, kg.Options{})
		for name, v := range map[string]kg.View{
			"an age":                            {MaxAge: time.Second},
			"a revision":                        {At: 1},
			"a certainty above 1":               {MinCertainty: 1.5},
			"a span that ends before it begins": {Recorded: kg.TimeSpan{From: time.Unix(2, 0), Until: time.Unix(1, 0)}},
		} {
			w, err := s.Watch(within(t), kg.Filter{View: v}, s.Head())
			if code := kg.CodeOf(err); code != kg.CodeInvalid {
				t.Errorf("%s: got %q (%v), want %s", name, code, err, kg.CodeInvalid)
			}
			if err == nil {
				w.Close()
			}
		}
	})
	t.Run("patterns are bounded", func(t *testing.T) {
		s := f(t, kg.Options{})
		for n, want := range map[int]kg.Code{kg.MaxPatterns: "", kg.MaxPatterns + 1: kg.CodeLimitExceeded} {
			w, err := s.Watch(within(t), kg.Filter{Patterns: make([]kg.Pattern, n)}, s.Head())
			if code := kg.CodeOf(err); code != want {
				t.Errorf("%d patterns: got %q (%v), want %q", n, code, err, want)
			}
			if err == nil {
				w.Close()
			}
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		s := f(t, kg.Options{})
		ctx, cancel := context.WithCancel(context.Background())
		w, err := s.Watch(ctx, matchAll(), s.Head())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		cancel()
		for _, err := range w.Events() {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that it was cancelled", err)
			}
			return
		}
		t.Error("a watcher ends without saying why")
	})
	t.Run("ends when it is closed", func(t *testing.T) {
		s := f(t, kg.Options{})
		w, err := s.Watch(within(t), matchAll(), s.Head())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			for _, err := range w.Events() {
				ended <- err
				return
			}
			ended <- nil
		}()
		w.Close()
		if err := <-ended; kg.CodeOf(err) != kg.CodeClosed {
			t.Errorf("got %v, want %s", err, kg.CodeClosed)
		}
		w.Close()
		if n := s.Stats().Watchers; n != 0 {
			t.Errorf("%d watchers are left", n)
		}
	})
	t.Run("is registered when Watch returns", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		rec := Record(t, b.Store, matchAll(), b.Head())
		b.update(kg.Meta{}, add(quad("s", "p", "o"), ""))
		if h, err := rec.Wait(within(t), 1); err != nil || len(h.Events) != 1 {
			t.Errorf("got %v, %v", eventLines(h.Events), err)
		}
	})
	t.Run("an event counts as read when the next is asked for", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(kg.Meta{}, add(quad("s", "p", "o1"), ""), add(quad("s", "p", "o2"), ""), add(quad("s", "p", "o3"), ""))
		b.update(kg.Meta{}, add(quad("s", "p", "o4"), ""))
		want := b.Oldest()
		w, err := b.Watch(within(t), matchAll(), want)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if got := w.Position(); got != want {
			t.Errorf("before the first event: got %s, want %s", positionText(got), positionText(want))
		}
		for e, err := range w.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Position(); got != want {
				t.Errorf("at the event of %s: got %s, want %s", positionText(e.Position), positionText(got), positionText(want))
			}
			if want = e.Position; want == b.Head() {
				break
			}
		}
	})
	t.Run("moves on while nothing fits", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		w, err := b.Watch(within(t), kg.Filter{Patterns: []kg.Pattern{{Subject: kg.IRI("urn:other")}, {Predicate: kg.IRI("urn:none")}}, View: kg.View{Principal: tester}}, b.Head())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			defer close(ended)
			defer w.Close()
			for e, err := range w.Events() {
				if ctx.Err() == nil {
					t.Errorf("got %v, %v, want nothing", e, err)
				}
				return
			}
		}()
		for i := range 5 {
			b.update(kg.Meta{}, addWith(quad("s", "p", "o"), "", float64(i)/10))
			waitUntil(t, "the watcher to move on", func() bool { return w.Position() == b.Head() })
		}
		cancel()
		b.MustClose()
		<-ended
		b.Reopen()
	})
}

// testEventKinds tests all kinds of changes with all kinds of filters.
func testEventKinds(t *testing.T, f Factory) {
	q, other := quad("s", "p", "o"), quad("s", "p", "o2")
	const a, b = kg.AgentID("agent://a"), kg.AgentID("agent://b")
	open := kg.Filter{}
	sure := kg.Filter{View: kg.View{MinCertainty: 0.5}}
	onlyA := kg.Filter{View: kg.View{Believed: []kg.AgentID{a}}}
	onlyOther := kg.Filter{Patterns: []kg.Pattern{{Object: other.Object}}}
	onlyQ := kg.Filter{Patterns: []kg.Pattern{{Object: q.Object}}}
	twice := kg.Filter{Patterns: []kg.Pattern{{Object: q.Object}, {Subject: q.Subject}, {Object: other.Object}}}
	nothing := kg.Filter{Patterns: []kg.Pattern{}}
	then := kg.Filter{View: kg.View{Recorded: kg.TimeSpan{Until: time.Now().Add(time.Hour)}}}
	later := kg.Filter{View: kg.View{Recorded: kg.TimeSpan{From: time.Now().Add(time.Hour)}}}
	keepOther := kg.Filter{Keep: func(s kg.Statement) bool { return s.Object == other.Object }}
	removals := kg.Filter{Ops: []kg.Op{kg.Remove}}
	for _, row := range []struct {
		name   string
		before []kg.Patch
		filter kg.Filter
		do     []kg.Patch
		want   []string // operation, object, previous objects, "remains"
	}{
		{"add", nil, open, []kg.Patch{add(q, a)}, []string{"add o"}},
		{"a second source", []kg.Patch{add(q, a)}, open, []kg.Patch{add(q, b)}, []string{"add o"}},
		{"a change", []kg.Patch{add(q, a)}, open, []kg.Patch{addWith(q, a, 0.5)}, []string{"replace o [o]"}},
		{"a withdrawal", []kg.Patch{add(q, a), add(q, b)}, open, []kg.Patch{remove(q, a)}, []string{"remove o remains"}},
		{"the last withdrawal", []kg.Patch{add(q, a)}, open, []kg.Patch{remove(q, a)}, []string{"remove o"}},
		{"removing all", []kg.Patch{add(q, a), add(q, b)}, open, []kg.Patch{remove(q, "")}, []string{"remove o"}},
		{"replace", []kg.Patch{add(other, a)}, open, []kg.Patch{replace(q, a)}, []string{"replace o [o2]"}},
		{"replace nothing", nil, open, []kg.Patch{replace(q, a)}, []string{"add o"}},
		{"replace, seen from what went", []kg.Patch{add(other, a)}, onlyOther, []kg.Patch{replace(q, a)}, []string{"remove o2"}},
		{"replace, kept from what went", []kg.Patch{add(other, a)}, keepOther, []kg.Patch{replace(q, a)}, []string{"remove o2"}},
		{"replace, seen from what came", []kg.Patch{add(other, a)}, onlyQ, []kg.Patch{replace(q, a)}, []string{"add o"}},
		{"replace, seen under several patterns", []kg.Patch{add(other, a)}, twice, []kg.Patch{replace(q, a)}, []string{"replace o [o2]"}},
		{"several patterns", nil, twice, []kg.Patch{add(q, a), add(quad("s2", "p", "o3"), a), add(other, a)}, []string{"add o", "add o2"}},
		{"no pattern at all", nil, nothing, []kg.Patch{add(q, a)}, nil},
		{"recorded in time", nil, then, []kg.Patch{add(q, a)}, []string{"add o"}},
		{"recorded too early", nil, later, []kg.Patch{add(q, a)}, nil},
		{"removals of a replace", []kg.Patch{add(other, a)}, removals, []kg.Patch{replace(q, a)}, nil},
		{"removals", []kg.Patch{add(other, a)}, removals, []kg.Patch{remove(other, ""), add(q, a)}, []string{"remove o2"}},
		{"too unsure", nil, sure, []kg.Patch{addWith(q, a, 0.4)}, nil},
		{"sure enough", nil, sure, []kg.Patch{addWith(q, a, 0.5)}, []string{"add o"}},
		{"becomes sure", []kg.Patch{addWith(q, a, 0.4)}, sure, []kg.Patch{addWith(q, a, 0.6)}, []string{"add o"}},
		{"becomes unsure", []kg.Patch{addWith(q, a, 0.6)}, sure, []kg.Patch{addWith(q, a, 0.4)}, []string{"remove o"}},
		{"becomes unsure, others are sure", []kg.Patch{addWith(q, a, 0.6), add(q, b)}, sure, []kg.Patch{addWith(q, a, 0.4)}, []string{"remove o remains"}},
		{"withdrawn, others are unsure", []kg.Patch{addWith(q, a, 0.6), addWith(q, b, 0.4)}, sure, []kg.Patch{remove(q, a)}, []string{"remove o"}},
		{"an unsure one withdrawn", []kg.Patch{addWith(q, a, 0.6), addWith(q, b, 0.4)}, sure, []kg.Patch{remove(q, b)}, nil},
		{"replace of what was unsure", []kg.Patch{addWith(other, a, 0.4)}, sure, []kg.Patch{replace(q, a)}, []string{"add o"}},
		{
			"replace by what is unsure", []kg.Patch{add(other, a)}, sure,
			[]kg.Patch{{Op: kg.Replace, Quad: q, Source: a, Certainty: 0.1, HasCertainty: true}}, []string{"remove o2"},
		},
		{"of a source not believed", nil, onlyA, []kg.Patch{add(q, b)}, nil},
		{"all removed, of a source believed", []kg.Patch{add(q, b), add(q, a)}, onlyA, []kg.Patch{remove(q, "")}, []string{"remove o"}},
		{"all removed, of sources not believed", []kg.Patch{add(q, b)}, onlyA, []kg.Patch{remove(q, "")}, nil},
		{"of koine's own graph", nil, open, []kg.Patch{add(quadIn(ownGraph, "s", "p", "o"), a)}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBoth(t, f, kg.Options{})
			if row.before != nil {
				b.update(kg.Meta{}, row.before...)
			}
			from := b.Head()
			b.update(kg.Meta{}, row.do...)
			row.filter.View.Principal = tester
			events, err := Watched(within(t), b.Store, row.filter, from, len(b.model.Events(row.filter, from)))
			if err != nil {
				t.Fatal(err)
			}
			if err := Filtered(History{from, events}, b.model, row.filter); err != nil {
				t.Error(err)
			}
			var got []string
			for _, e := range events {
				got = append(got, formatEvent(e))
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func formatEvent(e kg.Event) string {
	name := func(s kg.Statement) string { return s.Object.Value()[len("urn:"):] }
	s := e.Op.String() + " " + name(e.Statement)
	for _, p := range e.Previous {
		s += " [" + name(p) + "]"
	}
	if e.StatementRemains {
		s += " remains"
	}
	return s
}

// testEveryFilter watches a random history from several positions with many filters, and
// checks the events against every promise.
func testEveryFilter(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{RingCommits: 16})
	d := newDice(6)
	var live []*Recorder // the same promises on live events
	for range size(100, 40) {
		live = append(live, Record(t, b.Store, d.filter(), b.Head()))
	}
	for range 60 {
		b.update(kg.Meta{}, d.patches()...)
	}
	for _, rec := range live {
		h, err := rec.Wait(within(t), len(b.model.Events(rec.filter, rec.from)))
		if err != nil {
			t.Fatalf("watching %+v live: %v", rec.filter, err)
		}
		if err := errors.Join(Ordered(h), Unique(h), Filtered(h, b.model, rec.filter)); err != nil {
			t.Errorf("watching %+v live: %v", rec.filter, err)
		}
		rec.Stop()
	}
	starts := []kg.Position{b.Oldest(), {Epoch: b.Head().Epoch, Revision: 20, Index: 0}, {Epoch: b.Head().Epoch, Revision: 50, Index: kg.EndOfCommit}}
	for i := range size(60, 15) {
		filter := d.filter()
		if i == 0 {
			filter = matchAll()
		}
		for _, from := range starts {
			resume := func(from kg.Position, n int) ([]kg.Event, error) { return Watched(within(t), b.Store, filter, from, n) }
			events, err := resume(from, len(b.model.Events(filter, from)))
			if err != nil {
				t.Fatalf("watching %+v from %s: %v", filter, positionText(from), err)
			}
			h := History{from, events}
			checks := []error{Ordered(h), Unique(h), Filtered(h, b.model, filter), Resumable(h, 4, resume)}
			if i == 0 {
				checks = append(checks, Gapless(h, b.model.Commits), Atomic(h, b.model.Commits), Resumable(h, 500, resume))
			}
			for _, err := range checks {
				if err != nil {
					t.Errorf("watching %+v from %s: %v", filter, positionText(from), err)
				}
			}
		}
	}
}

// testSnapshotThenFollow proves that a snapshot and the events behind its position result
// in the state of a later snapshot.
func testSnapshotThenFollow(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	d := newDice(7)
	for range 30 {
		b.update(kg.Meta{}, d.patches()...)
	}
	snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true})
	state := map[string]bool{} // an assertion of a quad
	set := func(s kg.Statement, there bool) {
		for _, a := range s.Assertions {
			state[quadText(s.Quad)+" "+string(a.Source)] = there
		}
	}
	found, err := collect(snap.Match(kg.Pattern{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found {
		set(s, true)
	}
	for range 30 {
		b.update(kg.Meta{}, d.patches()...)
	}
	events, err := Watched(within(t), b.Store, matchAll(), snap.Position(), len(b.model.Events(matchAll(), snap.Position())))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		for _, s := range e.Previous {
			set(s, false)
		}
		if e.Op == kg.Remove && !e.StatementRemains { // removes all remaining assertions
			for key := range state {
				if len(key) > len(quadText(e.Statement.Quad)) && key[:len(quadText(e.Statement.Quad))+1] == quadText(e.Statement.Quad)+" " {
					state[key] = false
				}
			}
		}
		set(e.Statement, e.Op != kg.Remove)
	}
	want := map[string]bool{}
	for _, s := range b.model.Match(kg.View{Principal: tester, AllGraphs: true}, kg.Pattern{}) {
		for _, a := range s.Assertions {
			want[quadText(s.Quad)+" "+string(a.Source)] = true
		}
	}
	for key, there := range state {
		if there != want[key] {
			t.Errorf("%s: following says %v, the store %v", key, there, want[key])
		}
	}
	if len(state) < len(want) {
		t.Errorf("following leads to %d assertions, the store has %d", len(state), len(want))
	}
}
