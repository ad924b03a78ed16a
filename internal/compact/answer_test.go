package compact_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/internal/compact"
)

func TestWriteAnswer(t *testing.T) {
	const data = `{"stats":{"statements":7},"entities":{"totalCount":12,"nodes":[
		{"id":"e1","iri":"https://koine.example/demo/a","label":"A","types":["https://koine.example/demo/T"],"status":"open","out":{"nodes":[
			{"predicate":"https://koine.example/demo/p","object":{"iri":"https://koine.example/demo/b","label":"B","out":{"nodes":[{"predicate":"https://koine.example/demo/q","object":{"value":1.5,"datatype":"http://www.w3.org/2001/XMLSchema#double"}}]}},"certainty":0.4},
			{"predicate":"https://koine.example/demo/name","object":{"value":"Gift","language":"de"}}]},
		 "in":{"nodes":[{"subject":{"iri":"https://koine.example/demo/c"},"predicate":"https://koine.example/demo/knows"}]}}],
		"pageInfo":{"hasNextPage":true,"endCursor":"xyz"}},
		"contradictions":{"nodes":[]},
		"why":{"statement":{"subject":{"id":"https://koine.example/demo/s"},"predicate":{"id":"https://koine.example/demo/p"},"object":{"id":null,"value":"x","type":null},"graph":"urn:g"}}}`
	const want = `# stats.statements: 7
# entities has more: continue with after: "xyz"
# entities.totalCount: 12
# lab:a.status: "open"
# contradictions.nodes: none
@prefix lab: <https://koine.example/demo/>
lab:a (A)
  a lab:T
  lab:p lab:b (B) [0.4]
  lab:name "Gift"@de
lab:b (B)
  lab:q 1.5
lab:c
  lab:knows lab:a
@graph <urn:g>
lab:s
  lab:p "x"
`
	w, err := compact.WriteAnswer([]byte(data), compact.Options{Prefixes: lab(t)})
	if err != nil || w.Text != want || w.Facts != 8 {
		t.Errorf("%d facts, %v:\n%s", w.Facts, err, w.Text)
	}
	read, err := compact.Read(w.Text, lab(t))
	if err != nil || len(read) != w.Facts {
		t.Errorf("%d facts are read, %v", len(read), err)
	}
	if w, err := compact.WriteAnswer([]byte(`{"entity":null}`), compact.Options{Prefixes: lab(t)}); err != nil || w.Text != "# entity: null\n" {
		t.Errorf("an empty answer: %q, %v", w.Text, err)
	}
	// A budget bounds facts and remarks.
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, `,"v%d":%d,"e%d":{"iri":"urn:e:%d","label":"Entity %d"}`, i, i, i, i, i)
	}
	more := func(left int) string { return fmt.Sprintf("%d more facts", left) }
	for _, most := range []int{50, 200, 1000} {
		w, err := compact.WriteAnswer([]byte(`{"n":1`+many.String()+`}`), compact.Options{Prefixes: lab(t), MaxTokens: most, More: more})
		if n := compact.Tokens(w.Text); err != nil || n > most || w.Facts < most/50 || !strings.Contains(w.Text, " more values;") || !strings.Contains(w.Text, more(300-w.Facts)) {
			t.Errorf("%d tokens of at most %d, %d facts, %v:\n%s", n, most, w.Facts, err, w.Text)
		}
	}
}
