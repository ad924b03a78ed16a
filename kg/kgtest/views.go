package kgtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// testViews compares views with the model, and tests basic cases explicitly.
func testViews(t *testing.T, f Factory) {
	clock := NewClock()
	b := newBoth(t, f, kg.Options{Clock: clock.Now})
	const a1, a2 = kg.AgentID("agent://a"), kg.AgentID("agent://b")
	b.update(kg.Meta{}, addWith(quad("s", "p", "low"), a1, 0.2), addWith(quad("s", "p", "high"), a1, 0.9), add(quad("s", "p", "fact"), a1))
	clock.Move(seconds(10))
	b.update(kg.Meta{}, addWith(quad("s", "p", "low"), a2, 0.8), add(quadIn(kg.IRI("urn:g"), "s", "p", "other"), a2))
	b.update(kg.Meta{}, add(quadIn(ownGraph, "s", "p", "own"), a1))
	for _, row := range []struct {
		name string
		view kg.View
		want []string
	}{
		{"all", kg.View{}, []string{"low", "high", "fact", "other"}},
		{"all graphs", kg.View{AllGraphs: true}, []string{"low", "high", "fact", "other", "own"}},
		{"one graph", kg.View{Graphs: []kg.Term{kg.IRI("urn:g")}}, []string{"other"}},
		{"the default graph", kg.View{Graphs: []kg.Term{kg.DefaultGraph}}, []string{"low", "high", "fact"}},
		{"an own graph that is named", kg.View{Graphs: []kg.Term{ownGraph}}, []string{"own"}},
		{"a graph that is not there", kg.View{Graphs: []kg.Term{kg.IRI("urn:nowhere")}}, nil},
		{"no graph at all", kg.View{Graphs: []kg.Term{}}, nil},
		{"quite certain: the greatest certainty counts, and none is 1", kg.View{MinCertainty: 0.8}, []string{"low", "high", "fact", "other"}},
		{"very certain", kg.View{MinCertainty: 0.9}, []string{"high", "fact", "other"}},
		{"entirely certain", kg.View{MinCertainty: 1}, []string{"fact", "other"}},
		{"recorded from", kg.View{Recorded: kg.TimeSpan{From: noon.Add(seconds(10))}}, []string{"low", "other"}},
		{"recorded from, a little late", kg.View{Recorded: kg.TimeSpan{From: noon.Add(seconds(10) + time.Millisecond)}}, nil},
		{"recorded until", kg.View{Recorded: kg.TimeSpan{Until: noon.Add(seconds(10))}}, []string{"low", "high", "fact"}},
		{"recorded until, a little late", kg.View{Recorded: kg.TimeSpan{Until: noon.Add(seconds(10) + time.Millisecond)}}, []string{"low", "high", "fact", "other"}},
		{"recorded in no time", kg.View{Recorded: kg.TimeSpan{From: noon, Until: noon}}, nil},
		{"recorded then, by one source, quite certain", kg.View{Recorded: kg.TimeSpan{From: noon, Until: noon.Add(seconds(1))}, Believed: []kg.AgentID{a1}, MinCertainty: 0.5}, []string{"high", "fact"}},
		{"one source", kg.View{Believed: []kg.AgentID{a2}}, []string{"low", "other"}},
		{"two sources", kg.View{Believed: []kg.AgentID{a2, a1}}, []string{"low", "high", "fact", "other"}},
		{"nobody", kg.View{Believed: []kg.AgentID{}}, nil},
		{"somebody unknown", kg.View{Believed: []kg.AgentID{"agent://unknown"}}, nil},
		{"one source, quite certain", kg.View{Believed: []kg.AgentID{a1}, MinCertainty: 0.5}, []string{"high", "fact"}},
		{"recent: the newest time counts", kg.View{MaxAge: seconds(9)}, []string{"low", "other"}},
		{"recent, just so", kg.View{MaxAge: seconds(10)}, []string{"low", "high", "fact", "other"}},
		{"recent then", kg.View{MaxAge: seconds(9), Now: clock.Now().Add(seconds(9))}, []string{"low", "other"}},
		{"no longer recent then", kg.View{MaxAge: seconds(9), Now: clock.Now().Add(seconds(9) + time.Millisecond)}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			compareObjects(t, b, row.view, row.want)
		})
	}
	t.Run("the start", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{AtStart: true})
		defer snap.Close()
		if list, err := collect(snap.Match(kg.Pattern{})); err != nil || len(list) != 0 || snap.Revision() != 0 {
			t.Errorf("got %v at revision %d, %v, want nothing at 0", list, snap.Revision(), err)
		}
		if n, err := snap.Count(kg.Pattern{}); err != nil || n != 0 {
			t.Errorf("Count: got %d, %v, want 0", n, err)
		}
		if _, err := b.Store.View(t.Context(), kg.View{AtStart: true, At: 1}); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("the start of revision 1: got %v, want %v", err, kg.CodeInvalid)
		}
	})
	t.Run("what a snapshot says of itself", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{Principal: tester})
		defer snap.Close()
		if v := snap.View(); v.At != 3 || !v.Now.Equal(clock.Now()) {
			t.Errorf("View: got revision %d at %v, want 3 at %v", v.At, v.Now, clock.Now())
		}
		if got := snap.Position(); got != b.Head() {
			t.Errorf("Position: got %v, want the head %v", got, b.Head())
		}
		if _, err := collect(snap.Match(kg.Pattern{Subject: kg.IRI("urn:s"), Graph: kg.DefaultGraph})); err != nil {
			t.Fatal(err)
		}
		if got := snap.StatementsRead(); got != 3 {
			t.Errorf("StatementsRead: got %d, want 3", got)
		}
		if got := len(snap.Sources()); got != 2 {
			t.Errorf("Sources: got %d, want 2", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for name, row := range map[string]struct {
			view kg.View
			code kg.Code
		}{
			"a revision to come":       {kg.View{At: 4}, kg.CodeRevisionAhead},
			"a certainty above 1":      {kg.View{MinCertainty: 1.5}, kg.CodeInvalid},
			"a certainty below 0":      {kg.View{MinCertainty: -0.5}, kg.CodeInvalid},
			"a certainty of no number": {kg.View{MinCertainty: math.NaN()}, kg.CodeInvalid},
			"too many are believed":    {kg.View{Believed: make([]kg.AgentID, kg.MaxBelieved+1)}, kg.CodeLimitExceeded},
			"as many as may be":        {kg.View{Believed: make([]kg.AgentID, kg.MaxBelieved)}, ""},
			"a negative age":           {kg.View{MaxAge: -1}, kg.CodeInvalid},
			"a span that ends before":  {kg.View{Recorded: kg.TimeSpan{From: noon, Until: noon.Add(-1)}}, kg.CodeInvalid},
		} {
			snap, err := b.View(within(t), row.view)
			if code := kg.CodeOf(err); code != row.code {
				t.Errorf("%s: got %q (%v), want %q", name, code, err, row.code)
			}
			if err == nil {
				snap.Close()
			}
		}
	})
	t.Run("waiting for a revision", func(t *testing.T) { testWaitFor(t, b) })
}

func testWaitFor(t *testing.T, b *both) {
	if err := b.WaitFor(within(t), b.model.Head()); err != nil {
		t.Errorf("WaitFor the newest revision: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.WaitFor(ctx, b.model.Head()+1); err == nil {
		t.Error("WaitFor a revision to come does not wait")
	}
	next := b.model.Head() + 1
	waited := make(chan error, 1)
	ctx = within(t)
	go func() { waited <- b.WaitFor(ctx, next) }()
	b.update(kg.Meta{}, add(quad("s", "p", "next"), ""))
	if err := <-waited; err != nil {
		t.Errorf("WaitFor the next revision: %v", err)
	}
}

// testPast proves that a committed revision never changes.
func testPast(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	d := newDice(4)
	for range size(80, 40) {
		b.update(kg.Meta{}, d.patches()...)
	}
	compare := func(t *testing.T) {
		for r := kg.Revision(1); r <= b.model.Head(); r++ {
			snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true, At: r})
			sameStatements(t, b.model, snap, kg.Pattern{})
			for range 4 {
				sameStatements(t, b.model, snap, d.pattern())
			}
			sameCounts(t, b.model, snap)
			snap.Close()
		}
	}
	t.Run("as of every revision", compare)
	b.Reopen()
	t.Run("after opening again", compare)
	t.Run("one property that changes all the time", func(t *testing.T) {
		first := b.model.Head()
		for i := range 50 {
			p := replace(quad("s", "p", "o"), "")
			p.Quad.Object = kg.Integer(int64(i % 7))
			b.update(kg.Meta{}, p)
		}
		for r := first + 1; r <= b.model.Head(); r++ {
			snap := open(t, b.Store, kg.View{Principal: tester, At: r})
			sameStatements(t, b.model, snap, kg.Pattern{Subject: kg.IRI("urn:s")})
			snap.Close()
		}
	})
	t.Run("a snapshot stays as it is", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true})
		defer snap.Close()
		for range 20 {
			b.update(kg.Meta{}, d.patches()...)
			sameStatements(t, b.model, snap, kg.Pattern{})
		}
		sameCounts(t, b.model, snap)
	})
	t.Run("a snapshot outlives what is written over it", func(t *testing.T) { testSnapshotOutlives(t, f) })
	t.Run("a scan inside a scan, and many at once", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true})
		want := statementLines(b.model.Match(snap.View(), kg.Pattern{}))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				var got []kg.Statement
				for outer, err := range snap.Match(kg.Pattern{}) {
					if err != nil {
						t.Errorf("Match: %v", err)
						return
					}
					for inner, err := range snap.Match(kg.Pattern{Subject: outer.Subject, Predicate: outer.Predicate, Object: outer.Object, Graph: outer.Graph}) {
						if err != nil {
							t.Errorf("Match: %v", err)
						}
						got = append(got, inner)
					}
				}
				if diff := cmp.Diff(want, statementLines(got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
		wg.Wait()
	})
}

// testSnapshotOutlives overwrites statements with more data than the index keeps in
// memory while a snapshot reads the previous ones.
func testSnapshotOutlives(t *testing.T, f Factory) {
	long(t)
	store := f(t, kg.Options{MemTableBytes: kg.MinMemTableBytes})
	const rounds = 20 // of several megabytes each, so that the index is compacted
	text := "\"" + strings.Repeat("a large text ", 600)
	write := func(round int) {
		patches := make([]kg.Patch, 400)
		for i := range patches {
			patches[i] = replace(quad(fmt.Sprint("s", i), "p", fmt.Sprint(text, i, " ", round)), "")
		}
		if _, err := store.Update(within(t), kg.Meta{Principal: tester}, applyPatches(patches)); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	used, unused := open(t, store, kg.View{Principal: tester}), open(t, store, kg.View{Principal: tester})
	read := func(snap *kg.Snapshot) []string {
		found, err := collect(snap.Match(kg.Pattern{}))
		if err != nil {
			t.Fatal(err)
		}
		return statementLines(found)
	}
	want := read(used)
	for round := range rounds {
		write(1 + round)
	}
	for name, snap := range map[string]*kg.Snapshot{
		"one that was read before": used, "one that was not": unused,
		"one as of then": open(t, store, kg.View{Principal: tester, At: 1}),
	} {
		if got := read(snap); !slices.Equal(want, got) {
			t.Errorf("%s shows %d statements, not the %d of then", name, len(got), len(want))
		}
		snap.Close()
	}
}

// testCatalogue proves that counts are those of the statements in a view, through changes
// of every kind.
func testCatalogue(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	d := newDice(5)
	for range 10 {
		for range 5 {
			b.update(kg.Meta{}, d.patches()...)
		}
		for range 3 {
			snap := open(t, b.Store, d.view())
			sameCounts(t, b.model, snap)
			snap.Close()
		}
	}
	b.Reopen()
	for _, v := range []kg.View{{Principal: tester}, {Principal: tester, AllGraphs: true}} {
		snap := open(t, b.Store, v)
		sameCounts(t, b.model, snap)
		snap.Close()
	}
	t.Run("all gone", func(t *testing.T) {
		for _, s := range b.model.Match(kg.View{AllGraphs: true}, kg.Pattern{}) {
			b.update(kg.Meta{}, remove(s.Quad, ""))
		}
		snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true})
		defer snap.Close()
		sameCounts(t, b.model, snap)
		if graphs, err := snap.Graphs(); len(graphs) != 0 || err != nil {
			t.Errorf("Graphs of an empty store: got %v, %v", graphs, err)
		}
	})
}

// compareObjects proves that the view shows, and counts, the statements of the model, and
// that these are the statements with the wanted objects ("o" for urn:o).
func compareObjects(t *testing.T, b *both, view kg.View, want []string) {
	t.Helper()
	view.Principal = tester
	snap := open(t, b.Store, view)
	defer snap.Close()
	sameStatements(t, b.model, snap, kg.Pattern{})
	sameCounts(t, b.model, snap)
	shown := map[kg.Term]bool{}
	for _, s := range b.model.Match(snap.View(), kg.Pattern{}) {
		shown[s.Object] = true
	}
	for _, o := range want {
		if !shown[kg.IRI("urn:"+o)] {
			t.Errorf("%s is not shown", o)
		}
	}
	if len(shown) != len(want) {
		t.Errorf("got %d statements, want %v", len(shown), want)
	}
}
