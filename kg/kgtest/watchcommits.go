package kgtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// testWatchCommits proves that watching by commit delivers the events of watching by
// change, and that a filter can be changed without a gap.
func testWatchCommits(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{RingCommits: 8})
	d := newDice(11)
	for range 40 {
		b.update(kg.Meta{}, d.patches()...)
	}
	for range 60 {
		commitsOf(t, b, d, d.position(b.model))
	}
	if n := b.Stats().Watchers; n != 0 {
		t.Errorf("%d watchers are left", n)
	}
	t.Run("what came before the filter", func(t *testing.T) { testBeforeFilter(t, f) })
	t.Run("refused", func(t *testing.T) {
		w, err := b.Watch(within(t), matchAll(), b.Oldest())
		if err != nil {
			t.Fatal(err)
		}
		for range w.Commits() {
			if err := w.Refilter(kg.Filter{View: kg.View{At: 1}}); kg.CodeOf(err) != kg.CodeInvalid {
				t.Errorf("a revision: got %v, want %s", err, kg.CodeInvalid)
			}
			break
		}
		w.Close()
		if err := w.Refilter(matchAll()); kg.CodeOf(err) != kg.CodeClosed {
			t.Errorf("closed: got %v, want %s", err, kg.CodeClosed)
		}
	})
}

// testBeforeFilter proves that events which match a new filter, but came before it, are delivered.
func testBeforeFilter(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	of := func(subject string) kg.Filter {
		return kg.Filter{Patterns: []kg.Pattern{{Subject: kg.IRI("urn:" + subject)}}, View: kg.View{Principal: tester}}
	}
	b.update(kg.Meta{}, add(quad("a", "p", "o"), ""))
	matched := Record(t, b.Store, of("b"), b.Head())
	w, err := b.Watch(within(t), of("a"), b.Oldest())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	want := []kg.Revision{1, 2, 3}
	for got, err := range w.Commits() {
		if err != nil {
			t.Fatal(err)
		}
		if r := got[0].Position.Revision; r != want[0] {
			t.Fatalf("got commit %d, want %d", r, want[0])
		}
		if want = want[1:]; len(want) == 0 {
			return
		}
		b.update(kg.Meta{}, add(quad("b", "p", positionText(b.Head())), ""))
		if _, err := matched.Wait(within(t), 3-len(want)); err != nil { // it is past for the watcher of "a"
			t.Fatal(err)
		}
		if err := w.Refilter(of("b")); err != nil {
			t.Fatal(err)
		}
	}
}

// commitsOf watches from the position, sometimes with another filter from the current
// position, during writes, until no more events are expected.
func commitsOf(t *testing.T, b *both, d dice, from kg.Position) {
	t.Helper()
	filter := d.filter()
	w, err := b.Watch(within(t), filter, from)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	want := firstCommit(b.model.Events(filter, from))
	if want == nil {
		return
	}
	for got, err := range w.Commits() {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(eventLines(want), eventLines(got)); diff != "" {
			t.Fatalf("watching %+v from %s (-want +got):\n%s", filter, positionText(from), diff)
		}
		if p := w.Position(); p.Compare(from) < 0 || p.Compare(want[0].Position) >= 0 {
			t.Fatalf("while commit %d is told the position is %s", want[0].Position.Revision, positionText(p))
		}
		from = kg.Position{Epoch: from.Epoch, Revision: want[0].Position.Revision, Index: kg.EndOfCommit}
		for d.chance(60) {
			b.update(kg.Meta{}, d.patches()...)
		}
		if d.chance(50) {
			filter = d.filter()
			if err := w.Refilter(filter); err != nil {
				t.Fatal(err)
			}
			if d.chance(20) {
				b.update(kg.Meta{}, d.patches()...)
			}
		}
		if want = firstCommit(b.model.Events(filter, from)); want == nil {
			return
		}
	}
}

// firstCommit returns the events of the commit of the first event.
func firstCommit(events []kg.Event) []kg.Event {
	for i, e := range events {
		if e.Position.Revision != events[0].Position.Revision {
			return events[:i]
		}
	}
	return events
}
