package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/operation"
	"koine/internal/slowtest"
	"koine/kg"
)

// matchOf returns the rows of a match, sorted, each as JSON without the namespace.
func (b *bench) matchOf(t *testing.T, arguments string) []string {
	b.t.Helper()
	var a matchAnswer
	b.data(`{ match(first: 1000, `+arguments+`) { nodes { values } } }`, "", &a)
	rows := a.rows(t)
	slices.Sort(rows)
	return rows
}

func TestMatchWithText(t *testing.T) {
	b := newSearching(t)
	for _, row := range []struct {
		name, arguments string
		want            []string
	}{
		{"a join", `pattern: {text: {var: "lake", query: "warm"}, triples: [{s: "?river", p: "ex:from", o: "?lake"}]}`, []string{`["po","garda"]`}},
		{"alone", `pattern: {text: {var: "x", query: "waters"}}`, []string{`["como"]`, `["garda"]`, `["po"]`}},
		{"unwanted", `pattern: {text: {var: "x", query: "water -lake"}}`, []string{`["po"]`}},
		{"misspelt", `pattern: {text: {var: "x", query: "rivr"}}`, []string{`["po"]`}},
		{"of a property", `pattern: {text: {var: "x", query: "water", predicates: ["ex:note"]}}`, []string{`["como"]`}},
		{"two", `pattern: {text: [{var: "x", query: "lake"}, {var: "x", query: "cold"}]}`, []string{`["como"]`}},
		{"two variables", `pattern: {text: [{var: "x", query: "river"}, {var: "y", query: "warm"}], triples: [{s: "?x", p: "ex:from", o: "?y"}]}`, []string{`["po","garda"]`}},
		{"optional", `pattern: {triples: [{s: "?x", p: "rdf:type", o: "?class"}], optional: {text: {var: "x", query: "deep", score: "s"}}}, select: ["x"]`, []string{`["como"]`, `["garda"]`, `["po"]`}},
		{"in an alternative", `pattern: {union: [{text: {var: "x", query: "warm"}}, {triples: [{s: "?x", p: "rdf:type", o: "ex:River"}]}]}`, []string{`["garda"]`, `["po"]`}},
		{"none", `pattern: {triples: [{s: "?x", p: "rdf:type", o: "?class"}], notExists: {text: {var: "x", query: "lake"}}}`, []string{`["po","River"]`}},
		{"a condition", `pattern: {text: {var: "x", query: "water", score: "s"}, filter: [{var: "x", value: {iri: {ne: "ex:po"}}}, {var: "s", value: {gt: 0}}]}, select: ["x"]`, []string{`["como"]`, `["garda"]`}},
	} {
		if got := b.matchOf(t, row.arguments); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
	if got := errorsOf(b.execute(`{ search(query: "water", first: 1000) { nodes { score } } }`, "")); got != "[]" {
		t.Errorf("the largest page of a search: got %s", got)
	}
	// Scores are those of a search.
	var found struct {
		Search struct{ Nodes []struct{ Score float64 } }
		Match  struct{ Nodes []struct{ Values []float64 } }
	}
	b.data(`{ search(query: "lake water") { nodes { score } } match(pattern: {text: {var: "x", query: "lake water", score: "s"}}, select: ["s"], orderBy: [{var: "s", direction: DESC}]) { nodes { values } } }`, "", &found)
	for i, n := range found.Search.Nodes {
		if m := found.Match.Nodes; len(m) != len(found.Search.Nodes) || m[i].Values[0] != n.Score {
			t.Fatalf("got %+v", found)
		}
	}
	// A filter of search has texts too.
	if got, want := b.ask(`{ search(query: "water", filter: {match: {var: "x", pattern: {text: {var: "x", query: "river"}}}}) { nodes { entity { iri } } } }`), `{"search":{"nodes":[{"entity":{"iri":"ex:po"}}]}}`; strings.ReplaceAll(got, ex, "ex:") != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for query, want := range map[string]string{
		`{ match(pattern: {text: {var: "x", query: "-lake"}}) { nodes { values } } }`:                                `query \"-lake\" has no word to search for`,
		`{ match(pattern: {text: {var: "?x", query: "lake"}}) { nodes { values } } }`:                                `\"?x\" is not a valid variable name`,
		`{ match(pattern: {text: {var: "x", score: "x", query: "lake"}}) { nodes { values } } }`:                     `one variable cannot have both`,
		`{ match(pattern: {text: {var: "x", query: "lake"}}, select: ["y"]) { nodes { values } } }`:                  `no variable \"y\"`,
		`{ match(pattern: {text: {var: "x", query: "` + strings.Repeat("x", 1025) + `"}}) { nodes { values } } }`:    `at most 1024 are allowed`,
		`{ match(pattern: {text: [` + strings.Repeat(`{var: "x", query: "lake"},`, 5) + `]}) { nodes { values } } }`: `at most 4 texts`,
	} {
		if got := errorsOf(b.execute(query, "")); !strings.Contains(got, want) {
			t.Errorf("%.80s: got %s, want %s", query, got, want)
		}
	}
	off := newBench(t, graph.Options{})
	if got := errorsOf(off.execute(`{ match(pattern: {text: {var: "x", query: "lake"}}) { nodes { values } } }`, "")); !strings.Contains(got, "search is off") {
		t.Errorf("without search: got %s", got)
	}
	_, err := b.engine.Subscribe(t.Context(), b.request(`subscription { matchChanged(pattern: {text: {var: "x", query: "lake"}}) { __typename } }`, ""))
	if err == nil || !strings.Contains(err.Error(), "searchChanged follows a search") {
		t.Errorf("followed: got %v", err)
	}
}

// A match with texts has the rows of one without them that search finds, in any order of its parts,
// page by page, while texts come and go. What a caller may not read changes neither the rows nor
// the plan.
func TestMatchWithTextIsJoined(t *testing.T) {
	slowtest.WithoutRace(t)
	random := rand.New(rand.NewPCG(11, 4))
	b, own := newSearching(t), newSearching(t)
	vocabulary := strings.Fields("alpine lakes lake river rivers water deep cold warm island")
	queries := []string{"lake", "deep water", "riv* -cold", `"warm lake"`, "islnd"}
	for n := range 30 { // ids, by which the planner samples, are the same in both
		for _, b := range []*bench{b, own} {
			b.update(add(iri(fmt.Sprintf("n%d", n)), iri("p0"), iri(fmt.Sprintf("n%d", n*7%30))), add(iri(fmt.Sprintf("n%d", n)), iri("p1"), iri(fmt.Sprintf("n%d", n*11%30))))
		}
	}
	node := func() kg.Term { return iri(fmt.Sprintf("n%d", random.IntN(30))) }
	change := func(n int) {
		for range n {
			var list []string
			for range 1 + random.IntN(5) {
				list = append(list, vocabulary[random.IntN(len(vocabulary))])
			}
			p := add(node(), iri(fmt.Sprint("p", random.IntN(2))), node())
			if random.IntN(3) > 0 {
				p.Quad.Object = kg.String(strings.Join(list, " "))
			}
			if random.IntN(3) == 0 {
				p = in(iri("private/ann"), p)
			}
			if random.IntN(5) == 0 {
				p.Op = kg.Replace
			}
			b.update(p)
			if p.Quad.Graph != iri("private/ann") {
				own.update(p)
			}
		}
	}
	hits := func(query string) map[string]bool {
		var found struct {
			Search struct {
				Nodes []struct{ Entity struct{ Iri string } }
			}
		}
		b.data(fmt.Sprintf(`{ search(query: %q, first: 999) { nodes { entity { iri } } } }`, query), "", &found)
		set := map[string]bool{}
		for _, n := range found.Search.Nodes {
			set[strings.TrimPrefix(strings.TrimPrefix(n.Entity.Iri, ex), "ex:")] = true
		}
		return set
	}
	rows, texts := 0, map[string]int{}
	for range slowtest.Size(12, 6) {
		change(25)
		for _, query := range queries {
			text := fmt.Sprintf(`text: {var: "a", query: %q}`, query)
			for _, rest := range []string{
				`triples: [{s: "?a", p: "ex:p0", o: "?b"}]`,
				`triples: [{s: "?b", p: "ex:p0", o: "?a"}, {s: "?a", p: "ex:p1", o: "?c"}]`,
				`triples: [{s: "?a", p: "ex:p0", o: "?b"}], optional: [{triples: [{s: "?b", p: "ex:p1", o: "?c"}]}]`,
				`triples: [{s: "ex:n3", p: "ex:p0|ex:p1", o: "?a"}]`,
				`triples: [{s: "?b", p: "ex:p0+", o: "?a"}]`,
			} {
				set := hits(query)
				var want []string
				for _, row := range b.matchOf(t, `distinct: true, select: ["a"], pattern: {`+rest+`}`) {
					if name := strings.Trim(row, `[]"`); set[name] {
						want = append(want, row)
					}
				}
				rows += len(want)
				for _, pattern := range []string{text + ", " + rest, rest + ", " + text} {
					if got := b.matchOf(t, `distinct: true, select: ["a"], pattern: {`+pattern+`}`); !slices.Equal(got, want) {
						t.Fatalf("%s: got %v, want %v", pattern, got, want)
					}
				}
				explain := `{ match(first: 1000, explain: true, pattern: {` + text + ", " + rest + `}) { totalCount explanation { steps { operation pattern estimate rows statementsRead } statementsRead } } }`
				if got, want := b.ask(explain), own.ask(explain); got != want && !strings.Contains(rest, "+") { // a path reads in the order of ids
					t.Fatalf("%s: the plan is\n%s\nand without the texts of others\n%s", query, got, want)
				} else {
					for _, kind := range []string{`"text"`, `"text test"`} {
						texts[kind] += strings.Count(got, `"operation":`+kind)
					}
				}
				if random.IntN(3) == 0 && !strings.Contains(rest, "+") {
					b.pages(t, text+", "+rest, func() { change(1) })
				}
			}
		}
	}
	t.Logf("%d rows; steps %v", rows, texts)
	if rows < 500 || len(texts) < 2 || texts[`"text"`] < 10 || texts[`"text test"`] < 10 {
		t.Error("too little was compared")
	}
}

// errorsOf returns the errors of a result as JSON.
func errorsOf(r operation.Result) string {
	if len(r.Errors) == 0 {
		return "[]"
	}
	text, err := json.Marshal(r.Errors)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// pages reads a match page by page, with changes between the pages, and compares it with the match
// of the first page's revision.
func (b *bench) pages(t *testing.T, pattern string, change func()) {
	t.Helper()
	all := b.matchOf(t, `pattern: {`+pattern+`}`)
	var got []string
	after := ""
	for {
		result := b.execute(`{ match(first: 7`+after+`, pattern: {`+pattern+`}) { nodes { values } pageInfo { hasNextPage endCursor } } }`, "")
		if errs := errorsOf(result); errs != "[]" {
			if strings.Contains(errs, "CURSOR_GONE") && strings.Contains(pattern, "islnd") {
				return // another word is spelt like it
			}
			t.Fatalf("%s: %s", pattern, errs)
		}
		var a matchAnswer
		if err := json.Unmarshal(result.Data, &a); err != nil {
			t.Fatal(err)
		}
		got = append(got, a.rows(t)...)
		if !a.Match.PageInfo.HasNextPage {
			break
		}
		after = fmt.Sprintf(", after: %q", *a.Match.PageInfo.EndCursor)
		change()
	}
	if slices.Sort(got); !slices.Equal(got, all) {
		t.Fatalf("%s: the pages have\n%v\nwant\n%v", pattern, got, all)
	}
}
