package graph_test

import (
	"strings"
	"testing"

	"koine/graph"
)

// The lines of a plan for the operator have a bound, however long the names in the pattern are.
func TestLinesOfPlansAreBounded(t *testing.T) {
	var lines []string
	b := newBench(t, graph.Options{})
	deps := graph.Deps{Store: b.store, Finished: func(o graph.FinishedOperation) { lines = o.Plan() }}
	b.engine = graph.NewEngine(deps, graph.Options{})
	long := "urn:" + strings.Repeat("p", 1_900)
	result := b.execute(`{ match(pattern: {triples: [{s: "?`+strings.Repeat("v", 100)+`", p: "`+long+`", o: "?o"}, {s: "?o", p: "!(<`+long+`>|<`+long+`x>)", o: "?z"}]}) { nodes { values } } }`, "")
	if len(lines) == 0 || len(result.Errors) > 0 {
		t.Fatalf("%d lines, %.300v", len(lines), result.Errors)
	}
	for _, line := range lines {
		if len(line) > 1000 {
			t.Errorf("a line has %d bytes: %.100s…", len(line), line)
		}
	}
}
