package rdfdata_test

import (
	"fmt"
	"strings"
	"testing"

	"koine/internal/dialect/rdfdata"
	"koine/kg"
)

// While a graph is replaced as a whole, requests that would change it are told so, by its
// name and with when to try again; those for other graphs go on, and so do readers.
func TestGraphThatIsBeingReplaced(t *testing.T) {
	f := start(t, rdfdata.Options{})
	const large, graph = kg.MaxPatches + 1, "?graph=urn:g"
	if a := f.ask("PUT", graph, numbered(0, large), "Content-Type: application/n-triples"); a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	tried := false
	_, err := f.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, kg.IRI("urn:g"), func(yield func(kg.Quad, error) bool) {
		for i := range large + 10 {
			if i == large+5 {
				tried = true
				for what, a := range map[string]answer{
					"PUT":         f.ask("PUT", graph, strings.NewReader("<urn:s> <urn:p> 1 ."), "Content-Type: text/turtle"),
					"a large PUT": f.ask("PUT", graph, numbered(0, large), "Content-Type: application/n-triples"),
					"POST":        f.post(graph, "text/turtle", "<urn:s> <urn:p> 1 ."),
				} {
					p := a.problem(t)
					if a.status != 429 || a.header.Get("Retry-After") != "2" || !strings.HasPrefix(p.Message, "the graph <urn:g> is being replaced as a whole") {
						t.Errorf("%s: %d, Retry-After %q, %+v", what, a.status, a.header.Get("Retry-After"), p)
					}
				}
				if got := strings.Count(string(f.get(graph).body), "\n"); got != large {
					t.Errorf("a reader sees %d statements, want %d", got, large)
				}
				if a := f.ask("PUT", "?graph=urn:other", numbered(0, large), "Content-Type: application/n-triples"); a.status != 201 {
					t.Errorf("another graph: %d %s", a.status, a.body)
				}
			}
			if !yield(kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:", i)), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: kg.IRI("urn:g")}, nil) {
				return
			}
		}
	}, kg.ReplaceOptions{})
	if err != nil || !tried {
		t.Fatal(err, tried)
	}
	if a := f.ask("DELETE", graph, nil); a.status != 200 {
		t.Errorf("behind it: %d %s", a.status, a.body)
	}
}
