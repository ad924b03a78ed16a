package graph_test

import (
	"strings"
	"testing"

	"koine/graph"
	"koine/kg"
)

// panicky is an access policy that panics at one graph.
type panicky struct{}

func (panicky) Allowed(p kg.Principal, graph kg.Term, _ kg.Right) bool {
	if graph == iri("panic") && p.ID == reader.ID {
		panic("a fault")
	}
	return true
}

// A panic while hints are looked for costs the hints, not the answer.
func TestHintsPanic(t *testing.T) {
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.Access = panicky{} })
	b.update(add(iri("s"), iri("p"), kg.Integer(1)), in(iri("panic"), add(iri("t"), iri("p"), kg.Integer(1))))
	r := b.execute(`{ entity(iri: "ex:s") { value(predicate: "ex:p") } }`, "")
	if len(r.Errors) > 0 || string(r.Data) != `{"entity":{"value":1}}` || !strings.Contains(b.log.String(), "a fault") {
		t.Errorf("got %s, %v\n%s", r.Data, r.Errors, b.log)
	}
}
