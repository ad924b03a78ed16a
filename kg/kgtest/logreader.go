package kgtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// revision returns a random existing revision.
func (d dice) revision(m *Model) kg.Revision { return kg.Revision(1 + d.IntN(int(m.Head()))) }

// position returns a position before the first commit, behind one, or within one.
func (d dice) position(m *Model) kg.Position {
	p := kg.Position{Epoch: m.epoch, Revision: kg.Revision(d.IntN(int(m.Head()) + 1)), Index: kg.EndOfCommit}
	if p.Revision > 0 && d.chance(50) {
		p.Index = uint32(d.IntN(4))
	}
	return p
}

func (d dice) logRange(m *Model) kg.LogRange {
	r := kg.LogRange{After: d.position(m), Until: d.position(m), Backward: d.chance(50)}
	if d.chance(80) && r.Until.Compare(r.After) < 0 {
		r.After, r.Until = r.Until, r.After
	}
	if d.chance(50) {
		r.Commits = 1 + d.IntN(5)
	}
	return r
}

// sameLog reads a part of the log in pages of size events, and compares them with the model.
func sameLog(t testing.TB, m *Model, s *Store, f kg.Filter, part kg.LogRange, size int) {
	t.Helper()
	want := []kg.Event{}
	for _, e := range m.Events(f, part.After) {
		if e.Start().Compare(part.Until) < 0 && !(e.Position.Compare(part.Until) > 0 && part.Until.Index != kg.EndOfCommit && !isLastEvent(e, part.Until)) {
			want = append(want, e)
		}
	}
	if part.Backward {
		slices.Reverse(want)
	}
	got := []kg.Event{}
	rest := part
	for pages := 0; ; pages++ {
		page, reached, done, err := readLog(within(t), s, f, rest, size)
		if err != nil {
			t.Fatalf("reading the log %+v: %v", rest, err)
		}
		if got = append(got, page...); done {
			break
		}
		from := &rest.After
		if part.Backward {
			from = &rest.Until
		}
		if *from == reached || pages > len(m.Commits)+len(want) {
			t.Fatalf("reading the log %+v does not get beyond %s", part, positionText(reached))
		}
		*from = reached
	}
	if diff := cmp.Diff(eventLines(want), eventLines(got)); diff != "" {
		t.Fatalf("the log %s to %s, backward %v, under %+v (-want +got):\n%s", positionText(part.After), positionText(part.Until), part.Backward, f, diff)
	}
}

// isLastEvent reports whether the position is behind the event's change.
func isLastEvent(e kg.Event, p kg.Position) bool {
	return e.Position.Index == kg.EndOfCommit && e.Position.Revision == p.Revision && int(p.Index) >= len(e.Commit.Changes)-1
}

func readLog(ctx context.Context, s *Store, f kg.Filter, part kg.LogRange, size int) (events []kg.Event, reached kg.Position, done bool, err error) {
	l, err := s.ReadLog(ctx, f, part)
	if err != nil {
		return nil, kg.Position{}, false, err
	}
	for e, err := range l.Events() {
		if err != nil {
			return events, l.Reached(), false, err
		}
		if len(events) == size {
			break // stays unread
		}
		events = append(events, e)
	}
	return events, l.Reached(), l.Done(), nil
}

// testLog proves that reading the log returns the events of a watcher, in both
// directions, in pages of any size, and stops at the requested end.
func testLog(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{RingCommits: 8})
	d := newDice(10)
	for range 50 {
		b.update(kg.Meta{}, d.patches()...)
	}
	head := b.Head()
	all := kg.LogRange{After: b.Oldest(), Until: head}
	t.Run("any part", func(t *testing.T) {
		for i := range 150 {
			filter := d.filter()
			if i%5 == 0 {
				filter = matchAll()
			}
			sameLog(t, b.model, b.Store, filter, d.logRange(b.model), 1+d.IntN(7))
		}
	})
	t.Run("everything, backward, event by event", func(t *testing.T) {
		part := all
		part.Backward = true
		sameLog(t, b.model, b.Store, matchAll(), part, 1)
	})
	t.Run("stops after so many commits", func(t *testing.T) {
		none := kg.Filter{Patterns: []kg.Pattern{{Subject: kg.IRI("urn:nobody")}}, View: kg.View{Principal: tester}}
		for _, backward := range []bool{false, true} {
			part := all
			const looked = 20
			part.Backward, part.Commits = backward, looked
			want := kg.Position{Epoch: head.Epoch, Revision: looked, Index: kg.EndOfCommit}
			if backward {
				want.Revision = head.Revision - looked
			}
			events, reached, done, err := readLog(within(t), b.Store, none, part, 10)
			if len(events) != 0 || reached != want || done || err != nil {
				t.Errorf("backward %v: got %d events, %s, done %v, %v, want none and %s", backward, len(events), positionText(reached), done, err, positionText(want))
			}
			part.Commits = len(b.model.Commits)
			if _, _, done, err := readLog(within(t), b.Store, none, part, 10); !done || err != nil {
				t.Errorf("backward %v: got done %v, %v after all commits", backward, done, err)
			}
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, _, _, err := readLog(ctx, b.Store, matchAll(), all, 10); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was cancelled", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		foreign, ahead := head, head
		foreign.Epoch[0]++
		ahead.Revision++
		for name, row := range map[string]struct {
			filter kg.Filter
			part   kg.LogRange
			code   kg.Code
		}{
			"of another log":           {part: kg.LogRange{After: foreign, Until: head}, code: kg.CodePositionGone},
			"until a place in another": {part: kg.LogRange{After: all.After, Until: foreign}, code: kg.CodePositionGone},
			"ahead of the log":         {part: kg.LogRange{After: all.After, Until: ahead}, code: kg.CodePositionGone},
			"an age":                   {filter: kg.Filter{View: kg.View{MaxAge: 1}}, part: all, code: kg.CodeInvalid},
			"too many patterns":        {filter: kg.Filter{Patterns: make([]kg.Pattern, kg.MaxPatterns+1)}, part: all, code: kg.CodeLimitExceeded},
		} {
			if _, err := b.ReadLog(within(t), row.filter, row.part); kg.CodeOf(err) != row.code {
				t.Errorf("%s: got %v, want %s", name, err, row.code)
			}
		}
	})
	t.Run("a log that was cut", func(t *testing.T) {
		if err := b.Maintenance().CutLog(within(t), 30); err != nil {
			t.Fatal(err)
		}
		oldest := b.Oldest()
		if oldest.Revision == 0 {
			t.Fatal("the log was not cut")
		}
		_, err := b.ReadLog(within(t), matchAll(), all)
		if kg.CodeOf(err) != kg.CodePositionGone || kg.AsError(err).Oldest == nil || *kg.AsError(err).Oldest != oldest {
			t.Errorf("got %v, want %s with the oldest position %s", err, kg.CodePositionGone, positionText(oldest))
		}
		sameLog(t, b.model, b.Store, matchAll(), kg.LogRange{After: oldest, Until: head, Backward: true}, 3)
	})
}
