package reference

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/slowtest"
)

// worldOf is the number of mutations that a pair of worlds sees at most: then there is little
// left in them that a mutation could be about.
const worldOf = 60

// twins are two worlds in which the same has happened.
type twins struct {
	t          *testing.T
	one, other *world
	left       int // mutations until they are replaced
}

// pair returns two worlds, new ones if the present ones are worn out or no longer the same.
func (p *twins) pair() (one, other *world) {
	if p.left <= 0 {
		p.renew()
	}
	p.left--
	return p.one, p.other
}

func (p *twins) renew() { p.one, p.other, p.left = newWorld(p.t), newWorld(p.t), worldOf }

// TestMutationsAgainstGraphQLJS compares the answers to random mutations. One world executes the
// document. In its twin, each root field of the plain form is an operation of its own, in the
// order of graphql-js, which completes the document over their answers: a field sees what those
// before it did, and nothing of those after it.
func TestMutationsAgainstGraphQLJS(t *testing.T) {
	slowtest.WithoutRace(t)
	n, first := documents(t, 400)
	worlds := &twins{t: t}
	worlds.renew()
	schema := schemaOf(t, worlds.one)
	js := startNode(t, worlds.one.engine.SDL())
	counts := map[string]int{}
	for i := range n {
		compareMutations(t, worlds, js, newOperation(schema, ast.Mutation, first+uint64(i), false), first+uint64(i), counts)
	}
	for _, text := range waitingDocuments {
		worlds.renew()
		compareMutations(t, worlds, js, document{text: text, by: ann}, 0, counts)
	}
	t.Logf("%v", counts)
	js.logCoverage(t, "Mutation.")
}

// waitingDocuments are about the mutations of waiting.
var waitingDocuments = []string{
	`mutation { ...A b: ask(input: {message: {channelId: "@channel@", parts: [], recipient: "bob"}, timeoutSeconds: 1}) { timedOut } c: createScope(input: {title: "after"}) { scope { title } } }
	fragment A on Mutation { ask(input: {message: {channelId: "@channel@", parts: [{type: "text", text: "who?"}], recipient: "bob"}, timeoutSeconds: 1}) { publication { message { sequence author { name } } } timedOut response { id } responses { id } } }`,
}

func compareMutations(t *testing.T, worlds *twins, js *node, doc document, seed uint64, counts map[string]int) {
	t.Helper()
	one, other := worlds.pair()
	text, variables := one.named(doc.text), one.named(string(doc.variables))
	a := one.request(one.engine, doc.by, text, decodeVariables(t, variables))
	a.name = doc.operation
	got := one.ask(a)
	text, variables = other.named(doc.text), other.named(string(doc.variables))
	e := js.examine(text, doc.operation, json.RawMessage(variables))
	report := func(format string, args ...any) {
		t.Helper()
		t.Errorf("-reference.seed=%d, as %s\n%s\n%s\n"+format, append([]any{seed, doc.by.ID, doc.text, doc.variables}, args...)...)
	}
	got.data = one.maskedNew(got.data)
	agree := judge(js, text, got, e, func() answer { return other.askEach(doc, e.Pieces) }, other.maskedNew, counts, report)
	if agree {
		if have, want := one.store.Head().Revision, other.store.Head().Revision; have != want {
			report("the revision is %d, and %d in the other world", have, want)
			agree = false
		}
	}
	if !agree {
		worlds.left = 0
	}
	one.tick()
	other.tick()
}

// askEach executes operations one after the other, as a document of them all.
func (w *world) askEach(doc document, pieces []string) answer {
	out := answer{kind: "valid"}
	var data []string
	for _, piece := range pieces {
		a := w.ask(w.request(w.wide, doc.by, piece, nil))
		if a.kind != "valid" {
			return a
		}
		out.errors, out.codes = append(out.errors, a.errors...), append(out.codes, a.codes...)
		if a.data == "" {
			return answer{kind: "no data", errors: a.errors}
		}
		members := bytes.TrimSpace([]byte(a.data))
		data = append(data, string(members[1:len(members)-1]))
	}
	out.data = "{" + strings.Join(data, ",") + "}"
	return out
}
