package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/kg"
)

// A wrong shape has a hint that shows the right one, and the right one is answered.
// (testdata/answers/hints.txtar has what else is written.)
func TestHintsShowTheRightForm(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	for _, x := range []struct{ wrong, hint, right string }{
		{`{ entity(id: "ex:ada") { label } }`, `entity(iri: "ex:ada")`, `{ entity(iri: "ex:ada") { label } }`},
		{`{ entities(filter: {label: "Ada"}) { totalCount } }`, `entities(where: {…})`, `{ entities(where: {label: "Ada"}) { totalCount } }`},
		{`{ entities(limit: 2) { totalCount } }`, `entities(first: 2)`, `{ entities(first: 2) { totalCount } }`},
		{`{ entities(offset: 2) { totalCount } }`, `pageInfo { endCursor }`, `{ entities(first: 2) { pageInfo { endCursor } } }`},
		{`{ search(text: "Ada") { label } }`, `search(query: String!`, ``},
		{`{ find(text: "Ada") { label } }`, `entities(where: {label: {contains: "Ada"}})`, `{ entities(where: {label: {contains: "Ada"}}) { totalCount } }`},
		{`{ entity(iri: "ex:ada") { out { object { iri } } } }`, `out { nodes { object { … } } }`, `{ entity(iri: "ex:ada") { out { nodes { object { ... on Entity { iri } } } } } }`},
		{`{ entity(iri: "ex:ada") { out { nodes { object { iri } } } } }`, `object { ... on Entity { iri } }`, `{ entity(iri: "ex:ada") { out { nodes { object { ... on Entity { iri } } } } } }`},
		{`{ entity(iri: "ex:ada") { out { nodes { object { value } } } } }`, `object { ... on Literal { value } }`, `{ entity(iri: "ex:ada") { out { nodes { object { ... on Literal { value } } } } } }`},
		{`{ entity(iri: "ex:ada") { out } }`, `out { nodes { id predicate graph } }`, `{ entity(iri: "ex:ada") { out { nodes { id predicate graph } } } }`},
		{`{ entity(iri: "ex:ada") { label { text } } }`, `label without { … }`, `{ entity(iri: "ex:ada") { label } }`},
		{`{ entities(orderBy: {label: desc}) { totalCount } }`, `by: LABEL, direction: DESC`, `{ entities(orderBy: {by: LABEL, direction: DESC}) { totalCount } }`},
		{`{ entities(where: {label_starts_with: "A"}) { totalCount } }`, `label: {startsWith: "A"}`, `{ entities(where: {label: {startsWith: "A"}}) { totalCount } }`},
		{`mutation { createChannel(input: {name: "x"}) { id } }`, `createChannel { channel { id } }`, ``},
		{`mutation { banAgent(input: {agentId: "x"}) { channel { id } } }`, `restrictAgent(input: RestrictAgentInput!)`, ``},
		{`mutation { acceptInvitation(channelId: "x") { id } }`, `answerInvitation(input: AnswerInvitationInput!)`, ``},
		{`mutation { allowSchemes(names: ["x"]) { revision } }`, `changeSchemes(input: ChangeSchemesInput!)`, ``},
		{`{ entity(iri: "ex:ada") { age } }`, `age: value(predicate: "prefix:age")`, `{ entity(iri: "ex:ada") { age: value(predicate: "ex:age") } }`},
	} {
		var hints []string
		for _, err := range b.execute(x.wrong, "").Errors {
			hints = append(hints, fmt.Sprint(err.Extensions["hint"]))
		}
		if !strings.Contains(strings.Join(hints, "\n"), x.hint) {
			t.Errorf("%s: got %q, want %s", x.wrong, hints, x.hint)
		}
		if r := b.execute(x.right, ""); x.right != "" && len(r.Errors) > 0 {
			t.Errorf("%s: %v", x.right, r.Errors)
		}
	}
}

// The hints for a wrong document depend on the document alone, whatever the store holds and
// whoever asks.
func TestHintsOfFormsReadNothing(t *testing.T) {
	full, empty := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = onlyDefault{} }), newBench(t, graph.Options{})
	full.team()
	full.update(in(iri("hidden"), add(iri("s"), iri("secret"), kg.Integer(1))))
	for _, query := range []string{
		`{ entity(iri: "ex:s") { secret } }`, `{ entities(where: {secret: 1}) { totalCount } }`, `{ secret(id: "ex:s") { iri } }`, `{ entity(id: "ex:s") { iri } }`,
	} {
		one, other := full.execute(query, ""), empty.execute(query, "")
		if len(one.Errors) == 0 || fmt.Sprint(one.Errors[0].Extensions) != fmt.Sprint(other.Errors[0].Extensions) || one.StatementsRead != 0 {
			t.Errorf("%s: got %v, from an empty store %v", query, one.Errors[0].Extensions, other.Errors[0].Extensions)
		}
	}
}

// A document with very many errors, with long names, has hints for the first ones, and they
// are short.
func TestHintsOfFormsAreBounded(t *testing.T) {
	b := newBench(t, graph.Options{})
	long := strings.Repeat("n", 10_000)
	var fields []string
	for i := range 100 {
		fields = append(fields, fmt.Sprintf(`a%d: %s(id: "%s") { iri }`, i, long, long))
	}
	for _, query := range []string{
		"{ entity(iri: \"ex:a\") { " + strings.Join(fields, " ") + " } }",
		"{ " + strings.Join(fields[:40], " ") + " }",
		`{ entities(where: {` + long + `: "` + long + `", or: {label: {` + long + `: 1}}}) { totalCount } }`,
		`{ entities(` + long + `: "` + long + `") { totalCount } }`,
		`query ($` + long + `: Int) { entities(where: {label: $` + long + `}) { totalCount } }`,
	} {
		hinted := 0
		for _, err := range b.execute(query, "").Errors {
			if hint, ok := err.Extensions["hint"].(string); ok {
				if hinted++; len(hint) > 2_000 {
					t.Errorf("a hint of %d bytes: %.200s", len(hint), hint)
				}
			}
		}
		if hinted == 0 || hinted > 20 {
			t.Errorf("%d hints", hinted)
		}
	}
}
