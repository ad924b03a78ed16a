package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/graph"
)

// Whatever a query says, it is answered with JSON or an error of its own, and
// never with an internal one.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{
		`{ revision }`, `{ entity(iri: "ex:ada") { label out { nodes { object { ... on Literal { value } } } } } }`,
		`query ($a: Cursor) { statements(after: $a, where: {object: {gt: 1, in: [true, "x", 1.5]}}) { edges { cursor } } }`,
		`{ entities(orderBy: {property: "ex:age"}, where: {or: [{label: {eq: "Ada"}}, {not: {}}]}) { nodes { iri } } }`,
		`fragment F on Entity { ...F }`, `{ node(id: "urn:koine:statement:AAAA") { id } }`, `{ __schema { types { name } } }`, "{\xff}",
	} {
		f.Add(q)
	}
	b := newBench(f, graph.Options{Limits: graph.Limits{Duration: time.Minute}})
	b.team()
	f.Fuzz(func(t *testing.T, q string) {
		b := b.of(t)
		r := b.execute(q, "")
		if len(r.Errors) == 0 && !json.Valid(r.Data) {
			t.Errorf("%q: got %q", q, r.Data)
		}
		for _, e := range r.Errors {
			if e.Extensions["code"] == "INTERNAL" || e.Extensions["code"] == nil {
				t.Errorf("%q: got %v\n%s", q, e, b.log.String())
			}
		}
	})
}

// Tokens that come from outside are opened or refused.
func FuzzTokens(f *testing.F) {
	b := newBench(f, graph.Options{})
	b.team()
	var data struct{ Statements connection }
	b.data(`{ statements(first: 1) { edges { cursor } pageInfo { endCursor } } }`, "", &data)
	f.Add(data.Statements.PageInfo.EndCursor)
	f.Add(b.store.FormatPosition(b.store.Head()))
	f.Add("urn:koine:statement:F2h0dHBzOi8vZXhhbXBsZS5vcmcvYWRhF2h0dHBzOi8vZXhhbXBsZS5vcmcvYWdlAG19xBM0-VAaQgoBFSVnRTE")
	f.Add("urn:koine:statement:" + strings.Repeat("_", 30))
	f.Fuzz(func(t *testing.T, token string) {
		b := b.of(t)
		text, err := json.Marshal(map[string]string{"t": token})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{
			`query ($t: Cursor) { statements(first: 1, after: $t) { nodes { predicate } } }`,
			`query ($t: Cursor) { entities(first: 1, after: $t) { nodes { iri } } }`,
			`query ($t: ID!) { node(id: $t) { id } }`,
		} {
			for _, e := range b.execute(q, string(text)).Errors {
				if code := fmt.Sprint(e.Extensions["code"]); code != "CURSOR_FOREIGN" && code != "INVALID" {
					t.Errorf("%q: got %v", token, e)
				}
			}
		}
		sub, err := b.engine.Subscribe(t.Context(), b.request(`subscription ($t: Position) { statementChanged(resume: $t) { __typename } }`, string(text)))
		if err == nil {
			sub.Close()
		}
	})
}
