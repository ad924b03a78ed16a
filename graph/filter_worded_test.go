package graph_test

import (
	"fmt"
	"testing"

	"koine/graph"
	"koine/kg"
)

// A text that is compared with the objects of a predicate is looked up.
func TestStatementsByText(t *testing.T) {
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for i := range 200 {
		patches = append(patches, add(iri(fmt.Sprint("s", i)), iri("title"), kg.String(fmt.Sprint("title ", i))))
	}
	patches = append(patches, add(iri("s0"), iri("title"), kg.LangString("twice", "en")), add(iri("s1"), iri("title"), kg.String("twice")))
	b.update(patches...)
	for _, row := range []struct {
		text        string
		found, most int64
	}{{"title 7", 1, 20}, {"title 999", 0, 20}, {"twice", 2, 1000}} {
		r := b.execute(`{ statements(where: {predicate: {eq: "ex:title"}, object: {eq: "`+row.text+`"}}) { totalCount } }`, "")
		if want := fmt.Sprintf(`{"statements":{"totalCount":%d}}`, row.found); string(r.Data) != want || r.StatementsRead > row.most {
			t.Errorf("%s: got %s, reading %d", row.text, r.Data, r.StatementsRead)
		}
	}
}
