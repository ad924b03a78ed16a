package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/graph"
)

// The pages of a path between two variables give each row once, though commits between them change
// the end from which the path would start.
func TestPagesOfAPathAcrossCommits(t *testing.T) {
	b := newBench(t, graph.Options{})
	edges := func(predicate string, from, to int) {
		for n := from; n < to; n++ {
			b.update(add(iri(fmt.Sprint("n", n%7)), iri(predicate), iri(fmt.Sprint("n", (n*3+n/7)%7))))
		}
	}
	edges("a", 0, 10)
	edges("b", 0, 30)
	const query = `query($after: Cursor, $first: Int!) { match(pattern: {triples: [{s: "?x", p: "(ex:a/ex:b)+", o: "?y"}]}, first: $first, after: $after) { nodes { values } pageInfo { endCursor hasNextPage } } }`
	type rows struct {
		Match struct {
			Nodes    []struct{ Values []string }
			PageInfo struct {
				EndCursor   string
				HasNextPage bool
			}
		}
	}
	var whole rows
	b.data(query, `{"first": 1000}`, &whole)
	var want, got []string
	for _, n := range whole.Match.Nodes {
		want = append(want, strings.Join(n.Values, " "))
	}
	if len(want) < 20 {
		t.Fatalf("%d rows are too few", len(want))
	}
	var page rows
	for variables, commits := `{"first": 5}`, 0; ; commits++ {
		page = rows{}
		b.data(query, variables, &page)
		for _, n := range page.Match.Nodes {
			got = append(got, strings.Join(n.Values, " "))
		}
		if !page.Match.PageInfo.HasNextPage {
			break
		}
		variables = fmt.Sprintf(`{"first": 5, "after": %q}`, page.Match.PageInfo.EndCursor)
		if commits == 0 {
			for n := range 200 { // of other nodes: the path starts from its other end now
				b.update(add(iri(fmt.Sprint("m", n)), iri("b"), iri(fmt.Sprint("o", n))))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the pages have\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
