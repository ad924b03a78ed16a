package kg

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"koine/internal/slowtest"
)

// busyStore is a store whose committer remembers the changes of few commits, and whose
// verifier judges the replacements of the loader.
type busyStore struct {
	*Store
	t *testing.T
	// judge is called for each judgement of the loader's, with its number.
	judge  func(look int)
	looks  int
	loader Meta
}

var ruled = IRI("urn:ruled") // the subject that all verdicts depend on

func newBusyStore(t *testing.T) *busyStore {
	b := &busyStore{t: t, judge: func(int) {}, loader: Meta{Principal: Principal{ID: "agent://loader", Method: "key"}}}
	v := &verdicts{of: func(j Judgement) (Verdict, error) {
		if j.Meta.Principal.ID != b.loader.Principal.ID {
			return Verdict{}, nil
		}
		b.looks++
		b.judge(b.looks)
		return Verdict{Depends: []Dependency{{Node: ruled}, {Node: IRI("urn:other")}, {Node: ruled}}}, nil
	}}
	o := smallWhole()
	o.Verifier = v
	b.Store = openStore(t, t.TempDir(), o)
	b.recentChanges.most = 20
	return b
}

// change commits statements about a subject, one after the other.
func (b *busyStore) change(subject Term, commits int) {
	b.t.Helper()
	for i := range commits {
		if _, err := b.Update(b.t.Context(), Meta{Principal: SystemPrincipal(), Actor: "agent://busy"}, func(tx *Tx) error {
			return tx.Apply(Patch{Op: Add, Quad: Quad{Subject: subject, Predicate: IRI("urn:p"), Object: String(fmt.Sprint("text ", b.Head().Revision, " ", i)), Graph: DefaultGraph}})
		}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestJudgedReplacementInABusyStore shows that a replacement is judged again when something
// changed that its verdict depends on, and not because others committed more than the
// committer remembers: during the judgement or behind it.
func TestJudgedReplacementInABusyStore(t *testing.T) {
	slowtest.Long(t)
	const many = 30 // of 3 numbers each
	elsewhere := IRI("urn:elsewhere")
	for name, row := range map[string]struct {
		meanwhile func(b *busyStore)
		looks     int
	}{
		"much elsewhere":                  {func(b *busyStore) { b.change(elsewhere, many) }, 1},
		"much elsewhere, the log cut":     {func(b *busyStore) { b.change(elsewhere, many); b.cut() }, 1},
		"the subject, then much":          {func(b *busyStore) { b.change(ruled, 1); b.change(elsewhere, many) }, 2},
		"much, then the subject":          {func(b *busyStore) { b.change(elsewhere, many); b.change(ruled, 1) }, 2},
		"another graph replaced as whole": {func(b *busyStore) { b.replaceOther() }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBusyStore(t)
			b.judge = func(look int) {
				if look == 1 {
					row.meanwhile(b)
				}
			}
			r := replaceWith(t, b.Store, b.loader, wholeQuads(0, 6))
			if b.looks != row.looks || r.Added != 6 {
				t.Errorf("it is judged %d times, want %d, and says %+v", b.looks, row.looks, r)
			}
			mustBeClean(t, b.Store)
		})
	}
	for name, row := range map[string]struct {
		subject Term
		want    error
	}{"behind the judgement, elsewhere": {elsewhere, nil}, "behind the judgement, the subject": {ruled, errOvertaken}} {
		t.Run(name, func(t *testing.T) {
			b := newBusyStore(t)
			m := b.loader
			if err := m.normalise(); err != nil {
				t.Fatal(err)
			}
			w := &wholeReplacement{s: b.Store, ctx: t.Context(), meta: m, graph: wholeGraph, shares: map[AgentID]int64{}}
			if err := w.beginGeneration(); err != nil {
				t.Fatal(err)
			}
			next, stop := iter.Pull2(wholeQuads(0, 6))
			defer stop()
			if err := w.writeAll(&replacement{}, next); err != nil {
				t.Fatal(err)
			}
			if err := w.compareContent(); err != nil {
				t.Fatal(err)
			}
			j, err := w.judgeDifference()
			if err != nil || !slices.IsSorted(j.depends) || len(j.depends) != 2 {
				t.Fatalf("got %+v, %v", j, err)
			}
			b.change(row.subject, 1)
			b.change(elsewhere, many)
			if err := w.switchGeneration(j); err != row.want {
				t.Errorf("the switch gets %v, want %v", err, row.want)
			}
		})
	}
}

// cut cuts the log as far as it may be cut.
func (b *busyStore) cut() {
	b.t.Helper()
	if err := b.Maintenance().CutLog(b.t.Context(), b.Head().Revision); err != nil {
		b.t.Error(err)
	}
}

func (b *busyStore) replaceOther() {
	b.t.Helper()
	other := IRI("urn:g:other")
	r, err := b.ReplaceGraph(b.t.Context(), Meta{Principal: SystemPrincipal(), Actor: "agent://busy"}, other, func(yield func(Quad, error) bool) {
		for q := range wholeQuads(0, 5) {
			if q.Graph = other; !yield(q, nil) {
				return
			}
		}
	}, ReplaceOptions{})
	if err != nil || !r.Whole {
		b.t.Errorf("got %+v, %v", r, err)
	}
}
