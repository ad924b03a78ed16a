package graph_test

import (
	"testing"

	"koine/graph"
	"koine/kg"
)

// A property with labels is used as soon as there is one, regardless of earlier failed
// lookups, and not at revisions before it.
func TestLabelsOfAPropertyThatComesLater(t *testing.T) {
	b := newBench(t, graph.Options{LabelPredicates: []string{"https://example.org/title", "https://example.org/name"}})
	b.update(add(iri("s"), iri("p"), kg.Integer(1)))
	label := func(view, want string) {
		t.Helper()
		var data struct{ Entity struct{ Label string } }
		b.data(`{ entity(iri: "ex:s"`+view+`) { label } }`, "", &data)
		if data.Entity.Label != want {
			t.Errorf("label%s: got %q, want %q", view, data.Entity.Label, want)
		}
	}
	label("", "")
	b.update(add(iri("s"), iri("name"), kg.String("a name")))
	label("", "a name")
	label("", "a name")
	b.update(add(iri("s"), iri("title"), kg.String("a title")))
	label(", view: {at: 1}", "")
	label(", view: {at: 2}", "a name")
	label("", "a title")
}
