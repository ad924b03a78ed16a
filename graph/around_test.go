package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"koine/graph"
	"koine/kg"
)

// hub is an engine over a wheel: a hub with spokes, each with a rim.
func hub(t *testing.T) *bench {
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for i := range 40 {
		patches = append(patches,
			add(iri("hub"), iri("p"), iri(fmt.Sprintf("spoke%02d", i))),
			add(iri(fmt.Sprintf("spoke%02d", i)), iri("q"), iri(fmt.Sprintf("rim%02d", i))))
	}
	b.update(patches...)
	return b
}

// A neighborhood has no more text than its budget, and uses it: one statement more would
// not fit. It has both ends of each statement.
func TestNeighborhoodFitsItsBudget(t *testing.T) {
	b := hub(t)
	ask := func(budget string) (n int, text string, truncated bool) {
		var got struct {
			Entity struct{ Neighborhood json.RawMessage }
		}
		b.data(`{ entity(iri: "ex:hub") { neighborhood(depth: 2`+budget+`) { depth entities { iri } statements { subject { iri } object { ... on Entity { iri } } } truncated } } }`, "", &got)
		var in struct {
			Depth      int
			Truncated  bool
			Entities   []struct{ IRI string }
			Statements []struct{ Subject, Object struct{ IRI string } }
		}
		if err := json.Unmarshal(got.Entity.Neighborhood, &in); err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{ex + "hub": true}
		for _, e := range in.Entities {
			there[e.IRI] = true
		}
		for _, s := range in.Statements {
			if !there[s.Subject.IRI] || !there[s.Object.IRI] {
				t.Errorf("%s: %v is there without its ends", budget, s)
			}
		}
		depth := 0
		if len(in.Statements) > 40 {
			depth = 2
		} else if len(in.Statements) > 0 {
			depth = 1
		}
		if len(in.Entities) != len(in.Statements) || in.Depth != depth {
			t.Errorf("%s: %d entities, %d statements, depth %d", budget, len(in.Entities), len(in.Statements), in.Depth)
		}
		return len(in.Statements), string(got.Entity.Neighborhood), in.Truncated
	}
	whole, text, cut := ask("")
	if whole != 80 || cut {
		t.Fatalf("the whole: %d statements, cut %v", whole, cut)
	}
	if n, _, cut := ask(fmt.Sprintf(", budget: {maxBytes: %d}", len(text))); n != 80 || cut {
		t.Errorf("at its size: %d statements, cut %v", n, cut)
	}
	if n, _, cut := ask(fmt.Sprintf(", budget: {maxBytes: %d}", len(text)-1)); n != 79 || !cut {
		t.Errorf("below its size: %d statements, cut %v", n, cut)
	}
	for _, bytes := range []int{100, 1000, 5000} {
		n, text, cut := ask(fmt.Sprintf(", budget: {maxBytes: %d}", bytes))
		if len(text) > bytes || bytes-len(text) > 300 && n > 0 || !cut {
			t.Errorf("%d bytes: got %d with %d statements, cut %v", bytes, len(text), n, cut)
		}
	}
	if n, text, _ := ask(", budget: {maxTokens: 400}"); len(text) > 1200 || n == 0 {
		t.Errorf("400 tokens: got %d bytes, %d statements", len(text), n)
	}
	if n, _, cut := ask(", budget: {maxStatements: 41}"); n != 41 || !cut {
		t.Errorf("41 statements: got %d, cut %v", n, cut)
	}
}

// Lists inside of a neighborhood and of a way are cut by the operation's budget
// like others, and the cuts say where they are.
func TestBudgetInsideOfWays(t *testing.T) {
	b := hub(t)
	for _, query := range []string{
		`query @budget(maxBytes: 1000) { entity(iri: "ex:hub") { neighborhood(budget: {maxStatements: 3}) { entities { iri in(first: 9) { nodes { id } } out(first: 9) { nodes { id subject { out { nodes { id } } } } } } } } }`,
		`query @budget(maxBytes: 1500) { shortestPaths(from: "ex:rim00", to: "ex:rim01") { entities { iri out(first: 40) { nodes { id } } } } }`,
	} {
		r := b.execute(query, "")
		if len(r.Errors) > 0 {
			t.Fatal(r.Errors)
		}
		if len(r.Data) > 1500 || len(r.Cuts) == 0 {
			t.Errorf("got %d bytes and the cuts %v", len(r.Data), r.Cuts)
		}
		var data any
		if err := json.Unmarshal(r.Data, &data); err != nil {
			t.Fatal(err)
		}
		for _, cut := range r.Cuts {
			at := data
			for _, part := range strings.FieldsFunc(cut.Path.String(), func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
				switch v := at.(type) {
				case map[string]any:
					at = v[part]
				case []any:
					var k int
					if _, err := fmt.Sscan(part, &k); err != nil || k >= len(v) {
						t.Fatalf("%v is nowhere in the answer", cut.Path)
					}
					at = v[k]
				}
			}
			if _, ok := at.(map[string]any); !ok {
				t.Errorf("%v is %v", cut.Path, at)
			}
		}
	}
}
