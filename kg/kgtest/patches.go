package kgtest

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// testPatches tests the semantics of patches. Every step is compared with the model;
// because the model may share an error with the store, each row also has the expected
// number of changes and the final statements.
func testPatches(t *testing.T, f Factory) {
	q, other, third := quad("s", "p", "o"), quad("s", "p", "o2"), quad("s", "p", "\"text")
	const a, b = kg.AgentID("agent://a"), kg.AgentID("agent://b")
	for _, row := range []struct {
		name    string
		before  []kg.Patch
		patches []kg.Patch
		changes int
		want    map[kg.Quad]int // number of assertions of each statement
	}{
		{"add", nil, []kg.Patch{add(q, a)}, 1, map[kg.Quad]int{q: 1}},
		{"add again", []kg.Patch{add(q, a)}, []kg.Patch{add(q, a)}, 0, map[kg.Quad]int{q: 1}},
		{"add again with another certainty", []kg.Patch{add(q, a)}, []kg.Patch{addWith(q, a, 1)}, 1, map[kg.Quad]int{q: 1}},
		{"add again without the certainty", []kg.Patch{addWith(q, a, 0)}, []kg.Patch{add(q, a)}, 1, map[kg.Quad]int{q: 1}},
		{"add again with the same certainty", []kg.Patch{addWith(q, a, 0.5)}, []kg.Patch{addWith(q, a, 0.5)}, 0, map[kg.Quad]int{q: 1}},
		{
			"add again with an embedding", []kg.Patch{add(q, a)},
			[]kg.Patch{{Op: kg.Add, Quad: q, Source: a, Embedding: embeddings[0]}}, 1, map[kg.Quad]int{q: 1},
		},
		{
			"add again with the same embedding", []kg.Patch{{Op: kg.Add, Quad: q, Source: a, Embedding: embeddings[0]}},
			[]kg.Patch{{Op: kg.Add, Quad: q, Source: a, Embedding: &kg.Embedding{Model: "m", Vector: []float32{1, 0}}}}, 0, map[kg.Quad]int{q: 1},
		},
		{
			"add again with a provenance", []kg.Patch{add(q, a)},
			[]kg.Patch{{Op: kg.Add, Quad: q, Source: a, Provenance: []byte(`{"page":1}`)}}, 1, map[kg.Quad]int{q: 1},
		},
		{"add for a second source", []kg.Patch{add(q, a)}, []kg.Patch{add(q, b)}, 1, map[kg.Quad]int{q: 2}},
		{"add for nobody in particular", []kg.Patch{add(q, tester.ID)}, []kg.Patch{add(q, "")}, 0, map[kg.Quad]int{q: 1}},
		{"add twice", nil, []kg.Patch{add(q, a), add(q, a)}, 1, map[kg.Quad]int{q: 1}},
		{"add, change", nil, []kg.Patch{add(q, a), addWith(q, a, 0.5)}, 2, map[kg.Quad]int{q: 1}},
		{"remove what is not there", nil, []kg.Patch{remove(q, "")}, 0, nil},
		{"remove what another source says", []kg.Patch{add(q, a)}, []kg.Patch{remove(q, b)}, 0, map[kg.Quad]int{q: 1}},
		{"remove", []kg.Patch{add(q, a)}, []kg.Patch{remove(q, "")}, 1, nil},
		{"remove with all sources", []kg.Patch{add(q, a), add(q, b)}, []kg.Patch{remove(q, "")}, 1, nil},
		{"remove of the only source", []kg.Patch{add(q, a)}, []kg.Patch{remove(q, a)}, 1, nil},
		{"remove of one source", []kg.Patch{add(q, a), add(q, b)}, []kg.Patch{remove(q, a)}, 1, map[kg.Quad]int{q: 1}},
		{"remove of each source", []kg.Patch{add(q, a), add(q, b)}, []kg.Patch{remove(q, a), remove(q, b)}, 2, nil},
		{"remove, add", []kg.Patch{add(q, a)}, []kg.Patch{remove(q, ""), add(q, a)}, 2, map[kg.Quad]int{q: 1}},
		{"add, remove", nil, []kg.Patch{add(q, a), remove(q, "")}, 2, nil},
		{"add, remove, add", nil, []kg.Patch{add(q, a), remove(q, ""), add(q, b)}, 3, map[kg.Quad]int{q: 1}},
		{"replace nothing", nil, []kg.Patch{replace(q, a)}, 1, map[kg.Quad]int{q: 1}},
		{"replace by the same", []kg.Patch{add(q, a)}, []kg.Patch{replace(q, a)}, 0, map[kg.Quad]int{q: 1}},
		{"replace one", []kg.Patch{add(other, a)}, []kg.Patch{replace(q, a)}, 2, map[kg.Quad]int{q: 1}},
		{"replace several", []kg.Patch{add(other, a), add(other, b), add(third, b)}, []kg.Patch{replace(q, a)}, 3, map[kg.Quad]int{q: 1}},
		{"replace what the update added", nil, []kg.Patch{add(other, a), replace(q, a)}, 3, map[kg.Quad]int{q: 1}},
		{"replace there and back", []kg.Patch{add(q, a)}, []kg.Patch{replace(other, a), replace(q, a)}, 4, map[kg.Quad]int{q: 1}},
		{
			"replace leaves other graphs, predicates and subjects",
			[]kg.Patch{add(quadIn(kg.IRI("urn:g"), "s", "p", "o2"), a), add(quad("s", "p2", "o2"), a), add(quad("s2", "p", "o2"), a)},
			[]kg.Patch{replace(q, a)}, 1,
			map[kg.Quad]int{q: 1, quadIn(kg.IRI("urn:g"), "s", "p", "o2"): 1, quad("s", "p2", "o2"): 1, quad("s2", "p", "o2"): 1},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBoth(t, f, kg.Options{})
			if row.before != nil {
				b.update(kg.Meta{}, row.before...)
			}
			head := b.model.Head()
			got := b.update(kg.Meta{}, row.patches...)
			if got.Affected != row.changes {
				t.Errorf("got %d changes, want %d", got.Affected, row.changes)
			}
			if want := head + kg.Revision(min(1, row.changes)); b.model.Head() != want {
				t.Errorf("got revision %d, want %d", b.model.Head(), want)
			}
			backed := map[kg.Quad]int{}
			for _, s := range b.model.Match(kg.View{}, kg.Pattern{}) {
				backed[s.Quad] = len(s.Assertions)
			}
			for q, n := range row.want {
				if backed[q] != n {
					t.Errorf("%s: got %d assertions, want %d", quadText(q), backed[q], n)
				}
			}
			if len(backed) != len(row.want) {
				t.Errorf("got %d statements, want %d", len(backed), len(row.want))
			}
			b.compareAll(kg.View{Principal: tester})
			sameEverything(t, b.model, b.Store)
		})
	}
	t.Run("what is found is removed on the way", func(t *testing.T) {
		b := newBoth(t, f, kg.Options{})
		d := newDice(9)
		for range 20 {
			b.update(kg.Meta{}, d.patches()...)
		}
		_, err := b.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
			for s, err := range tx.Match(kg.Pattern{}) {
				if err != nil {
					return err
				}
				if err := tx.Apply(remove(s.Quad, "")); err != nil {
					return err
				}
			}
			if left, err := collect(tx.Match(kg.Pattern{})); len(left) != 0 || err != nil {
				t.Errorf("left over: %v, %v", statementLines(left), err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		replayNew(t, b)
		sameEverything(t, b.model, b.Store)
	})
	t.Run("refused", func(t *testing.T) { testRejectedPatches(t, f) })
	t.Run("the transaction sees its own", func(t *testing.T) { testReadsOwnWrites(t, f) })
	t.Run("the transaction sees terms that are new", func(t *testing.T) {
		store := f(t, kg.Options{})
		_, err := store.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
			for _, q := range []kg.Quad{third, quad("new:s", "new:p", "new:o"), quadIn(kg.IRI("urn:new"), "s", "type", "\"other text")} {
				if err := tx.Apply(add(q, a)); err != nil {
					return err
				}
				for _, p := range patternsOf(q) {
					if found, err := collect(tx.Match(p)); err != nil || len(found) == 0 {
						t.Errorf("Tx.Match(%v) after adding %s: got %v, %v", p, quadText(q), statementLines(found), err)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// testRejectedPatches proves that an invalid patch is rejected with its field, and that
// nothing of its update remains.
func testRejectedPatches(t *testing.T, f Factory) {
	store := f(t, kg.Options{})
	good := quad("s", "p", "o")
	with := func(change func(*kg.Patch)) kg.Patch {
		p := add(good, "")
		change(&p)
		return p
	}
	embedded := func(model string, vector ...float32) kg.Patch {
		return with(func(p *kg.Patch) { p.Embedding = &kg.Embedding{Model: model, Vector: vector} })
	}
	for _, row := range []struct {
		name  string
		patch kg.Patch
		code  kg.Code
	}{
		{"no operation", with(func(p *kg.Patch) { p.Op = 0 }), kg.CodeInvalid},
		{"an unknown operation", with(func(p *kg.Patch) { p.Op = kg.Replace + 1 }), kg.CodeInvalid},
		{"no subject", with(func(p *kg.Patch) { p.Quad.Subject = kg.Term{} }), kg.CodeInvalid},
		{"no predicate", with(func(p *kg.Patch) { p.Quad.Predicate = kg.Term{} }), kg.CodeInvalid},
		{"no object", with(func(p *kg.Patch) { p.Quad.Object = kg.Term{} }), kg.CodeInvalid},
		{"a literal as the subject", with(func(p *kg.Patch) { p.Quad.Subject = kg.String("s") }), kg.CodeInvalid},
		{"a blank node as the predicate", with(func(p *kg.Patch) { p.Quad.Predicate = kg.Blank("p") }), kg.CodeInvalid},
		{"a literal as the predicate", with(func(p *kg.Patch) { p.Quad.Predicate = kg.String("p") }), kg.CodeInvalid},
		{"the default graph as the object", with(func(p *kg.Patch) { p.Quad.Object = kg.DefaultGraph }), kg.CodeInvalid},
		{"the default graph as the subject", with(func(p *kg.Patch) { p.Quad.Subject = kg.DefaultGraph }), kg.CodeInvalid},
		{"a literal as the graph", with(func(p *kg.Patch) { p.Quad.Graph = kg.String("g") }), kg.CodeInvalid},
		{"a relative IRI", with(func(p *kg.Patch) { p.Quad.Subject = kg.IRI("s") }), kg.CodeInvalid},
		{"an IRI with a space", with(func(p *kg.Patch) { p.Quad.Subject = kg.IRI("urn:a b") }), kg.CodeInvalid},
		{"no UTF-8", with(func(p *kg.Patch) { p.Quad.Object = kg.String("a\xff") }), kg.CodeInvalid},
		{"a language without its tag", with(func(p *kg.Patch) { p.Quad.Object = kg.Typed("a", kg.RDFLangString) }), kg.CodeInvalid},
		{"no language tag", with(func(p *kg.Patch) { p.Quad.Object = kg.LangString("a", "e n") }), kg.CodeInvalid},
		{"a certainty above 1", with(func(p *kg.Patch) { p.HasCertainty, p.Certainty = true, 1.2 }), kg.CodeInvalid},
		{"a certainty below 0", with(func(p *kg.Patch) { p.HasCertainty, p.Certainty = true, -0.1 }), kg.CodeInvalid},
		{"a certainty that is no number", with(func(p *kg.Patch) { p.HasCertainty, p.Certainty = true, math.NaN() }), kg.CodeInvalid},
		{"a provenance that is no JSON", with(func(p *kg.Patch) { p.Provenance = []byte(`{"page":`) }), kg.CodeInvalid},
		{"an embedding without a model", embedded("", 1), kg.CodeInvalid},
		{"an embedding with a space in its model", embedded("a b", 1), kg.CodeInvalid},
		{"an embedding whose model is no UTF-8", embedded("a\xff", 1), kg.CodeInvalid},
		{"an embedding without numbers", embedded("m"), kg.CodeInvalid},
		{"an embedding of zeros", embedded("m", 0, 0), kg.CodeInvalid},
		{"an embedding with no number", embedded("m", 1, float32(math.NaN())), kg.CodeInvalid},
		{"an embedding with an infinite number", embedded("m", 1, float32(math.Inf(-1))), kg.CodeInvalid},
		{"an embedding of what is removed", with(func(p *kg.Patch) { p.Op, p.Embedding = kg.Remove, embeddings[0] }), kg.CodeInvalid},
		{"a source that is no UTF-8", with(func(p *kg.Patch) { p.Source = "agent://\xff" }), kg.CodeInvalid},
	} {
		t.Run(row.name, func(t *testing.T) {
			head := store.Head()
			_, err := store.Update(within(t), kg.Meta{Principal: tester}, applyPatches([]kg.Patch{add(quad("s", "p", "first"), ""), row.patch}))
			if code := kg.CodeOf(err); code != row.code {
				t.Errorf("got %q (%v), want %q", code, err, row.code)
			}
			if got := store.Head(); got != head {
				t.Errorf("a refused update made revision %d", got.Revision)
			}
		})
	}
}

// testReadsOwnWrites proves that Tx.Match shows the present with the effects of the
// update so far, for every pattern.
func testReadsOwnWrites(t *testing.T, f Factory) {
	b := newBoth(t, f, kg.Options{})
	d := newDice(2)
	for range 20 {
		b.update(kg.Meta{}, d.patches()...)
	}
	for range 20 {
		meta, patches := kg.Meta{Principal: tester}, d.patches()
		_, err := b.Update(within(t), meta, func(tx *kg.Tx) error {
			stage := b.model.Stage(meta, Stamp{tx.Revision(), tx.Time()})
			for _, p := range patches {
				if err := tx.Apply(p); err != nil {
					return err
				}
				stage.Apply(p)
			}
			for _, look := range patternsOf(patches[0].Quad) {
				got, err := collect(tx.Match(look))
				if err != nil {
					return err
				}
				if diff := cmp.Diff(statementLines(stage.Match(look)), statementLines(got)); diff != "" {
					t.Errorf("Tx.Match(%v) (-want +got):\n%s", look, diff)
				}
			}
			return errOwn // so that the model need not follow
		})
		if !errors.Is(err, errOwn) {
			t.Fatal(err)
		}
	}
}

// patternsOf returns the sixteen patterns that match a quad.
func patternsOf(q kg.Quad) []kg.Pattern {
	var out []kg.Pattern
	for bound := range 16 {
		var p kg.Pattern
		for i, part := range []struct {
			to   *kg.Term
			from kg.Term
		}{{&p.Subject, q.Subject}, {&p.Predicate, q.Predicate}, {&p.Object, q.Object}, {&p.Graph, q.Graph}} {
			if bound&(1<<i) != 0 {
				*part.to = part.from
			}
		}
		out = append(out, p)
	}
	return out
}
