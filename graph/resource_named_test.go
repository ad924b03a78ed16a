package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/kg"
)

// An id that is not an IRI cannot be requested by its text, and the error has the IRI.
func TestIDsThatAreNoIRIs(t *testing.T) {
	b := newBench(t, graph.Options{})
	for _, id := range []string{"agent 7", "https://example.org/a b", strings.Repeat("é", 100)} {
		patch := fmt.Sprintf(`{"subject": {"id": %q}, "predicate": {"id": "ex:p"}, "object": {"value": 1}}`, id)
		b.data(applyPatches, `{"input": `+one(patch)+`}`, new(any))
		term, err := kg.ResourceFromID(id)
		if err != nil {
			t.Fatal(err)
		}
		var found struct{ Entity struct{ IRI, Value any } }
		b.data(fmt.Sprintf(`{ entity(iri: %q) { iri value(predicate: "ex:p") } }`, term.Value()), "", &found)
		if found.Entity.IRI != term.Value() || found.Entity.Value == nil {
			t.Errorf("%s: found %v", term, found)
		}
		hint := fmt.Sprintf("If it is the id of a subject or an object and not an IRI, use %q.", term.Value())
		for _, query := range []string{
			`{ entity(iri: %q) { iri } }`,
			`{ match(pattern: {triples: [{s: %q, p: "ex:p", o: "?o"}]}) { nodes { values } } }`,
		} {
			r := b.execute(fmt.Sprintf(query, id), "")
			if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != string(kg.CodeInvalid) || r.Errors[0].Extensions["hint"] != hint {
				t.Errorf("%s of %s: %v", query, id, r.Errors)
			}
		}
	}
	for _, text := range []string{"", strings.Repeat("x", 201)} {
		r := b.execute(fmt.Sprintf(`{ entity(iri: %q) { iri } }`, text), "")
		if len(r.Errors) != 1 || r.Errors[0].Extensions["hint"] != nil {
			t.Errorf("%q: %v", text, r.Errors)
		}
	}
}
