package graph_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/slowtest"
)

// Each kind of field costs as docs/reference/graphql.md says: at that complexity an
// operation is accepted, and one below it is refused.
func TestCosts(t *testing.T) {
	slowtest.Long(t)
	const entity = `{ entity(iri: "ex:ada") { `
	for _, tt := range []struct {
		name, query string
		cost        int
	}{
		{"a scalar", `{ revision }`, 1},
		{"an entity", entity + `iri } }`, 2 + 1},
		{"a term and an entity", `{ statements(first: 1) { nodes { object { __typename } subject { iri } } } }`, 5 + 1 + 2 + 1 + 2 + 1},
		{"a page", `{ entities(first: 7) { pageInfo { endCursor } nodes { iri } } }`, 5 + 2 + 7*2},
		{"a page of fragments", `{ a: entities(first: 2) { ...F } b: entities(first: 3) { ...F } } fragment F on EntityConnection { totalCount nodes { iri } }`, 5 + 20 + 2*2 + 5 + 20 + 3*2},
		{"pages in pages", `{ entities(first: 7) { nodes { out(first: 3) { totalCount edges { cursor } } } } }`, 5 + 7*(1+5+20+3*2)},
		{"a page unsaid", `{ entities { nodes { iri } } }`, 5 + 25*2},
		{"a list of values", entity + `values(predicate: "ex:name", first: 1000) } }`, 2 + 5},
		{"an agent's id", `{ statements(first: 3) { nodes { assertions { sourceId source { id __typename } } } } }`, 5 + 3*(1+1+1+1+2)},
		{"an agent", `{ statements(first: 3) { nodes { assertions { source { ...A } } } } } fragment A on Agent { ... on Agent { id name } }`, 5 + 3*(1+1+5+2)},
		{"a number of statements", entity + `degree predicates { iri } } }`, 2 + 5 + 5 + 1},
		{"a list of the vocabulary", `{ vocabulary { classes(first: 9) { nodes { iri } } } }`, 1 + 5 + 9*(1+1)},
		{"a list of the vocabulary, unsaid", `{ vocabulary { graphs { nodes { count } } } }`, 1 + 5 + 100*(1+1)},
		{"a path", entity + `value(path: "ex:a/ex:b|^ex:c") } }`, 2 + 1 + 30},
		{"a path of IRIs", entity + `value(path: "<https://a/b>/<https://a/c>") } }`, 2 + 1 + 20},
		{"a path of one step", entity + `value(path: "<https://a/b>") } }`, 2 + 1},
		{"a path that repeats", entity + `follow(path: "ex:a+", first: 2) { nodes { iri } } } }`, 2 + 5 + 50 + 10 + 2*2},
		{"conditions", `{ entities(first: 1, where: {property: [{predicate: "ex:a", contains: "a", regex: "b"}, {predicate: "ex:b", eq: "c"}], not: {label: {endsWith: "c"}}}) { totalCount } }`, 5 + 20 + 3*20 + 200},
		{"a condition on a path", `{ entities(first: 1, where: {path: [{path: "ex:a/ex:b"}]}) { totalCount } }`, 5 + 20 + 20},
		{"an order", `{ entities(first: 1, orderBy: [{by: DEGREE}, {by: IRI}]) { nodes { iri } } }`, 5 + 40 + 2},
		{"groups", `{ entities(first: 1) { groups(first: 5) { count keys } } }`, 5 + 50 + 5*2},
		{"triples", `{ match(first: 1, pattern: {triples: [{s: "?a", p: "ex:a", o: "?b"}], optional: [{triples: [{s: "?b", p: "ex:b/ex:c", o: "?c"}, {s: "?b", p: "?p", o: "?d"}]}]}) { nodes { values } } }`, 5 + 3*20 + 20 + 2},
		{"a condition between variables", `{ match(first: 1, pattern: {triples: [{s: "?a", p: "ex:a", o: "?b"}], filter: {var: "a", neVar: "b"}}) { nodes { values } } }`, 5 + 20 + 20 + 2},
		{"what is around", entity + `neighborhood(depth: 3, budget: {maxStatements: 10}) { statements { predicate } } } }`, 2 + 3*20 + 10*2},
		{"what is around, unbounded", entity + `neighborhood { entities { iri } } } }`, 2 + 20 + 1000*2},
		{"ways", `{ shortestPaths(from: "ex:ada", to: "ex:bob", k: 2, maxDepth: 3) { entities { iri } } }`, 3*100 + 2*3*2},
		{"a budget of bytes", `{ entities(first: 1000, budget: {maxBytes: 500}) { nodes { iri out { nodes { predicate } } } } }`, 5 + 1 + 1 + 5 + 2 + 500},
		{"a budget of tokens", `query @budget(maxTokens: 200) { entities(first: 1000) { nodes { iri out { nodes { predicate } } } } }`, 5 + 1 + 1 + 5 + 2 + 600},
		{"a budget of statements", `query @budget(maxStatements: 10) { entities(first: 1000) { nodes { iri out { nodes { predicate } } } } }`, 10 * (5 + 1 + 1 + 5 + 2)},
		{"a budget of nothing in particular", `{ entities(first: 10, budget: {}) { nodes { iri } } }`, 5 + 10*2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limited := func(most int) string {
				b := newBench(t, graph.Options{Limits: limit.Limits{Complexity: most}})
				b.team()
				for _, err := range b.execute(tt.query, "").Errors {
					if err.Extensions["limit"] == "complexity" {
						return err.Message
					}
					if err.Extensions["code"] == "GRAPHQL_VALIDATION_FAILED" {
						t.Fatal(err)
					}
				}
				return ""
			}
			if got := limited(tt.cost); got != "" {
				t.Errorf("at the bound of %d: %s", tt.cost, got)
			}
			if tt.cost > 1 && limited(tt.cost-1) == "" {
				t.Errorf("at %d: taken, want it refused", tt.cost-1)
			}
		})
	}
}

// The table of docs/reference/graphql.md names every limit.
func TestLimitsAreWrittenDown(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/graphql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "\n## Limits\n")
	tables, _, _ = strings.Cut(tables, "\n## ")
	for _, tt := range slices.Concat(limitCases, patternLimitCases()) {
		if !strings.Contains(tables, "`"+tt.limit+"`") {
			t.Errorf("docs/reference/graphql.md has no limit %s", tt.limit)
		}
	}
}
