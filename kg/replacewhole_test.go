package kg

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg/internal/datadir"
	"koine/kg/internal/keys"
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
	return Quad{Subject: IRI(fmt.Sprint("urn:s:", i/4)), Predicate: IRI(fmt.Sprint("urn:p:", i%4)), Object: String(fmt.Sprint("value ", i)), Graph: wholeGraph}
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

// wholeBeyond is the number of statements beyond which a graph is replaced as a whole in a
// store with tenthWhole: tests of the result then need no more. Other tests show that
// MaxPatches is the bound otherwise, and that verdicts are in parts of that size.
const wholeBeyond = MaxPatches / 10

func tenthWhole() Options { return Options{wholeFrom: wholeBeyond, wholeCommit: wholeCommit / 10} }

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
	report, err := s.Maintenance().Check(t.Context(), CheckOptions{Checkpoints: true})
	if err != nil || !report.Clean() {
		t.Fatalf("check: %v, %v", report, err)
	}
}

func TestWholeGraphIsReplaced(t *testing.T) {
	slowtest.Long(t)
	dir := t.TempDir()
	s := openStore(t, dir, tenthWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	other := numbered(1)
	commitOf(t, s, other)
	const n = wholeBeyond + 200
	first := replaceWith(t, s, m, wholeQuads(0, n))
	if first.Added != n || first.Removed != 0 || !first.Created || !first.Whole || first.Commits != 1 {
		t.Fatalf("the first replacement says %+v", first)
	}
	second := replaceWith(t, s, m, wholeQuads(100, n+50))
	if second.Added != 50 || second.Removed != 100 || second.Created || !second.Whole {
		t.Fatalf("the second replacement says %+v", second)
	}
	empty := replaceWith(t, s, m, func(func(Quad, error) bool) {})
	if empty.Removed != n-50 || empty.Added != 0 {
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
			{second.Revision, wholeObjects(100, n+50)},
			{empty.Revision - 1, wholeObjects(100, n+50)},
			{empty.Revision, nil},
			{small.Revision, wholeObjects(0, 10)},
			{0, wholeObjects(0, 10)},
		} {
			if got := holdsAt(t, s, at.revision); !slices.Equal(got, at.want) {
				t.Errorf("at %d the graph has %d statements, want %d", at.revision, len(got), len(at.want))
			}
		}
		if n, err := s.SourceStatements("agent://loader"); err != nil || n != 10 {
			t.Errorf("the loader backs %d statements: %v", n, err)
		}
		mustBeClean(t, s)
	}
	check(s)
	if _, err := s.Maintenance().Checkpoint(t.Context()); err != nil {
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
	s := openStore(t, t.TempDir(), tenthWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	const n = wholeBeyond + 100
	first := replaceWith(t, s, m, wholeQuads(0, n))
	replaceWith(t, s, m, wholeQuads(1, n)) // 0 goes
	third := replaceWith(t, s, m, wholeQuads(0, n))
	versions := func(i int) (out []string) {
		v, err := s.View(t.Context(), View{AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		ids, _, err := v.PatternIDs(Pattern(wholeQuad(i)))
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
	s := openStore(t, t.TempDir(), tenthWhole())
	const n = wholeBeyond + 1
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
		if backed, err := s.SourceStatements(agent); err != nil || backed != n {
			t.Errorf("%s backs %d statements: %v", agent, backed, err)
		}
	}
	// A later update of one of them keeps the replaced statements as its past.
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
	s := openStore(t, dir, tenthWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	const n = wholeBeyond + 500
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
	s := openStore(t, t.TempDir(), tenthWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	tried := false
	_, err := s.ReplaceGraph(t.Context(), m, wholeGraph, func(yield func(Quad, error) bool) {
		for q := range wholeQuads(0, 2*wholeBeyond) {
			if !yield(q, nil) {
				return
			}
		}
		tried = true
		_, err := s.Update(context.Background(), m, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: wholeQuad(0)}) })
		if CodeOf(err) != CodeOverloaded || !strings.Contains(err.Error(), wholeGraph.Value()) {
			t.Errorf("an update meanwhile gets %v", err)
		}
		_, err = s.ReplaceGraph(context.Background(), m, wholeGraph, wholeQuads(0, 2*wholeBeyond), ReplaceOptions{})
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

func TestFollowersOfReplacedGraphAreSentBack(t *testing.T) {
	s := openStore(t, t.TempDir(), tenthWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	from := s.Head()
	elsewhere := numbered(1)
	watch := func(p Pattern) *Watcher {
		w, err := s.Watch(t.Context(), Filter{Patterns: []Pattern{p}, View: View{AllGraphs: true}}, from)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		return w
	}
	subject, graph, other := watch(Pattern{Subject: IRI("urn:s:1")}), watch(Pattern{Graph: wholeGraph}), watch(Pattern{Graph: DefaultGraph})
	const n = wholeBeyond + 1
	done := replaceWith(t, s, m, wholeQuads(0, n))
	commitOf(t, s, elsewhere)
	for _, w := range []*Watcher{subject, graph} {
		for e, err := range w.Events() {
			if CodeOf(err) != CodeResync {
				t.Fatalf("got %v, %v", e, err)
			}
			if at := AsError(err).Oldest; at == nil || at.Compare(done.Position) != 0 {
				t.Errorf("it is sent to %v, want %v", at, done.Position)
			}
			if want := fmt.Sprint(n, " statements added, 0 removed"); !strings.Contains(err.Error(), want) {
				t.Errorf("it is told %q, want %q in it", err, want)
			}
		}
	}
	for e, err := range other.Events() {
		if err != nil || e.Statement.Quad != elsewhere {
			t.Errorf("who follows another graph gets %v, %v", e, err)
		}
		break
	}
}

func TestHiddenCommitsAreSeenByNobody(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	done := replaceWith(t, s, m, wholeQuads(0, MaxPatches+1))
	reader := Principal{ID: "agent://reader", Method: "key"}
	for r := Revision(1); r < done.Revision; r++ {
		c, err := s.Commit(t.Context(), reader, r)
		if err == nil && (len(c.Changes) > 0 || c.Replaced != nil || c.Written != nil) {
			t.Errorf("revision %d shows %+v", r, c)
		}
	}
	c, err := s.Commit(t.Context(), reader, done.Revision)
	if err != nil || c.Replaced == nil || c.Replaced.Graph != wholeGraph || c.Replaced.Added != MaxPatches+1 {
		t.Errorf("the switch is %+v, %v", c, err)
	}
	for e, err := range func() iter.Seq2[Event, error] {
		l, err := s.ReadLog(t.Context(), Filter{View: View{Principal: reader}}, LogRange{After: s.Oldest(), Until: s.Head()})
		if err != nil {
			t.Fatal(err)
		}
		return l.Events()
	}() {
		t.Errorf("the log tells %v, %v", e, err)
	}
}

func TestExpectedRevisionAndReplacedGraph(t *testing.T) {
	s := openStore(t, t.TempDir(), tenthWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	const n = wholeBeyond + 1
	first := replaceWith(t, s, m, wholeQuads(0, n))
	stale := m
	stale.HasExpected, stale.ExpectedRevision = true, first.Revision-1
	_, err := s.Update(t.Context(), stale, func(tx *Tx) error { return tx.Apply(Patch{Op: Remove, Quad: wholeQuad(5)}) })
	if CodeOf(err) != CodeRevisionConflict {
		t.Errorf("an update that expects what was before gets %v", err)
	}
	_, err = s.ReplaceGraph(t.Context(), stale, wholeGraph, wholeQuads(1, n), ReplaceOptions{})
	if CodeOf(err) != CodeRevisionConflict {
		t.Errorf("a replacement that expects what was before gets %v", err)
	}
	stale.ExpectedRevision = first.Revision
	if _, err := s.ReplaceGraph(t.Context(), stale, wholeGraph, wholeQuads(1, n), ReplaceOptions{}); err != nil {
		t.Error(err)
	}
}

// indexedOf counts the keys that the index has under an id in the place of a graph.
func indexedOf(t *testing.T, s *Store, id ID) (n int) {
	t.Helper()
	p, err := s.pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.unpin(p)
	for _, prefix := range [][]byte{graphPrefix(id), append([]byte{byte(keys.GSPO.Past())}, id[:]...), append(keys.LastPrefix(), id[:]...)} {
		c := p.kv.Scan(prefix)
		for ; c.Valid(); c.Next() {
			n++
		}
		c.Close()
	}
	return n
}

// TestDeletedGraphLeavesNothingInTheIndex shows that all content that a graph ever had is
// removed from the index when it is deleted, and not only the last.
func TestDeletedGraphLeavesNothingInTheIndex(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{wholeFrom: 3, wholeCommit: 2})
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	replaceWith(t, s, m, wholeQuads(0, 3)) // an ordinary update
	for _, from := range []int{2, 5} {
		if r := replaceWith(t, s, m, wholeQuads(from, from+8)); !r.Whole {
			t.Fatalf("it is not replaced as a whole: %+v", r)
		}
	}
	ids := s.head.Load().generations.IDs(idOf(t, s, wholeGraph))
	if len(ids) != 3 {
		t.Fatalf("the graph has the contents %v, want 3", ids)
	}
	if _, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.purgeGenerations(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if n := indexedOf(t, s, id); n != 0 {
			t.Errorf("%d keys are left of content %d", n, i)
		}
	}
	mustBeClean(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{Rebuild: true})
	if err := s.purgeGenerations(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if n := indexedOf(t, s, id); n != 0 {
			t.Errorf("built anew, %d keys are left of content %d", n, i)
		}
	}
	mustBeClean(t, s)
}

// idOf is the id of a term.
func idOf(t *testing.T, s *Store, term Term) ID {
	t.Helper()
	v, err := s.View(t.Context(), View{AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	id, known, err := v.dict.ID(term)
	if err != nil || !known {
		t.Fatalf("the id of %v: %v, %v", term, known, err)
	}
	return id
}

func TestInterruptedReplacementIsRemoved(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, tenthWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	replaceWith(t, s, m, wholeQuads(0, 10))
	if err := m.normalise(); err != nil {
		t.Fatal(err)
	}
	w := &wholeReplacement{s: s, ctx: t.Context(), meta: m, graph: wholeGraph, shares: map[AgentID]int64{}}
	if err := w.beginGeneration(); err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(wholeQuads(5, 2*wholeCommit))
	defer stop()
	if err := w.writeAll(&replacement{}, next); err != nil {
		t.Fatal(err)
	}
	if n := indexedOf(t, s, w.generationID()); n == 0 {
		t.Fatal("nothing was written")
	}
	mustBeClean(t, s) // also while it is being written
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, tenthWhole())
	if got := holdsAt(t, s, 0); !slices.Equal(got, wholeObjects(0, 10)) {
		t.Errorf("the graph has %d statements", len(got))
	}
	if _, err := s.Update(t.Context(), m, func(tx *Tx) error { return tx.Apply(Patch{Op: Add, Quad: wholeQuad(11)}) }); err != nil {
		t.Errorf("the graph takes no changes: %v", err)
	}
	if err := s.purgeGenerations(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := indexedOf(t, s, w.generationID()); n != 0 {
		t.Errorf("%d keys of it are left", n)
	}
	mustBeClean(t, s)
}

func TestGenerationsOutOfHistoryAreRemoved(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, tenthWhole())
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	const n = wholeBeyond + 2
	replaceWith(t, s, m, wholeQuads(0, n))
	old := s.head.Load().generations.Entries
	second := replaceWith(t, s, m, wholeQuads(1, n))
	if err := datadir.WriteHistory(s.dir.Join(datadir.HistoryName), second.Revision); err != nil {
		t.Fatal(err)
	}
	s.oldest.Store(uint64(second.Revision))
	if err := errors.Join(s.clearGenerations(t.Context(), second.Revision), s.purgeGenerations(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, g := range old {
		if left := indexedOf(t, s, g.ID()); left != 0 {
			t.Errorf("%d keys are left of what nobody can read", left)
		}
	}
	if got := holdsAt(t, s, 0); !slices.Equal(got, wholeObjects(1, n)) {
		t.Errorf("the graph has %d statements", len(got))
	}
	mustBeClean(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, tenthWhole())
	if got := holdsAt(t, s, 0); len(got) != n-1 {
		t.Errorf("opened again the graph has %d statements", len(got))
	}
	mustBeClean(t, s)
}

// TestRemovalOfGenerationsCutShort shows that content which no readable revision needs is
// removed, and missed by no check, if a crash cut its removal short, before the index has the
// record that says so, and before or after the index has the switch to the content after it.
func TestRemovalOfGenerationsCutShort(t *testing.T) {
	dir, early, late := t.TempDir(), filepath.Join(t.TempDir(), "early"), filepath.Join(t.TempDir(), "late")
	m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
	const n = 40
	s := openStore(t, dir, smallWhole())
	stop := func(index string) {
		if err := errors.Join(s.Close(), os.CopyFS(index, os.DirFS(filepath.Join(dir, datadir.IndexName)))); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, dir, smallWhole())
	}
	replaceWith(t, s, m, wholeQuads(0, n))
	old := s.head.Load().generations.Entries
	before, err := s.IndexRows()
	if err != nil {
		t.Fatal(err)
	}
	stop(early)
	second := replaceWith(t, s, m, wholeQuads(1, n))
	stop(late)
	if err := datadir.WriteHistory(s.dir.Join(datadir.HistoryName), second.Revision); err != nil {
		t.Fatal(err)
	}
	s.oldest.Store(uint64(second.Revision))
	if err := errors.Join(s.clearGenerations(t.Context(), second.Revision), s.purgeGenerations(t.Context())); err != nil {
		t.Fatal(err)
	}
	after, err := s.IndexRows()
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	left := make(map[string]bool)
	for _, row := range after {
		key, _, _ := strings.Cut(row, " = ")
		left[key] = true
	}
	gone := slices.DeleteFunc(before, func(row string) bool { key, _, _ := strings.Cut(row, " = "); return left[key] })
	if len(gone) < n {
		t.Fatalf("%d rows are gone", len(gone))
	}
	for _, applied := range []bool{false, true} {
		for _, cut := range []int{1, n / 2, len(gone) - 1, len(gone)} {
			t.Run(fmt.Sprintf("%d of %d, the switch applied %t", cut, len(gone), applied), func(t *testing.T) {
				again := t.TempDir()
				index := filepath.Join(again, datadir.IndexName)
				err := errors.Join(os.CopyFS(again, os.DirFS(dir)), os.RemoveAll(index), os.CopyFS(index, os.DirFS(map[bool]string{false: early, true: late}[applied])))
				if err := errors.Join(err, ApplyRows(again, smallWhole(), nil, gone[:cut], second.Revision)); err != nil {
					t.Fatal(err)
				}
				o := smallWhole()
				o.ReadOnly = true
				s := openStore(t, again, o)
				mustBeClean(t, s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openStore(t, again, smallWhole())
				mustBeClean(t, s)
				if err := s.purgeGenerations(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, g := range old {
					if rows := indexedOf(t, s, g.ID()); rows != 0 {
						t.Errorf("%d keys are left of what nobody can read", rows)
					}
				}
				if got := holdsAt(t, s, 0); !slices.Equal(got, wholeObjects(1, n)) {
					t.Errorf("the graph has %d statements", len(got))
				}
				mustBeClean(t, s)
			})
		}
	}
}

func TestEraseInReplacedGraph(t *testing.T) {
	slowtest.Long(t)
	for name, o := range map[string]EraseOptions{
		"a subject": {Pattern: Pattern{Subject: IRI("urn:s:1")}},
		"a source":  {Source: "agent://bob"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, tenthWhole())
			alice, bob := Meta{Principal: SystemPrincipal(), Actor: "agent://alice"}, Meta{Principal: SystemPrincipal(), Actor: "agent://bob"}
			if _, err := s.Update(t.Context(), bob, func(tx *Tx) error {
				return errors.Join(tx.Apply(Patch{Op: Add, Quad: wholeQuad(3)}), tx.Apply(Patch{Op: Add, Quad: wholeQuad(5)}))
			}); err != nil {
				t.Fatal(err)
			}
			const n = wholeBeyond + 1
			replaceWith(t, s, alice, wholeQuads(0, n))
			replaceWith(t, s, bob, wholeQuads(4, n+4))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			report, err := Erase(t.Context(), dir, o)
			if err != nil || report.Changes == 0 {
				t.Fatalf("got %+v, %v", report, err)
			}
			s = openStore(t, dir, tenthWhole())
			want := n - 4
			if o.Source != "" {
				want = n - 4 // statements that bob alone backed are gone, of the others his part
			}
			if got := holdsAt(t, s, 0); len(got) != want {
				t.Errorf("the graph has %d statements, want %d", len(got), want)
			}
			if o.Source != "" {
				if backed, err := s.SourceStatements("agent://bob"); err != nil || backed != 0 {
					t.Errorf("bob backs %d statements: %v", backed, err)
				}
			}
			mustBeClean(t, s)
		})
	}
}

// Nothing reveals the content of a deleted graph, also if it was emptied before, and was
// replaced as a whole: no revision, and no stream from before.
func TestDeletedGraphWasReplaced(t *testing.T) {
	for name, content := range map[string]iter.Seq2[Quad, error]{"emptied before": wholeQuads(0, 0), "full": wholeQuads(2, 9)} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, t.TempDir(), Options{wholeFrom: 3, wholeCommit: 2})
			m := Meta{Principal: SystemPrincipal(), Actor: "agent://loader"}
			from := s.Head()
			first := replaceWith(t, s, m, wholeQuads(0, 8))
			if second := replaceWith(t, s, m, content); !first.Whole || !second.Whole {
				t.Fatalf("they are not replaced as a whole: %+v, %+v", first, second)
			}
			if _, err := s.DropGraph(t.Context(), m, wholeGraph, DropOptions{}); err != nil {
				t.Fatal(err)
			}
			for r := Revision(1); r <= s.Head().Revision; r++ {
				if got := holdsAt(t, s, r); len(got) > 0 {
					t.Errorf("at %d it holds %d statements", r, len(got))
				}
			}
			again := wholeQuad(100)
			commitOf(t, s, again)
			w, err := s.Watch(t.Context(), Filter{Patterns: []Pattern{{Graph: wholeGraph}}, View: View{AllGraphs: true}}, from)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for e, err := range w.Events() {
				if err != nil || e.Statement.Quad != again {
					t.Errorf("who follows it is told %v, %v", e, err)
				}
				break
			}
			mustBeClean(t, s)
		})
	}
}
