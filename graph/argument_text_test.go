package graph_test

import (
	"testing"

	"koine/graph"
)

// Fields with one response name are merged if their arguments are equal, those in
// lists and objects as well.
func TestFieldsWithDifferentArguments(t *testing.T) {
	b := newBench(t, graph.Options{})
	for _, row := range []struct {
		query string
		valid bool
	}{
		{`{ a: statements(where: {subject: {eq: "ex:ada"}}) { totalCount } a: statements(where: {subject: {eq: "ex:bob"}}) { nodes { id } } }`, false},
		{`{ a: statements(where: {subject: {eq: "ex:ada"}}, first: 1) { totalCount } a: statements(first: 1, where: {subject: {eq: "ex:ada"}}) { nodes { id } } }`, true},
		{`{ entities(where: {iri: {in: ["ex:a", "ex:b"]}}) { totalCount } ...F } fragment F on Query { entities(where: {iri: {in: ["ex:b", "ex:a"]}}) { totalCount } }`, false},
		{`{ statements(where: {subject: {eq: "ex:a"}, object: {eq: 1}}) { totalCount } ... on Query { statements(where: {object: {eq: 1}, subject: {eq: "ex:a"}}) { totalCount } } }`, true},
		{`query ($v: Int) { statements(where: {object: {eq: 1}}) { totalCount } statements(where: {object: {eq: "1"}}) { totalCount } revision @skip(if: false) entities(first: $v) { totalCount } }`, false},
	} {
		if r := b.execute(row.query, ""); (len(r.Errors) == 0) != row.valid {
			t.Errorf("%s: got %v, want valid: %v", row.query, r.Errors, row.valid)
		}
	}
}
