package kg

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
)

// wholeGraph is the graph that tests replace.
var wholeGraph = IRI("urn:g:whole")

// wholeQuads are statements i … n-1 of the graph.
func wholeQuads(from, n int) iter.Seq2[Quad, error] {
	return func(yield func(Quad, error) bool) {
		for i := from; i < n; i++ {
			if !yield(wholeQuad(i), nil) {
				return
			}
		}
	}
}

func wholeQuad(i int) Quad {
	return Quad{IRI(fmt.Sprint("urn:s:", i/4)), IRI(fmt.Sprint("urn:p:", i%4)), String(fmt.Sprint("value ", i)), wholeGraph}
}

func openStore(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	o.ReserveBytes = 1
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func replaceWith(t *testing.T, s *Store, m Meta, quads iter.Seq2[Quad, error]) ReplaceReport {
	t.Helper()
	r, err := s.ReplaceGraph(t.Context(), m, wholeGraph, quads, ReplaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holdsAt lists the objects of the graph at a revision, by a scan of the graph, of its
// predicates, and of everything.
func holdsAt(t *testing.T, s *Store, at Revision) []string {
	t.Helper()
	v, err := s.View(t.Context(), View{At: at, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	read := func(p Pattern) (out []string) {
		for st, err := range v.Match(p) {
			if err != nil {
				t.Fatal(err)
			}
			if st.Graph == wholeGraph {
				out = append(out, st.Object.Value())
			}
		}
		slices.Sort(out)
		return out
	}
	byGraph := read(Pattern{Graph: wholeGraph})
	if all := read(Pattern{}); !slices.Equal(all, byGraph) {
		t.Fatalf("at %d a scan of everything has %d statements of the graph, one of the graph %d", at, len(all), len(byGraph))
	}
	var byPredicate []string
	for i := range 4 {
		byPredicate = append(byPredicate, read(Pattern{Predicate: IRI(fmt.Sprint("urn:p:", i))})...)
	}
	slices.Sort(byPredicate)
	if !slices.Equal(byPredicate, byGraph) {
		t.Fatalf("at %d a scan of the predicates has %d statements of the graph, one of the graph %d", at, len(byPredicate), len(byGraph))
	}
	if n, err := v.Count(Pattern{Graph: wholeGraph}); err != nil || n != uint64(len(byGraph)) {
		t.Fatalf("at %d %d statements are counted, there are %d: %v", at, n, len(byGraph), err)
	}
	return byGraph
}

func wholeObjects(from, n int) (out []string) {
	for i := from; i < n; i++ {
		out = append(out, wholeQuad(i).Object.Value())
	}
	slices.Sort(out)
	return out
}

func mustBeClean(t *testing.T, s *Store) {
	t.Helper()
	report, err := s.Check(t.Context(), CheckOptions{Checkpoints: true})
	if err != nil || !report.Clean() {
		t.Fatalf("check: %v, %v", report, err)
	}
}

func TestWholeGraphIsReplaced(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	other := numbered(1)
	commitOf(t, s, other)
	const n = MaxPatches + 2_000
	first := replaceWith(t, s, m, wholeQuads(0, n))
	if first.Added != n || first.Removed != 0 || !first.Created || !first.Whole || first.Commits != 1 {
		t.Fatalf("the first replacement says %+v", first)
	}
	second := replaceWith(t, s, m, wholeQuads(1_000, n+500))
	if second.Added != 500 || second.Removed != 1_000 || second.Created || !second.Whole {
		t.Fatalf("the second replacement says %+v", second)
	}
	empty := replaceWith(t, s, m, func(func(Quad, error) bool) {})
	if empty.Removed != n-500 || empty.Added != 0 {
		t.Fatalf("emptying says %+v", empty)
	}
	small := replaceWith(t, s, m, wholeQuads(0, 10))
	if small.Whole || small.Added != 10 || !small.Created {
		t.Fatalf("a small replacement says %+v", small)
	}
	check := func(s *Store) {
		t.Helper()
		for _, at := range []struct {
			revision Revision
			want     []string
		}{
			{first.Revision - 1, nil},
			{first.Revision, wholeObjects(0, n)},
			{second.Revision - 1, wholeObjects(0, n)},
			{second.Revision, wholeObjects(1_000, n+500)},
			{empty.Revision - 1, wholeObjects(1_000, n+500)},
			{empty.Revision, nil},
			{small.Revision, wholeObjects(0, 10)},
			{0, wholeObjects(0, 10)},
		} {
			if got := holdsAt(t, s, at.revision); !slices.Equal(got, at.want) {
				t.Errorf("at %d the graph has %d statements, want %d", at.revision, len(got), len(at.want))
			}
		}
		if n, err := s.Backed("agent://loader"); err != nil || n != 10 {
			t.Errorf("the loader backs %d statements: %v", n, err)
		}
		mustBeClean(t, s)
	}
	check(s)
	if _, err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{}, {Rebuild: true}} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, dir, o)
		check(s)
	}
}

func TestVersionsPassOverReplacements(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	const n = MaxPatches + 100
	first := replaceWith(t, s, m, wholeQuads(0, n))
	replaceWith(t, s, m, wholeQuads(1, n)) // 0 goes
	third := replaceWith(t, s, m, wholeQuads(0, n))
	versions := func(i int) (out []string) {
		v, err := s.View(t.Context(), View{AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		ids, _, err := v.patternIDs(Pattern(wholeQuad(i)))
		if err != nil {
			t.Fatal(err)
		}
		unbound := ids
		unbound.Graph = ID{}
		for _, p := range []IDPattern{ids, unbound} {
			var list []string
			for v, err := range v.Versions(p, nil) {
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, fmt.Sprint(v.From, "-", v.To, " ", v.shown[0].Revision))
			}
			if out != nil && !slices.Equal(out, list) {
				t.Fatalf("with the graph %v, without %v", out, list)
			}
			out = list
		}
		return out
	}
	f, th := first.Revision, third.Revision
	if got, want := versions(7), []string{fmt.Sprint(f, "-0 ", f)}; !slices.Equal(got, want) {
		t.Errorf("what stayed has the versions %v, want %v", got, want)
	}
	var gone Revision
	for r := f + 1; r < th; r++ {
		if c, err := s.readCommit(r); err == nil && c.Replaced != nil {
			gone = r
		}
	}
	if got, want := versions(0), []string{fmt.Sprint(f, "-", gone, " ", f), fmt.Sprint(th, "-0 ", th)}; !slices.Equal(got, want) {
		t.Errorf("what went and came has the versions %v, want %v", got, want)
	}
	v, err := s.View(t.Context(), View{AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	diff := map[string]string{}
	for d, err := range v.Diff(gone, IDPattern{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		q, _ := v.Quad(Row{IDQuad: d.IDQuad})
		diff[q.Object.Value()] = fmt.Sprint(d.Before.From, d.After.From)
	}
	if want := map[string]string{"value 0": fmt.Sprint(0, th)}; !maps.Equal(diff, want) {
		t.Errorf("the difference is %v, want %v", diff, want)
	}
}

func TestStatementsThatStayKeepTheirSources(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	const n = MaxPatches + 1
	alice, bob := Meta{Principal: SystemPrincipal(), Actor: "agent://alice"}, Meta{Principal: SystemPrincipal(), Actor: "agent://bob"}
	first := replaceWith(t, s, alice, wholeQuads(0, n))
	second := replaceWith(t, s, bob, wholeQuads(0, n))
	if second.Added != n || second.Removed != 0 {
		t.Fatalf("another source's replacement says %+v", second)
	}
	v, err := s.View(t.Context(), View{AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for st, err := range v.Match(Pattern(wholeQuad(3))) {
		if err != nil {
			t.Fatal(err)
		}
		if len(st.Assertions) != 2 || st.Assertions[0].Revision != first.Revision || st.Assertions[1].Revision != second.Revision || st.Assertions[1].Time.Year() < 2000 {
			t.Errorf("it is backed by %+v", st.Assertions)
		}
	}
	for _, agent := range []AgentID{"agent://alice", "agent://bob"} {
		if backed, err := s.Backed(agent); err != nil || backed != n {
			t.Errorf("%s backs %d statements: %v", agent, backed, err)
		}
	}
	// A later update of one of them keeps what stood as its past.
	if _, err := s.Update(t.Context(), bob, func(tx *Tx) error { return tx.Apply(Patch{Op: Remove, Quad: wholeQuad(3)}) }); err != nil {
		t.Fatal(err)
	}
	if got := holdsAt(t, s, second.Revision); len(got) != n {
		t.Errorf("before the removal there were %d statements", len(got))
	}
	mustBeClean(t, s)
}

// errSource is the error of a source of quads that ends.
var errSource = errors.New("the source failed")

func TestReplacementThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	const n = MaxPatches + 500
	replaceWith(t, s, m, wholeQuads(0, n))
	_, err := s.ReplaceGraph(t.Context(), m, wholeGraph, func(yield func(Quad, error) bool) {
		for q := range wholeQuads(n, 3*n) {
			if !yield(q, nil) {
				return
			}
		}
		yield(Quad{}, errSource)
	}, ReplaceOptions{})
	if !errors.Is(err, errSource) {
		t.Fatalf("got %v", err)
	}
	if got := holdsAt(t, s, 0); !slices.Equal(got, wholeObjects(0, n)) {
		t.Errorf("there are %d statements", len(got))
	}
	if _, err := s.Update(t.Context(), m, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: wholeQuad(n)}) }); err != nil {
		t.Errorf("the graph takes no changes any more: %v", err)
	}
	mustBeClean(t, s)
}

func TestGraphUnderReplacementTakesNoChanges(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	tried := false
	_, err := s.ReplaceGraph(t.Context(), m, wholeGraph, func(yield func(Quad, error) bool) {
		for q := range wholeQuads(0, 2*MaxPatches) {
			if !yield(q, nil) {
				return
			}
		}
		tried = true
		_, err := s.Update(context.Background(), m, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: wholeQuad(0)}) })
		if CodeOf(err) != CodeOverloaded || !strings.Contains(err.Error(), wholeGraph.Value()) {
			t.Errorf("an update meanwhile gets %v", err)
		}
		_, err = s.ReplaceGraph(context.Background(), m, wholeGraph, wholeQuads(0, 2*MaxPatches), ReplaceOptions{})
		if CodeOf(err) != CodeOverloaded {
			t.Errorf("a replacement meanwhile gets %v", err)
		}
		if got := holdsAt(t, s, 0); len(got) != 0 {
			t.Errorf("half of it is seen: %d", len(got))
		}
	}, ReplaceOptions{})
	if err != nil || !tried {
		t.Fatal(err, tried)
	}
}
