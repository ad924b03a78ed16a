package graph_test

import (
	"testing"

	"koine/graph"
)

// A misspelt name gets the nearest one, wherever the mistake is found; one without a
// similar name gets none.
func TestNearestNames(t *testing.T) {
	b := newBench(t, graph.Options{})
	for name, tt := range map[string]struct{ query, variables, hint string }{
		"variable":         {`query ($first: Int) { entities(first: $firs) { totalCount } }`, "", "Did you mean $first?"},
		"fragment":         {`{ entities { ...Page } } fragment Pages on EntityConnection { totalCount }`, "", "Did you mean Pages?"},
		"type":             {`query ($w: EntityFiltr) { entities(where: $w) { totalCount } }`, "", "Did you mean EntityFilter?"},
		"member":           {`query ($w: EntityFilter) { entities(where: $w) { totalCount } }`, `{"w": {"labl": {"eq": "a"}}}`, "Did you mean label?"},
		"member in a list": {`query ($w: EntityFilter) { entities(where: $w) { totalCount } }`, `{"w": {"property": [{"predicate": "ex:a", "contain": "a"}]}}`, "Did you mean contains?"},
		"nothing like it": {`query ($w: EntityFilter) { entities(where: $w) { totalCount } }`, `{"w": {"zzzzzzzz": 1}}`,
			`A property of the data is written property: {predicate: "prefix:zzzzzzzz", eq: …}. The members of EntityFilter are iri, type, label, property, path, and, or, not.`},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.execute(tt.query, tt.variables)
			if len(r.Errors) == 0 {
				t.Fatal("no error")
			}
			hint := ""
			for _, err := range r.Errors {
				if h, ok := err.Extensions["hint"].(string); ok {
					hint = h
				}
			}
			if hint != tt.hint {
				t.Errorf("got the hint %q, want %q (%v)", hint, tt.hint, r.Errors)
			}
		})
	}
}
