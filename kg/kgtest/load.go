package kgtest

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"koine/kg"
)

func quadsOf(n int, fail error) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		for i := range n {
			if !yield(loadedQuad(i), nil) {
				return
			}
		}
		if fail != nil {
			yield(kg.Quad{}, fail)
		}
	}
}

// loadedQuad is the i-th of many quads that share subjects, predicates,
// classes and graphs.
func loadedQuad(i int) kg.Quad {
	q := kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s:", i/10)), Predicate: kg.IRI(fmt.Sprint("urn:p:", i%10)), Object: kg.Integer(int64(i))}
	switch i % 10 {
	case 0:
		q.Predicate, q.Object = kg.IRI(kg.RDFType), kg.IRI(fmt.Sprint("urn:c:", i/10%7))
	case 1:
		q.Object = kg.IRI(fmt.Sprint("urn:s:", i/7))
	case 2:
		q.Object = kg.LangString(fmt.Sprint("the name of ", i), "en")
	case 3:
		q.Graph = kg.IRI(fmt.Sprint("urn:g:", i/10%3))
	}
	return q
}

// testLoad proves that loading in bulk, loading beside what is there, and
// applying patches come to the same.
func testLoad(t *testing.T, f Factory) {
	const n = 12_000 // more than one commit
	t.Run("into an empty store", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		loads(t, b, n, true)
		d := newDice(8)
		for range 20 {
			b.update(kg.Meta{}, d.patches()...)
		}
		for r := kg.Revision(1); r < 4; r++ {
			snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true, At: r})
			sameStatements(t, b.model, snap, kg.Pattern{})
			snap.Close()
		}
		b.Reopen()
		sameEverything(t, b.model, b.Store)
	})
	t.Run("beside what is there", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		b.update(kg.Meta{}, add(quad("s", "p", "o"), ""), add(loadedQuad(3), ""), addWith(loadedQuad(1), tester.ID, 0.5))
		loads(t, b, n, false)
		b.Reopen()
		sameEverything(t, b.model, b.Store)
	})
	t.Run("is told to watchers", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		rec := Record(t, b.Store, kg.Filter{Pattern: kg.Pattern{Predicate: kg.IRI("urn:p:4")}, View: kg.View{Principal: tester}}, b.Head())
		loads(t, b, n, true)
		h, err := rec.Wait(within(t), n/10)
		if err == nil {
			err = errors.Join(Ordered(h), Unique(h), Filtered(h, b.model, rec.filter))
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		report, err := b.Load(within(t), kg.Meta{Principal: tester}, quadsOf(0, nil), kg.LoadOptions{})
		if err != nil || report.Statements != 0 || report.Commits != 0 {
			t.Errorf("got %+v, %v", report, err)
		}
		sameEverything(t, b.model, b.Store)
		b.update(kg.Meta{}, add(quad("s", "p", "o"), ""))
	})
	t.Run("what cannot be stored", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		bad := func(yield func(kg.Quad, error) bool) {
			_ = yield(quad("s", "p", "o"), nil) && yield(kg.Quad{Subject: kg.String("s"), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:o")}, nil)
		}
		if _, err := b.Load(within(t), kg.Meta{Principal: tester}, bad, kg.LoadOptions{}); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("got %v, want %s", err, kg.CodeInvalid)
		}
		follow(t, b)
		sameEverything(t, b.model, b.Store)
	})
	t.Run("a source that fails", func(t *testing.T) {
		for name, before := range map[string][]kg.Patch{"into an empty store": nil, "beside what is there": {add(quad("s", "p", "o"), "")}} {
			b := newBoth(t, f, kg.Options{})
			b.update(kg.Meta{}, before...)
			if _, err := b.Load(within(t), kg.Meta{Principal: tester}, quadsOf(n, errOwn), kg.LoadOptions{}); !errors.Is(err, errOwn) {
				t.Errorf("%s: got %v, want the source's own error", name, err)
			}
			follow(t, b) // whole commits of it may be there
			sameEverything(t, b.model, b.Store)
			b.update(kg.Meta{}, add(quad("s", "p", "o2"), ""))
			b.Reopen()
			sameEverything(t, b.model, b.Store)
		}
	})
}

// loads loads n quads, each of them said twice, and compares everything.
func loads(t *testing.T, b *both, n int, bulk bool) {
	t.Helper()
	twice := func(yield func(kg.Quad, error) bool) {
		for i := range n {
			if !yield(loadedQuad(i), nil) || i%100 == 0 && !yield(loadedQuad(i/2), nil) {
				return
			}
		}
	}
	before := b.model.Head()
	var progress uint64
	report, err := b.Load(within(t), kg.Meta{Principal: tester, Justification: "because"}, twice,
		kg.LoadOptions{Progress: func(loaded uint64) {
			if loaded < progress {
				t.Errorf("progress goes from %d back to %d", progress, loaded)
			}
			progress = loaded
		}})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	if report.Bulk != bulk {
		t.Errorf("Bulk: got %v, want %v", report.Bulk, bulk)
	}
	follow(t, b)
	if got := uint64(b.model.Head() - before); report.Commits != got || report.Revision != b.model.Head() {
		t.Errorf("the report says %d commits up to %d, there are %d up to %d", report.Commits, report.Revision, got, b.model.Head())
	}
	for i := range n {
		if s, _ := b.model.at(normal(loadedQuad(i)), b.model.Head()); bySource(s, tester.ID) < 0 {
			t.Fatalf("%s was not loaded", quadText(loadedQuad(i)))
		}
	}
	sameEverything(t, b.model, b.Store)
	snap := open(t, b.Store, kg.View{Principal: tester})
	defer snap.Close()
	for _, p := range []kg.Pattern{{Subject: kg.IRI("urn:s:3")}, {Predicate: kg.IRI("urn:p:3")}, {Object: kg.IRI("urn:s:3")}, {Object: kg.Integer(14)}, {Graph: kg.IRI("urn:g:1")}} {
		sameStatements(t, b.model, snap, p)
	}
}

func normal(q kg.Quad) kg.Quad {
	if q.Graph.IsZero() {
		q.Graph = kg.DefaultGraph
	}
	return q
}
