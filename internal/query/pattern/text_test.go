package pattern_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"koine/internal/query/pattern"
	"koine/kg"
	"koine/kg/kgtest"
)

// found is a source of given resources with their scores.
type found map[kg.Term]float64

func (f found) String() string { return fmt.Sprint(map[kg.Term]float64(f)) }

func (f found) Find(_ context.Context, s *kg.Snapshot, _ pattern.TextUse) (pattern.TextHits, error) {
	hits := foundHits{}
	for t, score := range f {
		id, known, err := s.ID(t)
		if err != nil {
			return nil, err
		}
		if known {
			hits[id] = score
		}
	}
	return hits, nil
}

type foundHits map[kg.ID]float64

func (h foundHits) Estimate() (hits, texts uint64) { return uint64(len(h)), 100 }

func (h foundHits) Scan(from kg.ID) iter.Seq2[pattern.TextHit, error] {
	return func(yield func(pattern.TextHit, error) bool) {
		for _, id := range slices.SortedFunc(maps.Keys(h), func(a, b kg.ID) int { return b.Compare(a) }) {
			if (from.IsZero() || id.Compare(from) <= 0) && !yield(pattern.TextHit{ID: id, Score: h[id]}, nil) {
				return
			}
		}
	}
}

func (h foundHits) Hit(id kg.ID) (pattern.TextHit, bool, error) {
	score, ok := h[id]
	return pattern.TextHit{ID: id, Score: score}, ok, nil
}

func (h foundHits) State() uint64 { return uint64(len(h)) }

func (r *generator) found() found {
	f := found{}
	for range r.IntN(5) {
		f[r.resource()] = float64(r.IntN(8)) / 4
	}
	return f
}

// The planner begins with a text that finds little, and tests the rows of a pattern that finds
// less.
func TestTextsArePlanned(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	likes(t, s, "tea", 200)
	likes(t, s, "milk", 2)
	view, err := s.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	many := found{}
	for n := range 100 {
		many[kg.IRI(fmt.Sprintf("urn:%d", n))] = 1
	}
	for _, row := range []struct {
		source found
		object string
		want   string
		rows   int
	}{
		{found{kg.IRI("urn:7"): 1, kg.IRI("urn:other"): 1}, "tea", "text join", 1},
		{many, "milk", "scan text test", 2},
		{many, "tea", "text join", 100},
	} {
		p, err := pattern.Compile(pattern.Group{
			Triples: []pattern.Triple{{Subject: pattern.Var("a"), Predicate: pattern.Term(kg.IRI("urn:likes")), Object: pattern.Term(kg.IRI("urn:" + row.object))}},
			Texts:   []pattern.Text{{Var: "a", Source: row.source}},
		}, pattern.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Evaluate(t.Context(), view, pattern.Query{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range e.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		var kinds []string
		for _, s := range e.Explain() {
			kinds = append(kinds, s.Kind)
		}
		if got := strings.Join(kinds, " "); got != row.want || n != row.rows {
			t.Errorf("%d hits with %s: got %s with %d rows, want %s with %d\n%s", len(row.source), row.object, got, n, row.want, row.rows, explained(e.Explain(), ""))
		}
	}
}

// A pattern has as many texts as the limit says, hits count as statements, and a cursor of other
// hits is refused.
func TestBoundsOfTexts(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	likes(t, s, "tea", 9)
	view, err := s.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	nine := found{}
	for n := range 9 {
		nine[kg.IRI(fmt.Sprintf("urn:%d", n))] = 1
	}
	read := func(limits pattern.Limits, after []byte, texts ...pattern.Text) (rows int, cursor []byte, err error) {
		p, err := pattern.Compile(pattern.Group{Texts: texts}, limits)
		if err != nil {
			return 0, nil, err
		}
		e, err := p.Evaluate(t.Context(), view, pattern.Query{After: after})
		if err != nil {
			return 0, nil, err
		}
		for _, err := range e.Rows() {
			if err != nil {
				return rows, nil, err
			}
			if rows++; rows == 1 {
				cursor = e.Cursor()
			}
		}
		return rows, cursor, nil
	}
	a, b := pattern.Text{Var: "a", Source: nine}, pattern.Text{Var: "b", Score: "s", Source: nine}
	if n, _, err := read(pattern.Limits{Texts: 2}, nil, a, b); n != 81 || err != nil {
		t.Errorf("two texts: got %d rows, %v", n, err)
	}
	if _, _, err := read(pattern.Limits{Texts: 1}, nil, a, b); kg.CodeOf(err) != kg.CodeLimitExceeded || kg.AsError(err).Field != "text[1]" {
		t.Errorf("past the bound: got %v", err)
	}
	if _, _, err := read(pattern.Limits{}, nil, pattern.Text{Var: "a", Score: "a", Source: nine}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("one variable for both: got %v", err)
	}
	n, cursor, err := read(pattern.Limits{Statements: 9}, nil, a)
	if n != 9 || err != nil {
		t.Errorf("at the bound of statements: got %d rows, %v", n, err)
	}
	if _, _, err := read(pattern.Limits{Statements: 8}, nil, a); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("past the bound of statements: got %v", err)
	}
	if n, _, err := read(pattern.Limits{}, cursor, a); n != 8 || err != nil {
		t.Errorf("resumed: got %d rows, %v", n, err)
	}
	delete(nine, kg.IRI("urn:3"))
	if _, _, err := read(pattern.Limits{}, cursor, a); kg.CodeOf(err) != kg.CodeCursorGone {
		t.Errorf("resumed with other hits: got %v", err)
	}
}

// likes commits that each of the people likes the thing.
func likes(t *testing.T, s *kgtest.Store, thing string, people int) {
	t.Helper()
	if _, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		for i := range people {
			q := kg.Quad{Subject: kg.IRI(fmt.Sprintf("urn:%d", i)), Predicate: kg.IRI("urn:likes"), Object: kg.IRI("urn:" + thing)}
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
