package graph_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/slowtest"
	"koine/kg"
)

// pagedFields are all the fields that are read page by page, with an element of each
// and lists inside of them. %s is for first, after and budget.
var pagedFields = map[string]string{
	"entities":            `entities(%s) { P nodes { iri label out(first: 2) { nodes { predicate } } follow(path: "ex:p|^ex:q", first: 2) { totalCount nodes { iri degree } } } }`,
	"some entities":       `entities(%s, where: {property: {predicate: "ex:p"}}) { P nodes { iri } }`,
	"entities in order":   `entities(%s, orderBy: [{by: DEGREE}, {property: "ex:p"}]) { P nodes { iri degree } }`,
	"past entities":       `entities(%s, view: {at: 2}, orderBy: {path: "ex:p/ex:q", direction: DESC}) { P nodes { iri degree values(path: "ex:p*") history(first: 2) { nodes { op } } } }`,
	"statements":          `statements(%s) { P nodes { id certainty object { ... on Entity { iri neighborhood(budget: {maxStatements: 1}) { depth truncated statements { predicate } } } ... on Literal { lexical } } } }`,
	"certain":             `statements(%s, view: {minCertainty: 0.4}) { P nodes { id certainty } }`,
	"statements in order": `statements(%s, orderBy: [{by: OBJECT, direction: DESC}, {by: GRAPH}]) { P nodes { id } }`,
	"match":               `match(%s, pattern: {triples: [{s: "?a", p: "ex:p", o: "?b"}], optional: {triples: {s: "?b", p: "ex:q", o: "?c"}}}) { P nodes { values entity(var: "a") { iri degree label } } }`,
	"match in order":      `match(%s, pattern: {triples: [{s: "?a", p: "?p", o: "?b"}, {s: "?a", p: "ex:q", o: "?c"}]}, distinct: true, select: ["b", "c"], orderBy: [{var: "b"}, {var: "c", direction: DESC}]) { P nodes { values } }`,
	"changes":             `changes(%s, until: 3) { P nodes { op statement { id } previous { certainty } } }`,
	"changes back":        `changes(%s, until: 3, order: DESC, where: {predicate: {ne: "ex:p"}}) { P nodes { op statement { id } previous { certainty } } }`,
	"diff":                `diff(%s, from: 1, to: 3) { P nodes { op statement { id } previous { certainty } } }`,
}

// For any cut of a list, by pages or by budgets, and with concurrent writes: its pages
// together equal one page, except for the lists inside.
func TestPagesOfEveryField(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{Rand: rand.New(rand.NewPCG(s, 5))}
	b := newBench(t, graph.Options{})
	write := func() {
		var patches []kg.Patch
		for range 25 {
			p := r.patch()
			p.Op = pick(r, kg.Add, kg.Add, kg.Add, kg.Replace)
			patches = append(patches, p)
		}
		b.update(patches...)
	}
	for range 3 {
		write()
	}
	for name, query := range pagedFields {
		for _, size := range []string{"first: 3", "first: 1000, budget: {maxBytes: 700}", "first: 7, budget: {maxTokens: 300}", "first: 1000, budget: {maxStatements: 3000, maxBytes: 1500}", "first: 2, budget: {maxStatements: 5000, maxTokens: 900}"} {
			t.Run(name+" "+size, func(t *testing.T) {
				whole, _, more := b.pageOf(t, query, "first: 1000")
				if more || len(whole) < 3 {
					t.Errorf("%d elements: the test says little", len(whole))
				}
				var got []string
				args := size
				for pages := 0; ; pages++ {
					nodes, end, more := b.pageOf(t, query, args)
					got = append(got, nodes...)
					if !more {
						break
					}
					if end == "" || pages > len(whole)+5 {
						t.Fatalf("no way on after %d pages, %d of %d elements", pages, len(got), len(whole))
					}
					args = size + fmt.Sprintf(", after: %q", end)
					if pages == 1 {
						write()
					}
				}
				if a, b := strings.Join(got, "\n"), strings.Join(whole, "\n"); a != b {
					t.Errorf("got\n%.2000s\nwant\n%.2000s", a, b)
				}
			})
		}
	}
}

// pageOf requests one page: its elements as JSON, and its cursor.
func (b *bench) pageOf(t *testing.T, query, args string) (nodes []string, end string, more bool) {
	t.Helper()
	query = strings.Replace(fmt.Sprintf("{ x: "+query+" }", args), " P ", " pageInfo { endCursor hasNextPage truncated } ", 1)
	var data struct {
		X struct {
			PageInfo struct {
				EndCursor              string
				HasNextPage, Truncated bool
			}
			Nodes []json.RawMessage
		}
	}
	r := b.execute(query, "")
	if len(r.Errors) > 0 {
		t.Fatalf("%s: %v", query, r.Errors)
	}
	if err := json.Unmarshal(r.Data, &data); err != nil {
		t.Fatal(err)
	}
	for _, n := range data.X.Nodes {
		var fields map[string]any
		if err := json.Unmarshal(n, &fields); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(fields, func(_ string, v any) bool { // a list inside, which a budget may have cut
			list, ok := v.(map[string]any)
			return ok && list["nodes"] != nil
		})
		nodes = append(nodes, canonical(fields, true))
	}
	if data.X.PageInfo.Truncated && !data.X.PageInfo.HasNextPage {
		t.Errorf("%s: truncated, and nothing behind it", query)
	}
	return nodes, data.X.PageInfo.EndCursor, data.X.PageInfo.HasNextPage
}

// A cursor is good for the field that gave it, and for no other.
func TestCursorsOfOtherFields(t *testing.T) {
	b := newBench(t, graph.Options{})
	r := &random{Rand: rand.New(rand.NewPCG(1, 6))}
	var patches []kg.Patch
	for range 60 {
		patches = append(patches, r.patch())
	}
	b.update(patches...)
	b.update(patches[:30]...)
	b.update(set("p", 1), set("q", 2), set("r", 3))
	for from, query := range pagedFields {
		_, end, _ := b.pageOf(t, query, "first: 1")
		if end == "" {
			t.Errorf("%s gives no cursor", from)
		}
		for to, query := range pagedFields {
			log := strings.HasPrefix(from, "changes") && strings.HasPrefix(to, "changes") // with positions as cursors
			result := b.execute(strings.Replace(fmt.Sprintf("{ x: "+query+" }", fmt.Sprintf("first: 1, after: %q", end)), " P ", " ", 1), "")
			if refused := len(result.Errors) > 0; refused == (from == to || log) {
				t.Errorf("from %s to %s: %v", from, to, result.Errors)
			} else if code := ""; refused {
				code, _ = result.Errors[0].Extensions["code"].(string)
				if code != string(kg.CodeCursorForeign) && code != string(kg.CodePositionGone) {
					t.Errorf("from %s to %s: %v", from, to, result.Errors)
				}
			}
		}
	}
}
