package graph_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/kg"
)

// tripwire is an access policy that panics while it is armed: at one graph, or
// for one right.
type tripwire struct {
	armed *atomic.Bool
	graph kg.Term
	right kg.Right
}

func (w tripwire) Allowed(p kg.Principal, graph kg.Term, right kg.Right) bool {
	if w.armed.Load() && p.ID == reader.ID && right == w.right && (w.graph.IsZero() || graph == w.graph) {
		panic("a wire was touched")
	}
	return true
}

// loggedOnce checks that the panic was logged once, with its stack.
func (b *bench) loggedOnce(path string) {
	b.t.Helper()
	text := b.log.String()
	if n := strings.Count(text, "a wire was touched"); n != 1 || !strings.Contains(text, "tripwire.Allowed") || !strings.Contains(text, "path="+path) {
		b.t.Errorf("logged %d times, want once at %s with a stack:\n%s", n, path, text)
	}
	b.log.Reset()
}

// A panic is an internal error of the root field that it happened in: the others
// answer, under a budget and without.
func TestPanicOfAField(t *testing.T) {
	armed := &atomic.Bool{}
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = tripwire{armed, iri("mine"), kg.Read} })
	b.update(in(iri("mine"), add(iri("s"), iri("p"), iri("t"))), in(iri("field"), add(iri("t"), iri("p"), kg.Integer(1))))
	armed.Store(true)
	for name, field := range map[string]string{
		"entity":        `bad: entity(iri: "ex:s") { label }`,
		"entities":      `bad: entities { nodes { label } }`,
		"statements":    `bad: statements { nodes { predicate } }`,
		"groups":        `bad: statements { groups { count } }`,
		"match":         `bad: match(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}) { nodes { values } }`,
		"follow":        `bad: entity(iri: "ex:s") { follow(path: "ex:p") { nodes { iri } } }`,
		"neighborhood":  `bad: entity(iri: "ex:s") { neighborhood { entities { iri } } }`,
		"shortestPaths": `bad: shortestPaths(from: "ex:s", to: "ex:t") { length }`,
		"diff":          `bad: diff(from: 0) { nodes { op } }`,
		"vocabulary":    `bad: vocabulary { predicates { nodes { iri } } }`,
		"stats":         `bad: stats { statements }`,
	} {
		for operation, query := range map[string]string{name: `{ ` + field + ` good: revision }`, name + " under a budget": `query @budget(maxBytes: 1000) { ` + field + ` good: revision }`} {
			t.Run(operation, func(t *testing.T) {
				b := b.of(t)
				r := b.execute(query, "")
				if string(r.Data) != `{"bad":null,"good":1}` {
					t.Errorf("got %s", r.Data)
				}
				if len(r.Errors) != 1 || r.Errors[0].Message != "internal error" || !strings.HasPrefix(r.Errors[0].Path.String(), "bad") {
					t.Errorf("got the errors %v, want one internal error", r.Errors)
				}
				b.loggedOnce("bad")
			})
		}
	}
}

// A panic in a mutation is an internal error of its field, and the next one
// works.
func TestPanicOfAMutation(t *testing.T) {
	armed := &atomic.Bool{}
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = tripwire{armed: armed, right: kg.Write} })
	patch := `applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:s"}, predicate: {id: "ex:p"}, object: {value: 1}}}]}) { revision }`
	armed.Store(true)
	r := b.execute(`mutation { bad: `+patch+` other: __typename }`, "")
	if string(r.Data) != `{"bad":null,"other":"Mutation"}` || len(r.Errors) != 1 || r.Errors[0].Message != "internal error" || r.Errors[0].Path.String() != "bad" {
		t.Errorf("got %s %v, want an internal error at bad", r.Data, r.Errors)
	}
	b.loggedOnce("bad")
	armed.Store(false)
	if r := b.execute(`mutation { `+patch+` }`, ""); len(r.Errors) > 0 || string(r.Data) != `{"applyPatches":{"revision":1}}` {
		t.Errorf("the next mutation: got %s %v", r.Data, r.Errors)
	}
}

// A panic in the writing of an event is an internal error of that event, and the next one
// is delivered.
func TestPanicOfAnEvent(t *testing.T) {
	for name, query := range map[string]string{
		"statementChanged": `subscription { e: statementChanged(where: {predicate: {eq: "ex:p"}}) { ... on StatementChange { statement { subject { label } } } } }`,
		"entityChanged":    `subscription { e: entityChanged(iri: "ex:s") { ... on EntityChange { entity { label } } } }`,
		"matchChanged":     `subscription { e: matchChanged(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}, {s: "?s", p: "ex:q", o: "?q"}]}) { ... on MatchChange { added { values } } } }`,
	} {
		t.Run(name, func(t *testing.T) {
			armed := &atomic.Bool{}
			b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = tripwire{armed, iri("mine"), kg.Read} })
			b.update(in(iri("mine"), add(iri("s"), iri("q"), kg.Integer(1))), in(iri("mine"), add(iri("s"), kg.IRI(kg.RDFSLabel), kg.String("S"))))
			f := b.follow(t, query, "", operation.Resume{})
			b.update(add(iri("s"), iri("p"), kg.Integer(1)))
			armed.Store(true)
			e, err, ok := f.next()
			if !ok || err != nil || e.Result.Data != nil || len(e.Result.Errors) != 1 || e.Result.Errors[0].Message != "internal error" || e.Result.Errors[0].Path.String() != "e" || e.Position.Revision != 2 {
				t.Fatalf("got %s %v %v, want an internal error at e", e.Result.Data, e.Result.Errors, err)
			}
			b.loggedOnce("e")
			armed.Store(false)
			b.update(add(iri("s"), iri("p"), kg.Integer(2)))
			if e, _ := f.event(); e.Position.Revision != 3 {
				t.Errorf("got revision %d, want 3", e.Position.Revision)
			}
		})
	}
}

// A panic in the code that finds the changes ends the subscription with an internal error,
// and is logged once; a panic of the receiver of the events is the receiver's.
func TestPanicOfASubscription(t *testing.T) {
	armed := &atomic.Bool{}
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = tripwire{armed, kg.DefaultGraph, kg.Read} })
	b.update(set("p", 1))
	query := `subscription { e: matchChanged(resume: "snapshot", pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}]}) { ... on MatchChange { added { values } } } }`
	f := b.follow(t, query, "", operation.Resume{})
	armed.Store(true)
	_, err, ok := f.next()
	if !ok || kg.CodeOf(err) != kg.CodeInternal || kg.AsError(err).Message != "internal error" {
		t.Fatalf("got %v, want an internal error", err)
	}
	b.engine.Present(err)
	b.loggedOnce("e")
	if _, _, ok := f.next(); ok {
		t.Error("the stream went on")
	}
	armed.Store(false)

	sub, err := b.engine.Subscribe(context.Background(), b.request(query, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	defer func() {
		if p := recover(); p != "mine" || b.log.Len() > 0 {
			t.Errorf("got the panic %v, want that of the reader; logged: %s", p, b.log)
		}
	}()
	for range sub.Events() {
		panic("mine")
	}
}
