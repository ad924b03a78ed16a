package kgtest

import (
	"context"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// byValue makes cmp compare terms with ==.
var byValue = cmp.Comparer(func(a, b kg.Term) bool { return a == b })

func collect(seq iter.Seq2[kg.Statement, error]) ([]kg.Statement, error) {
	var out []kg.Statement
	for s, err := range seq {
		if err != nil {
			return out, err
		}
		out = append(out, s)
	}
	return out, nil
}

// open returns a snapshot that is closed at the end of the test at the latest.
func open(t testing.TB, s *Store, v kg.View) *kg.Snapshot {
	t.Helper()
	snap, err := s.View(within(t), v)
	if err != nil {
		t.Fatalf("View(%+v): %v", v, err)
	}
	t.Cleanup(snap.Close)
	return snap
}

// sameStatements compares the snapshot's matches of a pattern with the model's.
func sameStatements(t testing.TB, m *Model, snap *kg.Snapshot, p kg.Pattern) {
	t.Helper()
	got, err := collect(snap.Match(p))
	if err != nil {
		t.Fatalf("Match(%v): %v", p, err)
	}
	want := m.Match(snap.View(), p)
	if diff := cmp.Diff(statementLines(want), statementLines(got)); diff != "" {
		t.Fatalf("Match(%v) under %+v (-want +got):\n%s", p, snap.View(), diff)
	}
	n, err := snap.Count(p)
	if err != nil || n != uint64(len(want)) {
		t.Fatalf("Count(%v) under %+v: got %d, %v, want %d", p, snap.View(), n, err, len(want))
	}
}

// sameCounts compares the catalogue of a snapshot with the model's.
func sameCounts(t testing.TB, m *Model, snap *kg.Snapshot) {
	t.Helper()
	predicates, classes, graphs := m.Counts(snap.View())
	for _, c := range []struct {
		what string
		get  func() ([]kg.TermCount, error)
		want map[kg.Term]uint64
	}{
		{"Predicates", snap.Predicates, predicates},
		{"Classes", snap.Classes, classes},
		{"Graphs", snap.Graphs, graphs},
	} {
		counts, err := c.get()
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		got := map[string]uint64{}
		for _, n := range counts {
			if _, twice := got[n.Term.String()]; twice || n.Count == 0 {
				t.Errorf("%s: %s is listed twice or as absent", c.what, n.Term)
			}
			got[n.Term.String()] = n.Count
		}
		want := map[string]uint64{}
		for term, n := range c.want {
			want[term.String()] = n
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s under %+v (-want +got):\n%s", c.what, snap.View(), diff)
		}
	}
}

// sameCommit compares a commit of the store with the model's. The model adopts the order in
// which the store removed replaced statements: any order is valid, and events come in it.
func sameCommit(ctx context.Context, t testing.TB, m *Model, s *Store, r kg.Revision) {
	t.Helper()
	got, err := s.Commit(ctx, tester, r)
	kept := m.Commits[r-1]
	want := m.shownCommit(kept, tester)
	if want == nil && kg.CodeOf(err) == kg.CodeNotFound {
		return
	}
	if want == nil || err != nil {
		t.Fatalf("Commit(%d): got %v, %v, want %v", r, got, err, want)
	}
	if diff := cmp.Diff(changeLines(want.Changes), changeLines(got.Changes)); diff != "" {
		t.Fatalf("the changes of commit %d (-want +got):\n%s", r, diff)
	}
	if len(got.Changes) == len(kept.Changes) {
		kept.Changes = got.Changes
	}
	if want, got := replacedText(want.Replaced), replacedText(got.Replaced); want != got {
		t.Fatalf("commit %d: %s, want %s", r, got, want)
	}
	wantHead, gotHead := *want, *got
	wantHead.Changes, gotHead.Changes, wantHead.Replaced, gotHead.Replaced = nil, nil, nil, nil
	if diff := cmp.Diff(wantHead, gotHead); diff != "" {
		t.Fatalf("commit %d (-want +got):\n%s", r, diff)
	}
}

// sameEverything compares the present, the catalogue and every commit.
func sameEverything(t testing.TB, m *Model, s *Store) {
	t.Helper()
	if got := s.Head().Revision; got != m.Head() {
		t.Fatalf("Head: got revision %d, want %d", got, m.Head())
	}
	snap := open(t, s, kg.View{Principal: tester, AllGraphs: true})
	defer snap.Close()
	sameStatements(t, m, snap, kg.Pattern{})
	sameCounts(t, m, snap)
	for r := kg.Revision(1); r <= m.Head(); r++ {
		sameCommit(within(t), t, m, s, r)
	}
}

// sameAnswer compares the result of an update with the expected one.
func sameAnswer(t testing.TB, want Answer, got kg.Receipt, err error) {
	t.Helper()
	if code := kg.CodeOf(err); code != want.Code {
		t.Fatalf("Update: got %q (%v), want %q", code, err, want.Code)
	}
	if err != nil {
		return
	}
	got.Verdict, want.Receipt.Verdict = kg.Verdict{}, kg.Verdict{}
	if len(got.Subjects) == 0 {
		got.Subjects = nil
	}
	if diff := cmp.Diff(want.Receipt, got, byValue); diff != "" {
		t.Fatalf("the receipt (-want +got):\n%s", diff)
	}
}

// applyPatches returns an update function that applies the patches.
func applyPatches(patches []kg.Patch) func(*kg.Tx) error {
	return func(tx *kg.Tx) error {
		for _, p := range patches {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// thenFail wraps do to fail with errOwn afterwards.
func thenFail(do func(*kg.Tx) error) func(*kg.Tx) error {
	return func(tx *kg.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return errOwn
	}
}

// both applies the same updates to a store and its model and compares the results.
type both struct {
	*Store
	model *Model
	t     testing.TB
}

// newBoth returns a new store with its model.
func newBoth(t testing.TB, f Factory, o kg.Options) *both {
	s := f(t, o)
	return &both{Store: s, model: NewModel(s.Head().Epoch, o.Access), t: t}
}

// time returns the time of a commit of the store.
func (b *both) time(t testing.TB, r kg.Revision) time.Time {
	t.Helper()
	c, err := b.Commit(within(t), tester, r)
	if err != nil {
		t.Fatalf("Commit(%d): %v", r, err)
	}
	return c.Time
}

// update updates both. Patches and meta must have agent ids in full.
func (b *both) update(meta kg.Meta, patches ...kg.Patch) kg.Receipt {
	b.t.Helper()
	if meta.Principal.ID == "" {
		meta.Principal = tester
	}
	got, err := b.Update(within(b.t), meta, applyPatches(patches))
	before := b.model.Head()
	want := b.model.Update(meta, patches, Stamp{before + 1, got.Time})
	sameAnswer(b.t, want, got, err)
	if b.model.Head() > before {
		sameCommit(within(b.t), b.t, b.model, b.Store, b.model.Head())
	}
	return got
}

// compareAll compares the whole present in a view.
func (b *both) compareAll(v kg.View) {
	b.t.Helper()
	snap := open(b.t, b.Store, v)
	defer snap.Close()
	sameStatements(b.t, b.model, snap, kg.Pattern{})
}

func add(q kg.Quad, source kg.AgentID) kg.Patch {
	return kg.Patch{Op: kg.Add, Quad: q, Source: source}
}

func addWith(q kg.Quad, source kg.AgentID, certainty float64) kg.Patch {
	return kg.Patch{Op: kg.Add, Quad: q, Source: source, Certainty: certainty, HasCertainty: true}
}

func remove(q kg.Quad, source kg.AgentID) kg.Patch {
	return kg.Patch{Op: kg.Remove, Quad: q, Source: source}
}

func replace(q kg.Quad, source kg.AgentID) kg.Patch {
	return kg.Patch{Op: kg.Replace, Quad: q, Source: source}
}

// quad returns a statement of the default graph with the IRIs "urn:"+name; an object that begins
// with a quotation mark is a string.
func quad(s, p, o string) kg.Quad { return quadIn(kg.DefaultGraph, s, p, o) }

func quadIn(graph kg.Term, s, p, o string) kg.Quad {
	object := kg.IRI("urn:" + o)
	if o[0] == '"' {
		object = kg.String(o[1:])
	}
	return kg.Quad{Subject: kg.IRI("urn:" + s), Predicate: kg.IRI("urn:" + p), Object: object, Graph: graph}
}

// seconds abbreviates durations.
func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// waitUntil waits for a condition that other goroutines establish.
func waitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	for ctx := within(t); !done(); runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatalf("waited %v for %s", waitLimit, what)
		}
	}
}
