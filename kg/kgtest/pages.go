package kgtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// samePages reads a pattern in pages of the given size and compares their union with the model.
func samePages(t testing.TB, m *Model, snap *kg.Snapshot, p kg.Pattern, size int) {
	t.Helper()
	ids, known := patternIDs(t, snap, p)
	want := m.Match(snap.View(), p)
	if !known {
		if len(want) != 0 {
			t.Fatalf("%v: a term that stands in %d statements has no id", p, len(want))
		}
		return
	}
	var got []kg.Statement
	var after *kg.IDQuad
	for page := 0; ; page++ {
		rows := readPage(t, snap, ids, after, size)
		for _, row := range rows {
			s, err := snap.Statement(row)
			if err != nil {
				t.Fatalf("Statement: %v", err)
			}
			got = append(got, s)
		}
		if len(rows) < size {
			break
		}
		last := rows[len(rows)-1].IDQuad
		after = &last
		if page > len(want) {
			t.Fatalf("%v in pages of %d does not end", p, size)
		}
	}
	if diff := cmp.Diff(statementLines(want), statementLines(got)); diff != "" {
		t.Fatalf("%v in pages of %d under %+v (-want +got):\n%s", p, size, snap.View(), diff)
	}
}

func readPage(t testing.TB, snap *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad, size int) []kg.Row {
	t.Helper()
	var rows []kg.Row
	for row, err := range snap.MatchIDs(p, after) {
		if err != nil {
			t.Fatalf("MatchIDs: %v", err)
		}
		if rows = append(rows, row); len(rows) == size {
			break
		}
	}
	return rows
}

// patternIDs resolves the pattern to ids; known is false if a term has none.
func patternIDs(t testing.TB, snap *kg.Snapshot, p kg.Pattern) (ids kg.IDPattern, known bool) {
	t.Helper()
	ids, known, err := snap.PatternIDs(p)
	if err != nil {
		t.Fatalf("PatternIDs(%v): %v", p, err)
	}
	return ids, known
}

func testPages(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	d := newDice(1)
	for range 60 {
		b.update(kg.Meta{}, d.patches()...)
	}
	t.Run("every size gives the same", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true})
		defer snap.Close()
		for _, size := range []int{1, 2, 3, 10, 1000} {
			for range 20 {
				samePages(t, b.model, snap, d.pattern(), size)
			}
		}
	})
	t.Run("a snapshot does not change between its pages", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{Principal: tester})
		defer snap.Close()
		want := readPage(t, snap, kg.IDPattern{}, nil, 1000)
		first := readPage(t, snap, kg.IDPattern{}, nil, 5)
		for range 20 {
			b.update(kg.Meta{}, d.patches()...)
		}
		last := first[len(first)-1].IDQuad
		got := append(first, readPage(t, snap, kg.IDPattern{}, &last, 1000)...)
		if diff := cmp.Diff(rowTexts(want), rowTexts(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("pages of the past", func(t *testing.T) {
		for r := kg.Revision(1); r <= b.model.Head(); r += 7 {
			snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true, At: r})
			samePages(t, b.model, snap, kg.Pattern{}, 4)
			snap.Close()
		}
	})
	t.Run("a scan ends with its context", func(t *testing.T) { testScanCancelled(t, f) })
	t.Run("ids lead to terms and back", func(t *testing.T) {
		snap := open(t, b.Store, kg.View{Principal: tester})
		defer snap.Close()
		for _, row := range readPage(t, snap, kg.IDPattern{}, nil, 1000) {
			s, err := snap.Statement(row)
			if err != nil {
				t.Fatal(err)
			}
			assertions, err := snap.Assertions(row)
			if got, want := assertionsText(assertions), assertionsText(s.Assertions); err != nil || got != want {
				t.Errorf("Assertions: got %s, %v, want %s", got, err, want)
			}
			for id, term := range map[kg.ID]kg.Term{row.Subject: s.Subject, row.Predicate: s.Predicate, row.Object: s.Object, row.Graph: s.Graph} {
				back, ok, err := snap.ID(term)
				if back != id || !ok || err != nil {
					t.Errorf("ID(%s): got %v, %v, %v, want %v", term, back, ok, err, id)
				}
				if got, err := snap.Term(id); got != term || err != nil {
					t.Errorf("Term(%v): got %s, %v, want %s", id, got, err, term)
				}
			}
		}
		if _, ok, err := snap.ID(kg.IRI("urn:never:said")); ok || err != nil {
			t.Errorf("ID of a term that is nowhere: got %v, %v", ok, err)
		}
	})
}

// testScanCancelled proves that a long scan ends soon after its context is cancelled.
func testScanCancelled(t *testing.T, f Factory) {
	const many = 5000
	store := f(t, kg.Options{})
	patches := make([]kg.Patch, many)
	for i := range patches {
		patches[i] = add(quad(fmt.Sprint("s", i), "p", "o"), "")
	}
	if _, err := store.Update(within(t), kg.Meta{Principal: tester}, applyPatches(patches)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	snap, err := store.View(ctx, kg.View{Principal: tester})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	rows := 0
	for _, err = range snap.MatchIDs(kg.IDPattern{}, nil) {
		cancel()
		rows++
	}
	if !errors.Is(err, context.Canceled) || rows >= many {
		t.Errorf("got %d rows, %v, want that it was cancelled", rows, err)
	}
}

func rowTexts(rows []kg.Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = fmt.Sprintf("%x", r.IDQuad)
	}
	return out
}
