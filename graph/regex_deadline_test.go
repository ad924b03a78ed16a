package graph_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/slowtest"
	"koine/kg"
)

// TestMatchesOfLongTextsEnd proves that a request whose time is over ends within a match:
// an expression at the limit over a text of half a MiB takes many seconds.
func TestMatchesOfLongTextsEnd(t *testing.T) {
	slowtest.Long(t)
	b := newBench(t, graph.Options{})
	long := kg.String(strings.Repeat("ab", 250_000))
	b.update(add(iri("x"), iri("p"), long), add(iri("y"), iri("p"), long))
	const slow = `[ab]{2,240}-`
	for _, query := range []string{
		`{ match(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}], filter: [{var: "o", value: {regex: "` + slow + `"}}]}) { totalCount } }`,
		`{ match(pattern: {triples: [{s: "?s", p: "ex:p", o: "?o"}], filter: [{var: "o", not: {var: "o", value: {regex: "` + slow + `"}}}]}) { totalCount } }`,
		`{ entities(where: {property: [{predicate: "ex:p", regex: "` + slow + `"}]}) { totalCount } }`,
		`{ statements(where: {object: {regex: "` + slow + `"}}) { totalCount } }`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		r := b.engine.Execute(ctx, b.request(query, ""))
		took := time.Since(began)
		cancel()
		if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != string(kg.CodeTimeout) {
			t.Errorf("%s: got %s, %v", query, r.Data, r.Errors)
		}
		if most := slowtest.Slack(2 * time.Second); took > most {
			t.Errorf("%s: ended after %v, want %v at most", query, took, most)
		}
	}
}
