package changefeed_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/internal/changefeed"
	"koine/internal/operation"
	"koine/kg"
	"koine/kg/kgtest"
)

var seed = flag.Uint64("seed", 0, "of the random graphs; 0 makes one up")

func entity(i int) kg.Term { return kg.IRI(fmt.Sprintf("urn:e%d", i)) }

// wander makes commits of a few patches each over few entities, so that links
// come, go, and are replaced, at two certainties.
func wander(t *testing.T, s *kgtest.Store, dice *rand.Rand, commits int) {
	t.Helper()
	for range commits {
		_, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
			for range 1 + dice.IntN(4) {
				q := kg.Quad{Subject: entity(dice.IntN(9)), Predicate: kg.IRI(fmt.Sprintf("urn:p%d", dice.IntN(2))), Object: entity(dice.IntN(9))}
				if dice.IntN(5) == 0 {
					q.Predicate = kg.IRI(kg.RDFType) // links nothing
				}
				if dice.IntN(3) == 0 {
					q.Object = kg.Integer(int64(dice.IntN(3)))
				}
				op := []kg.Op{kg.Add, kg.Remove, kg.Remove, kg.Replace}[dice.IntN(4)]
				p := kg.Patch{Op: op, Quad: q}
				if op != kg.Remove {
					p.Certainty, p.HasCertainty = []float64{0.2, 0.9}[dice.IntN(2)], true
				}
				if err := tx.Apply(p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// around finds the entities within some steps of another, from a list of all
// statements.
func around(t *testing.T, s *kgtest.Store, view kg.View, r kg.Revision, entity kg.Term, steps int) map[kg.Term]bool {
	t.Helper()
	set := map[kg.Term]bool{entity: true}
	if r == 0 {
		return set
	}
	view.At = r
	snapshot, err := s.View(t.Context(), view)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for range steps {
		var reached []kg.Term
		for st, err := range snapshot.Match(kg.Pattern{}) {
			if err != nil {
				t.Fatal(err)
			}
			if st.Object.IsResource() && st.Predicate.Value() != kg.RDFType && (set[st.Subject] || set[st.Object]) {
				reached = append(reached, st.Subject, st.Object)
			}
		}
		for _, e := range reached {
			set[e] = true
		}
	}
	return set
}

// expectedEvents returns the changes of each commit after the position that concern the
// surroundings before or after it.
func expectedEvents(t *testing.T, s *kgtest.Store, at changefeed.Surroundings, from kg.Position) (events []kg.Event) {
	t.Helper()
	for r := max(1, from.Revision); r <= s.Head().Revision; r++ {
		set := around(t, s, at.FromView, r-1, at.Entity, at.Depth-1)
		for e := range around(t, s, at.FromView, r, at.Entity, at.Depth-1) {
			set[e] = true
		}
		part := kg.LogRange{After: kg.Position{Epoch: s.Epoch(), Revision: r - 1, Index: kg.EndOfCommit}, Until: kg.Position{Epoch: s.Epoch(), Revision: r, Index: kg.EndOfCommit}}
		log, err := s.ReadLog(t.Context(), kg.Filter{View: at.FromView, Keep: func(st kg.Statement) bool {
			return set[st.Subject] || at.Depth > 0 && set[st.Object]
		}}, part)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range log.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Start().Compare(from) >= 0 {
				events = append(events, e)
			}
		}
	}
	return events
}

// receive follows the surroundings until n changes were delivered. Each event must be of
// one commit, with the position after it.
func receive(t *testing.T, s *kgtest.Store, at changefeed.Surroundings, from kg.Position, n int) (events []kg.Event, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f, err := changefeed.Start(ctx, s.Store, &at, operation.Resume{Start: operation.After, After: from})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if n == 0 {
		return nil, nil
	}
	for e, err := range f.Events() {
		if err != nil {
			return events, err
		}
		if want := (kg.Position{Epoch: s.Epoch(), Revision: e.Changes[0].Position.Revision, Index: kg.EndOfCommit}); e.Position != want || f.Position().Compare(want) >= 0 {
			return events, fmt.Errorf("an event of commit %d has the position %v, and the stream %v", want.Revision, e.Position, f.Position())
		}
		if len(events) > 0 && events[len(events)-1].Position.Revision >= e.Position.Revision {
			return events, fmt.Errorf("commit %d is told in two parts", e.Position.Revision)
		}
		if events = append(events, e.Changes...); len(events) >= n {
			return events, nil
		}
	}
	return events, errors.New("ended without a reason")
}

func lines(events []kg.Event) (out []string) {
	for _, e := range events {
		out = append(out, fmt.Sprintf("%d.%d %s %v previously %v remains %v", e.Position.Revision, e.Position.Index, e.Op, e.Statement.Quad, e.Previous, e.StatementRemains))
	}
	return out
}

// For every depth, view and start, also within a commit, the events are the changes in
// the surroundings before or after each commit: gapless, in order, once, and equal for
// every reader and resumption, also after a restart.
func TestSurroundingsFollowTheGraph(t *testing.T) {
	seed := *seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("run again with -seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	s := kgtest.Disk(t, kg.Options{RingCommits: 8})
	wander(t, s, dice, 40)
	for range 12 {
		at := changefeed.Surroundings{Entity: entity(dice.IntN(10)), Depth: dice.IntN(changefeed.MaxDepth + 1)}
		if dice.IntN(2) == 0 {
			at.FromView.MinCertainty = 0.5
		}
		from := s.Oldest()
		if dice.IntN(3) > 0 {
			from = kg.Position{Epoch: s.Epoch(), Revision: kg.Revision(1 + dice.IntN(int(s.Head().Revision))), Index: []uint32{0, 1, kg.EndOfCommit}[dice.IntN(3)]}
		}
		want := expectedEvents(t, s, at, from)
		got, err := receive(t, s, at, from, len(want))
		if err != nil {
			t.Fatalf("%+v from %v: %v (-want +got):\n%s", at, from, err, cmp.Diff(lines(want), lines(got)))
		}
		if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
			t.Fatalf("%+v from %v (-want +got):\n%s", at, from, diff)
		}
		if dice.IntN(4) == 0 {
			s.Reopen()
		}
		h := kgtest.History{From: from, Events: got}
		resume := func(from kg.Position, n int) ([]kg.Event, error) { return receive(t, s, at, from, n) }
		if err := errors.Join(kgtest.Ordered(h), kgtest.Unique(h), kgtest.Resumable(h, 10, resume)); err != nil {
			t.Fatalf("%+v from %v: %v", at, from, err)
		}
	}
}

// The entities change while they are watched.
func TestSurroundingsGrowAndShrink(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	link := func(op kg.Op, from, to int) kg.Patch {
		return kg.Patch{Op: op, Quad: kg.Quad{Subject: entity(from), Predicate: kg.IRI("urn:p"), Object: entity(to)}}
	}
	name := func(i int, text string) kg.Patch {
		return kg.Patch{Op: kg.Replace, Quad: kg.Quad{Subject: entity(i), Predicate: kg.IRI("urn:name"), Object: kg.String(text)}}
	}
	f := startOn(t, s, &changefeed.Surroundings{Entity: entity(1), Depth: 2})
	for _, commit := range [][]kg.Patch{
		{name(2, "not yet")},
		{name(2, "with the link"), link(kg.Add, 2, 1)},
		{name(2, "watched")},
		{link(kg.Add, 2, 3)}, // a statement of 2; 3 itself is too far
		{name(3, "too far")},
		{link(kg.Remove, 2, 1), name(2, "its last")},
		{name(2, "no more")},
		{name(1, "itself")},
	} {
		if _, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
			for _, p := range commit {
				if err := tx.Apply(p); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := [][]string{
		{"replace not yet", "add urn:e1"}, {"replace watched"}, {"add urn:e3"}, {"remove urn:e1", "replace its last"}, {"add itself"},
	}
	want[0] = []string{"replace with the link", "add urn:e1"}
	for e, err := range f.Events() {
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range e.Changes {
			got = append(got, c.Op.String()+" "+c.Statement.Object.Value())
		}
		if !slices.Equal(got, want[0]) {
			t.Fatalf("got %q, want %q", got, want[0])
		}
		if want = want[1:]; len(want) == 0 {
			return
		}
	}
}

func startOn(t *testing.T, s *kgtest.Store, subject changefeed.Subject) *changefeed.Following {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	f, err := changefeed.Start(ctx, s.Store, subject, operation.Resume{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// The maximum of entities can be watched; with one more a subscription is refused, and
// an open one ends.
func TestSurroundingsAreBounded(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	link := func(to int) {
		t.Helper()
		if _, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: entity(0), Predicate: kg.IRI("urn:p"), Object: entity(to)}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	for to := range 4 {
		link(to + 1)
	}
	open := startOn(t, s, &changefeed.Surroundings{Entity: entity(0), Depth: 2, Entities: 5})
	read := startOn(t, s, &changefeed.Surroundings{Entity: entity(0), Depth: 2, Reads: 4})
	link(5)
	for name, f := range map[string]*changefeed.Following{"entities": open, "reads": read} {
		for _, err := range f.Events() {
			if kg.CodeOf(err) != kg.CodeLimitExceeded {
				t.Errorf("%s: one more while it is followed: got %v, want %s", name, err, kg.CodeLimitExceeded)
			}
		}
	}
	for _, at := range []changefeed.Surroundings{{Entities: 5}, {Reads: 4}} {
		at.Entity, at.Depth = entity(0), 2
		_, err := changefeed.Start(t.Context(), s.Store, &at, operation.Resume{})
		if kg.CodeOf(err) != kg.CodeLimitExceeded {
			t.Errorf("%+v: got %v, want %s", at, err, kg.CodeLimitExceeded)
		}
	}
	limit := startOn(t, s, &changefeed.Surroundings{Entity: entity(0), Depth: 2, Entities: 6, Reads: 5})
	limit.Close()
}
