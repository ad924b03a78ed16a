package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
)

// Every query is answered with JSON or an error of its own, and never with an internal one.
func FuzzQuery(f *testing.F) {
	f.Add(`query ($v: Boolean = true) @budget(maxBytes: 90) { a: revision @skip(if: $v) entities(budget: {maxStatements: 4}) { nodes { iri out { nodes { id } } } } }`, `{"v": null}`)
	f.Add(`query ($f: EntityFilter, $n: Int, $d: Direction = OUT) { entities(where: $f, first: $n) { nodes { degree(direction: $d) } } }`, `{"f": {"not": {"label": {"eq": null}}}, "n": 1e3, "d": null}`)
	for _, q := range []string{
		`{ revision }`, `{ entity(iri: "ex:ada") { label out { nodes { object { ... on Literal { value } } } } } }`,
		`query ($a: Cursor) { statements(after: $a, where: {object: {gt: 1, in: [true, "x", 1.5]}}) { edges { cursor } } }`,
		`{ entities(orderBy: {property: "ex:age"}, where: {or: [{label: {eq: "Ada"}}, {not: {}}]}) { nodes { iri } } }`,
		`fragment F on Entity { ...F }`, `{ node(id: "urn:koine:statement:AAAA") { id } }`, `{ __schema { types { name } } }`, "{\xff}",
	} {
		f.Add(q, "")
	}
	b := newBench(f, graph.Options{Limits: limit.Limits{Duration: time.Minute}})
	b.team()
	f.Fuzz(func(t *testing.T, q, variables string) {
		if !json.Valid([]byte(variables)) || !strings.HasPrefix(variables, "{") {
			variables = ""
		}
		b := b.of(t)
		r := b.execute(q, variables)
		if (len(r.Errors) == 0 || r.Data != nil) && !json.Valid(r.Data) {
			t.Errorf("%q %s: got %q", q, variables, r.Data)
		}
		for _, e := range r.Errors {
			if e.Extensions["code"] == "INTERNAL" || e.Extensions["code"] == nil {
				t.Errorf("%q %s: got %v\n%s", q, variables, e, b.log.String())
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
