package kgtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
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

// loadedQuad returns the i-th of many quads that share subjects, predicates, classes and graphs.
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

// testLoad proves that a bulk load, a load into a non-empty store, and patches have the
// same result.
func testLoad(t *testing.T, f Factory) {
	const many = 12_000    // more than one commit
	n := size(many, 2_000) // with -short, most loads are of one commit
	t.Run("into an empty store", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		loadTwice(t, b, many, true)
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
		loadTwice(t, b, n, true)
		b.Reopen()
		sameEverything(t, b.model, b.Store)
	})
	t.Run("beside koine's own", func(t *testing.T) {
		long(t)
		testLoadWithSystemGraphs(t, f, many, false)
	})
	t.Run("is told to watchers", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		rec := Record(t, b.Store, kg.Filter{Patterns: []kg.Pattern{{Predicate: kg.IRI("urn:p:4")}}, View: kg.View{Principal: tester}}, b.Head())
		loadTwice(t, b, n, true)
		h, err := rec.Wait(within(t), n/10)
		if err == nil {
			err = errors.Join(Ordered(h), Unique(h), Filtered(h, b.model, rec.filter))
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("beside koine's own and a reader that stays", func(t *testing.T) {
		long(t)
		testLoadWithSystemGraphs(t, f, many, true)
	})
	t.Run("while others write", func(t *testing.T) { testLoadConcurrentWrites(t, f, n) })
	t.Run("refused", func(t *testing.T) { testLoadRejected(t, f) })
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
		replayNew(t, b)
		sameEverything(t, b.model, b.Store)
	})
	t.Run("a source that fails", func(t *testing.T) {
		for name, before := range map[string][]kg.Patch{"into an empty store": nil, "beside what is there": {add(quad("s", "p", "o"), "")}} {
			b := newBoth(t, f, kg.Options{})
			b.update(kg.Meta{}, before...)
			if _, err := b.Load(within(t), kg.Meta{Principal: tester}, quadsOf(n, errOwn), kg.LoadOptions{}); !errors.Is(err, errOwn) {
				t.Errorf("%s: got %v, want the source's own error", name, err)
			}
			replayNew(t, b) // some of its commits may exist
			sameEverything(t, b.model, b.Store)
			b.update(kg.Meta{}, add(quad("s", "p", "o2"), ""))
			b.Reopen()
			sameEverything(t, b.model, b.Store)
		}
	})
}

// loadTwice loads n quads, each twice, and compares everything.
func loadTwice(t *testing.T, b *both, n int, bulk bool) {
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
	replayNew(t, b)
	if got := uint64(b.model.Head() - before); report.Commits != got || report.Revision != b.model.Head() {
		t.Errorf("the report says %d commits up to %d, there are %d up to %d", report.Commits, report.Revision, got, b.model.Head())
	}
	for i := range n {
		if s, _ := b.model.stateAt(normalQuad(loadedQuad(i)), b.model.Head()); bySource(s, tester.ID) < 0 {
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

// testLoadWithSystemGraphs bulk-loads into a store with system graphs, a past and
// idempotency keys. A snapshot that stays open during the load must not change.
func testLoadWithSystemGraphs(t *testing.T, f Factory, n int, stays bool) {
	b := newBoth(t, f, kg.Options{})
	keyed := kg.Meta{Principal: tester, IdempotencyKey: "k"}
	b.update(keyed, add(quadIn(ownGraph, "s", "p", "o"), ""), add(quad("s", "p", "gone"), ""))
	b.update(kg.Meta{}, remove(quad("s", "p", "gone"), ""))
	b.update(kg.Meta{}, replace(quadIn(ownGraph, "s", "p", "o2"), ""))
	snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true})
	sameStatements(t, b.model, snap, kg.Pattern{})
	if !stays {
		snap.Close()
	}
	loadTwice(t, b, n, true)
	if stays {
		sameStatements(t, b.model, snap, kg.Pattern{})
		sameCounts(t, b.model, snap)
		snap.Close()
	}
	for range 2 {
		for r := kg.Revision(1); r <= 5; r++ {
			snap := open(t, b.Store, kg.View{Principal: tester, AllGraphs: true, At: r})
			sameStatements(t, b.model, snap, kg.Pattern{})
			sameStatements(t, b.model, snap, kg.Pattern{Subject: kg.IRI("urn:s")})
			snap.Close()
		}
		b.update(keyed, add(quadIn(ownGraph, "s", "p", "o"), ""), add(quad("s", "p", "gone"), ""))
		b.update(kg.Meta{HasExpected: true, ExpectedRevision: 1}, add(quad("s", "p", "late"), ""))        // changed in 2
		b.update(kg.Meta{HasExpected: true, ExpectedRevision: 3}, addWith(loadedQuad(4), tester.ID, 0.5)) // loaded later
		b.Reopen()
	}
	sameEverything(t, b.model, b.Store)
}

// testLoadConcurrentWrites proves that no update is lost during a load.
func testLoadConcurrentWrites(t *testing.T, f Factory, n int) {
	b := newBoth(t, f, kg.Options{})
	ctx := within(t)
	var others sync.WaitGroup
	loading := make(chan struct{})
	made := make([]int, 4)
	for w := range made {
		others.Go(func() {
			for {
				q := quad(fmt.Sprint("other", w), "p", "o")
				q.Object = kg.Integer(int64(made[w]))
				if _, err := b.Update(ctx, kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(q, "")})); err != nil {
					t.Errorf("Update: %v", err)
					return
				}
				made[w]++
				select {
				case <-loading:
					return
				default:
				}
			}
		})
	}
	report, err := b.Load(ctx, kg.Meta{Principal: tester}, quadsOf(n, nil), kg.LoadOptions{})
	close(loading)
	others.Wait()
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	replayNew(t, b)
	sameEverything(t, b.model, b.Store)
	total := n
	for _, m := range made {
		total += m
	}
	if got := len(b.model.Match(kg.View{AllGraphs: true}, kg.Pattern{})); got != total || report.Statements != uint64(n) {
		t.Errorf("got %d statements, %d of them by the load, want %d and %d", got, report.Statements, total, n)
	}
}

// testLoadRejected proves that a load obeys the rules of an update.
func testLoadRejected(t *testing.T, f Factory) {
	// In the first quad the graph is an object, where it has no special meaning.
	one := func(q kg.Quad) iter.Seq2[kg.Quad, error] {
		before := quad("s", "p", "first")
		if !q.Graph.IsZero() {
			before.Object = q.Graph
		}
		return func(yield func(kg.Quad, error) bool) { _ = yield(before, nil) && yield(q, nil) }
	}
	inGraph := func(graph kg.Term) kg.Quad { return quadIn(graph, "s", "p", "o") }
	for _, row := range []struct {
		name     string
		gone     bool
		meta     kg.Meta
		quad     kg.Quad
		verdict  kg.Outcome
		wantCode kg.Code
	}{
		{"a hidden graph", false, kg.Meta{Principal: reader}, inGraph(hidden), 0, kg.CodeGraphNotFound},
		{"a graph that is only readable", false, kg.Meta{Principal: reader}, inGraph(readable), 0, kg.CodePermissionDenied},
		{"a literal as the graph", false, kg.Meta{Principal: tester}, inGraph(kg.String("a text that is no graph")), 0, kg.CodeInvalid},
		{"by the verifier", false, kg.Meta{Principal: tester}, inGraph(kg.Term{}), kg.Rejected, kg.CodeConstraintViolation},
		{"a violation", false, kg.Meta{Principal: tester}, inGraph(kg.Term{}), kg.Violation, kg.CodeConstraintViolation},
		{"an idempotency key", false, kg.Meta{Principal: tester, IdempotencyKey: "k"}, inGraph(kg.Term{}), 0, kg.CodeInvalid},
		{"an expected revision", false, kg.Meta{Principal: tester, HasExpected: true}, inGraph(kg.Term{}), 0, kg.CodeInvalid},
		{"a dry run", false, kg.Meta{Principal: tester, DryRun: true}, inGraph(kg.Term{}), 0, kg.CodeInvalid},
		{"a caller that is gone", true, kg.Meta{Principal: tester}, inGraph(kg.Term{}), 0, kg.CodeTimeout},
	} {
		for _, online := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, online %v", row.name, online), func(t *testing.T) {
				options := kg.Options{Governor: kg.Governor{Access: newPolicies()}}
				if row.verdict != kg.Accepted {
					options.Verifier = &recordingVerifier{answer: func(context.Context, kg.Judgement) (kg.Verdict, error) {
						return kg.Verdict{Outcome: row.verdict}, nil
					}}
				}
				b := newBoth(t, f, options)
				ctx, cancel := context.WithCancel(within(t))
				defer cancel()
				if row.gone {
					cancel()
				}
				_, err := b.Load(ctx, row.meta, one(row.quad), kg.LoadOptions{Online: online})
				if code := kg.CodeOf(err); code != row.wantCode || row.gone && !errors.Is(err, context.Canceled) {
					t.Errorf("got %q (%v), want %q", code, err, row.wantCode)
				}
				if got := b.Head().Revision; got != 0 {
					t.Errorf("made revision %d", got)
				}
				sameEverything(t, b.model, b.Store)
				b.Reopen()
				sameEverything(t, b.model, b.Store)
			})
		}
	}
}

func normalQuad(q kg.Quad) kg.Quad {
	if q.Graph.IsZero() {
		q.Graph = kg.DefaultGraph
	}
	return q
}
