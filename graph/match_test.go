package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/kg"
)

// matchAnswer is the selection of the tests of a match.
type matchAnswer struct {
	Match struct {
		Columns    []string
		Nodes      []struct{ Values []any }
		TotalCount int
		PageInfo   struct {
			HasNextPage, Truncated bool
			EndCursor              *string
		}
		Edges []struct {
			Cursor string
			Node   struct{ Values []any }
		}
	}
}

// rows are the values of the nodes, each row as JSON without the namespace.
func (a *matchAnswer) rows(t *testing.T) (rows []string) {
	t.Helper()
	for _, n := range a.Match.Nodes {
		text, err := json.Marshal(n.Values)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, strings.ReplaceAll(string(text), ex, ""))
	}
	return rows
}

// TestMatch proves the meaning of patterns in the language of the schema.
func TestMatch(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	b.update(add(iri("dora"), iri("age"), kg.Typed("36.0", kg.XSDDecimal)), add(iri("dora"), iri("since"), kg.Typed("1815-12-10", kg.XSDDate)))
	for _, row := range []struct {
		name, args string
		want       []string // in any order
	}{
		{"a join", `pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}, {s: "?b", p: "ex:age", o: "?n"}]}`,
			[]string{`["ada","bob",36.5]`, `["ada","cy",7]`}},
		{"an IRI in full as predicate", `pattern: {triples: [{s: "ex:ada", p: "https://example.org/knows", o: "?b"}]}`, []string{`["bob"]`, `["cy"]`}},
		{"a number by meaning", `pattern: {triples: [{s: "?a", p: "ex:age", value: 36}]}`, []string{`["ada"]`, `["dora"]`}},
		{"of a datatype", `pattern: {triples: [{s: "?a", p: "ex:age", value: 36, datatype: "http://www.w3.org/2001/XMLSchema#decimal"}]}`, []string{`["dora"]`}},
		{"a text in any language", `pattern: {triples: [{s: "?a", p: "?p", value: "Rome"}]}`, []string{`["rome","name"]`}},
		{"a text in one language", `pattern: {triples: [{s: "?a", p: "?p", value: "Rome", language: "en-GB"}]}`, []string{`["rome","name"]`}},
		{"a text in another language", `pattern: {triples: [{s: "?a", p: "?p", value: "Rome", language: "it"}]}`, nil},
		{"a date as a text", `pattern: {triples: [{s: "?a", p: "ex:born", value: "1815-12-10"}]}`, []string{`["ada"]`}},
		{"a path", `pattern: {triples: [{s: "?a", p: "ex:knows/ex:age", o: "?n"}]}`, []string{`["ada",36.5]`, `["ada",7]`}},
		{"against a predicate", `pattern: {triples: [{s: "ex:cy", p: "^ex:knows", o: "?a"}]}`, []string{`["ada"]`}},
		{"optional", `pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}], optional: [{triples: [{s: "?b", p: "ex:born", o: "?d"}]}]}`,
			[]string{`["ada","bob","1963-05-01T12:00:00Z"]`, `["ada","cy",null]`, `["bob","_:b1",null]`}},
		{"union", `pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}], union: [{triples: [{s: "?a", p: "ex:mood", value: "glad"}]}, {triples: [{s: "?a", p: "ex:likes", value: true}]}]}`,
			[]string{`["ada",36]`, `["bob",36.5]`}},
		{"notExists", `pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}], notExists: [{triples: [{s: "?x", p: "ex:knows", o: "?a"}]}]}`,
			[]string{`["ada",36]`, `["dora",36]`}},
		{"a condition", `pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}], filter: [{var: "n", value: {gt: 10}, neVar: "a"}]}`,
			[]string{`["ada",36]`, `["bob",36.5]`, `["dora",36]`}},
		{"by meaning", `pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}, {s: "?b", p: "ex:age", o: "?m"}], filter: [{var: "n", eqVar: "m"}, {var: "a", neVar: "b"}]}`,
			[]string{`["ada",36,"dora",36]`, `["dora",36,"ada",36]`}},
		{"less than another", `pattern: {triples: [{s: "ex:ada", p: "ex:age", o: "?n"}, {s: "?b", p: "ex:age", o: "?m"}], filter: [{var: "m", ltVar: "n"}]}`, []string{`[36,"cy",7]`}},
		{"or, not, exists", `pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}], optional: [{triples: [{s: "?a", p: "ex:born", o: "?d"}]}], filter: [{var: "d", or: [{var: "d", exists: false}, {var: "a", value: {iri: {eq: "ex:bob"}}}]}]}`,
			[]string{`["bob",36.5,"1963-05-01T12:00:00Z"]`, `["cy",7,null]`, `["dora",36,null]`}},
		{"not", `pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}], filter: [{var: "n", not: {var: "n", value: {eq: 36}}}]}`, []string{`["bob",36.5]`, `["cy",7]`}},
		{"nothing holds without a value", `pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}], optional: [{triples: [{s: "?a", p: "ex:born", o: "?d"}]}], filter: [{var: "d", neVar: "n"}]}`,
			[]string{`["ada",36,"1815-12-10"]`, `["bob",36.5,"1963-05-01T12:00:00Z"]`}},
		{"a graph", `pattern: {triples: [{s: "?a", p: "?p", o: "?b", g: "ex:g"}]}`, []string{`["bob","lives","rome"]`}},
		{"any graph", `pattern: {triples: [{s: "ex:bob", p: "?p", o: "ex:rome", g: "?g"}]}`, []string{`["lives","g"]`}},
		{"the graph without a name", `pattern: {triples: [{s: "ex:ada", p: "ex:likes", o: "?o", g: "?g"}]}`, []string{`[true,null]`}},
		{"select", `pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}]}, select: ["a"]`, []string{`["ada"]`, `["ada"]`, `["bob"]`}},
		{"distinct", `pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}]}, select: ["a"], distinct: true`, []string{`["ada"]`, `["bob"]`}},
		{"a view", `pattern: {triples: [{s: "ex:ada", p: "ex:knows", o: "?b"}]}, view: {minCertainty: 0.5}`, []string{`["bob"]`}},
		{"nothing of koine's own", `pattern: {triples: [{s: "ex:secret", p: "?p", o: "?o"}]}`, nil},
	} {
		var a matchAnswer
		b.data(`{ match(`+row.args+`) { columns nodes { values } totalCount } }`, "", &a)
		got := a.rows(t)
		slices.Sort(got)
		slices.Sort(row.want)
		if !slices.Equal(got, row.want) || a.Match.TotalCount != len(row.want) {
			t.Errorf("%s: got %d: %v, want %v", row.name, a.Match.TotalCount, got, row.want)
		}
	}
	var ordered matchAnswer
	b.data(`{ match(pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}], optional: [{triples: [{s: "?a", p: "ex:born", o: "?d"}]}]}, orderBy: [{var: "d", nulls: FIRST}, {var: "n", direction: DESC}]) { nodes { values } } }`, "", &ordered)
	if got, want := ordered.rows(t), []string{`["dora",36,null]`, `["cy",7,null]`, `["ada",36,"1815-12-10"]`, `["bob",36.5,"1963-05-01T12:00:00Z"]`}; !slices.Equal(got, want) {
		t.Errorf("in order: got %v, want %v", got, want)
	}
}

// TestMatchPathsCount proves that paths count as SPARQL 1.1 counts them, in rows,
// groups and totals: as the triples do that say the same.
func TestMatchPathsCount(t *testing.T) {
	b := newBench(t, graph.Options{})
	// Two actors play two parts each in one film, one of them in another one too.
	for part, who := range map[string]string{"p1": "mio", "p2": "mio", "p3": "kato", "p4": "kato", "p5": "sofi", "p6": "nonno"} {
		b.update(add(iri("land"), iri("starring"), iri(part)), add(iri(part), iri("actor"), iri(who)))
	}
	b.update(add(iri("sea"), iri("starring"), iri("p7")), add(iri("p7"), iri("actor"), iri("mio")), add(iri("sea"), iri("voice"), iri("p7")))
	for _, row := range []struct {
		path, triples string
		total         int
		groups        string // by ?a
	}{
		{"ex:starring/ex:actor", `{s: "ex:land", p: "ex:starring", o: "?x"}, {s: "?x", p: "ex:actor", o: "?a"}`, 6, "kato 2 mio 2 nonno 1 sofi 1"},
		{"(ex:starring|ex:voice)/ex:actor", "", 6, "kato 2 mio 2 nonno 1 sofi 1"},
		{"ex:starring/ex:actor/^ex:actor", `{s: "ex:land", p: "ex:starring", o: "?x"}, {s: "?x", p: "ex:actor", o: "?y"}, {s: "?a", p: "ex:actor", o: "?y"}`, 12, "p1 2 p2 2 p7 2 p3 2 p4 2 p5 1 p6 1"},
		{"ex:starring/ex:actor+", "", 6, "kato 2 mio 2 nonno 1 sofi 1"},
		{"(ex:starring/ex:actor)+", "", 4, "kato 1 mio 1 nonno 1 sofi 1"},
		{"(ex:starring/ex:actor)?", "", 5, "kato 1 land 1 mio 1 nonno 1 sofi 1"},
		{"(ex:starring|ex:actor){2}", "", 6, "kato 2 mio 2 nonno 1 sofi 1"},
		{"(ex:starring|ex:actor){2,3}", "", 4, "kato 1 mio 1 nonno 1 sofi 1"},
		{"!(ex:voice)", "", 6, "p1 1 p2 1 p3 1 p4 1 p5 1 p6 1"},
	} {
		patterns := []string{`{s: "ex:land", p: "` + row.path + `", o: "?a"}`}
		if row.triples != "" {
			patterns = append(patterns, row.triples)
		}
		for _, p := range patterns {
			var a struct {
				Match struct {
					Nodes      []struct{ Value string }
					TotalCount int
					Groups     []struct {
						Key   string
						Count int
					}
				}
			}
			b.data(`{ match(pattern: {triples: [`+p+`]}) { nodes { value(var: "a") } totalCount groups(by: [{var: "a"}]) { key(as: "a") count } } }`, "", &a)
			var groups []string
			for _, g := range a.Match.Groups {
				groups = append(groups, fmt.Sprintf("%s %d", strings.TrimPrefix(g.Key, ex), g.Count))
			}
			want := slices.Collect(func(yield func(string) bool) {
				f := strings.Fields(row.groups)
				for i := 0; i < len(f); i += 2 {
					yield(f[i] + " " + f[i+1])
				}
			})
			slices.Sort(groups)
			slices.Sort(want)
			if len(a.Match.Nodes) != row.total || a.Match.TotalCount != row.total || !slices.Equal(groups, want) {
				t.Errorf("%s: got %d rows, total %d, groups %v; want %d, %v", p, len(a.Match.Nodes), a.Match.TotalCount, groups, row.total, want)
			}
		}
	}
	var twice struct{ Match struct{ TotalCount int } }
	b.data(`{ match(pattern: {triples: [{s: "ex:sea", p: "ex:starring|ex:voice", o: "?a"}]}) { totalCount } }`, "", &twice)
	if twice.Match.TotalCount != 2 {
		t.Errorf("two ways to one node are %d rows", twice.Match.TotalCount)
	}
}

// TestMatchZeroLength proves that a path of length zero leads from a term to itself, and
// that the result does not depend on hidden content of the store.
func TestMatchZeroLength(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	for _, row := range []struct{ triples, want string }{
		{`{s: "ex:unknown", p: "ex:knows*", o: "?a"}`, `["unknown"]`},
		{`{s: "?a", p: "ex:knows?", o: "ex:unknown"}`, `["unknown"]`},
		{`{s: "ex:unknown", p: "ex:knows*", o: "ex:unknown"}, {s: "ex:bob", p: "ex:lives", o: "?a"}`, `["rome"]`},
		{`{s: "ex:secret", p: "ex:knows*", o: "?a"}`, `["secret"]`},
		{`{s: "ex:unknown", p: "ex:knows*", o: "?a"}, {s: "?a", p: "ex:name", o: "?n"}`, ``},
		{`{s: "ex:unknown", p: "ex:knows*", o: "?a", g: "ex:unknown"}`, ``},
		{`{s: "ex:lives", p: "ex:knows*", o: "?a"}, {s: "ex:bob", p: "?a", o: "?b"}`, `["lives","rome"]`},
		{`{s: "ex:bob", p: "?a", o: "ex:rome"}, {s: "?a", p: "ex:knows*", o: "?b"}`, ``},
	} {
		var a matchAnswer
		b.data(`{ match(pattern: {triples: [`+row.triples+`]}) { columns nodes { values } totalCount } }`, "", &a)
		if got := strings.Join(a.rows(t), " "); got != row.want {
			t.Errorf("%s: got %s, want %s", row.triples, got, row.want)
		}
	}
	var one struct {
		Match struct {
			Nodes []struct {
				Entity struct{ Iri, Label string }
				Value  string
			}
		}
	}
	b.data(`{ match(pattern: {triples: [{s: "ex:unknown", p: "ex:knows*", o: "?a"}]}, orderBy: [{var: "a"}], distinct: true) { nodes { entity(var: "a") { iri label out { totalCount } } value(var: "a") } } }`, "", &one)
	if len(one.Match.Nodes) != 1 || one.Match.Nodes[0].Entity.Iri != ex+"unknown" || one.Match.Nodes[0].Value != ex+"unknown" {
		t.Errorf("an entity that nobody knows: got %+v", one)
	}
}

// TestMatchRows proves the fields of a row.
func TestMatchRows(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	result := b.execute(`{ match(pattern: {triples: [{s: "ex:ada", p: "ex:knows", o: "?b"}, {s: "?b", p: "ex:age", o: "?n"}], optional: [{triples: [{s: "?b", p: "ex:mood", o: "?m"}]}]}, orderBy: [{var: "n"}, {var: "m"}]) {
		columns nodes { value(var: "m") entity(var: "b") { iri label } none: entity(var: "n") { iri } term(var: "n") { ... on Literal { lexical datatype } } who: term(var: "b") { ... on Entity { iri age: value(predicate: "ex:age") } } nothing: term(var: "m") { __typename } }
		groups(by: [{var: "b"}], compute: [{as: "oldest", fn: MAX, var: "n"}], orderBy: [{as: "count"}]) { keys values count }
	} }`, "")
	want := `{"match":{"columns":["b","n","m"],"nodes":[` +
		`{"value":null,"entity":{"iri":"cy","label":null},"none":null,"term":{"lexical":"7","datatype":"http://www.w3.org/2001/XMLSchema#double"},"who":{"iri":"cy","age":7},"nothing":null},` +
		`{"value":"glad","entity":{"iri":"bob","label":"Bob"},"none":null,"term":{"lexical":"36.5","datatype":"http://www.w3.org/2001/XMLSchema#decimal"},"who":{"iri":"bob","age":36.5},"nothing":{"__typename":"Literal"}},` +
		`{"value":"sad","entity":{"iri":"bob","label":"Bob"},"none":null,"term":{"lexical":"36.5","datatype":"http://www.w3.org/2001/XMLSchema#decimal"},"who":{"iri":"bob","age":36.5},"nothing":{"__typename":"Literal"}}],` +
		`"groups":[`
	if got := strings.ReplaceAll(string(result.Data), ex, ""); len(result.Errors) > 0 || !strings.HasPrefix(got, want) {
		t.Errorf("got  %s %v\nwant %s…", got, result.Errors, want)
	}
}

// TestMatchHoles proves that an entity is shown in its own row, with any rows without one.
func TestMatchHoles(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	r := b.execute(`{ match(pattern: {triples: [{s: "?a", p: "ex:age", o: "?n"}], optional: [{triples: [{s: "?a", p: "ex:lives", o: "?city"}]}]}, orderBy: [{var: "n"}]) { nodes { value(var: "n") entity(var: "city") { iri } } } }`, "")
	want := `{"match":{"nodes":[{"value":7,"entity":null},{"value":36,"entity":null},{"value":36.5,"entity":{"iri":"rome"}}]}}`
	if got := strings.ReplaceAll(string(r.Data), ex, ""); got != want || len(r.Errors) > 0 {
		t.Errorf("got  %s %v\nwant %s", got, r.Errors, want)
	}
}

// TestMatchMistakes proves that an error in a pattern is reported with its place and the
// expected form, before anything is read.
func TestMatchMistakes(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	for _, row := range []struct{ args, fields, field, hint string }{
		{`pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}, {s: "?b", p: "nope:p", o: "?c"}]}`, `nodes { values }`, "pattern.triples[1].p", ""},
		{`pattern: {triples: [{s: "no iri", p: "ex:p", o: "?c"}]}`, `nodes { values }`, "pattern.triples[0].s", ""},
		{`pattern: {triples: [{s: "?a", p: "ex:p"}]}`, `nodes { values }`, "pattern.triples[0].o", ""},
		{`pattern: {triples: [{s: "?a", p: "ex:p", o: "?b", value: 1}]}`, `nodes { values }`, "pattern.triples[0].o", ""},
		{`pattern: {triples: [{s: "?a", p: "ex:p+", o: "?b", g: "?g"}]}`, `nodes { values }`, "pattern.triples[0].g", ""},
		{`pattern: {union: [{}, {triples: [{s: "?", p: "ex:p", o: "?b"}]}]}`, `nodes { values }`, "pattern.union[1].triples[0].s", ""},
		{`pattern: {triples: [{s: "?actor", p: "ex:p", o: "?b"}], filter: [{var: "acter", exists: true}]}`, `nodes { values }`, "pattern.filter[0].var", "Did you mean actor?"},
		{`pattern: {triples: [{s: "?actor", p: "ex:p", o: "?b"}], filter: [{var: "b", not: {var: "b", eqVar: "actr"}}]}`, `nodes { values }`, "pattern.filter[0].not.eqVar", "Did you mean actor?"},
		{`pattern: {triples: [{s: "?a", p: "ex:p", o: "?b"}], filter: [{var: "b", value: {eq: []}}]}`, `nodes { values }`, "pattern.filter[0].value.eq", ""},
		{`pattern: {triples: [{s: "?actor", p: "ex:p", o: "?b"}]}, select: ["b", "?actor"]`, `nodes { values }`, "select[1]", "Leave the question mark out."},
		{`pattern: {triples: [{s: "?actor", p: "ex:p", o: "?b"}]}, orderBy: [{var: "x"}]`, `nodes { values }`, "orderBy[0].var", "It has actor, b."},
		{`pattern: {triples: [{s: "?actor", p: "ex:p", o: "?b"}]}, select: ["b"]`, `nodes { value(var: "actor") }`, "var", "It has b."},
		{`pattern: {triples: [{s: "?actor", p: "ex:p", o: "?b"}]}`, `groups(by: [{var: "acto"}]) { count }`, "by[0].var", "Did you mean actor?"},
	} {
		r := b.execute(`{ match(`+row.args+`) { `+row.fields+` } }`, "")
		if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != string(kg.CodeInvalid) || r.Errors[0].Extensions["field"] != row.field || row.hint != "" && r.Errors[0].Extensions["hint"] != row.hint {
			t.Errorf("%s %s: got %v, want an error at %s with the hint %q", row.args, row.fields, r.Errors, row.field, row.hint)
		}
	}
}

// TestMatchPages proves that paging, by size or by budget, shows each row once and in the
// same order, during unrelated writes.
func TestMatchPages(t *testing.T) {
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for i := range 30 {
		patches = append(patches, add(iri(fmt.Sprintf("n%02d", i)), iri("knows"), iri(fmt.Sprintf("n%02d", i*7%30))),
			add(iri(fmt.Sprintf("n%02d", i)), iri("knows"), iri(fmt.Sprintf("n%02d", (i*3+1)%30))), add(iri(fmt.Sprintf("n%02d", i)), iri("size"), kg.Integer(int64(i%4))))
	}
	b.update(patches...)
	const join = `pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}, {s: "?b", p: "ex:knows", o: "?c"}, {s: "?a", p: "ex:size", value: 1}]}`
	for _, args := range []string{join, join + `, select: ["c"], distinct: true`, join + `, orderBy: [{var: "c", direction: DESC}]`,
		`pattern: {union: [{triples: [{s: "?a", p: "ex:size", o: "?n"}]}, {triples: [{s: "?a", p: "ex:knows", o: "ex:n01"}]}]}`} {
		var whole matchAnswer
		b.data(`{ match(`+args+`, first: 1000) { nodes { values } } }`, "", &whole)
		want := whole.rows(t)
		if len(want) < 10 {
			t.Fatalf("%s: only %d rows", args, len(want))
		}
		for _, step := range []string{"first: 1", "first: 4", "first: 1000, budget: {maxBytes: 900}", "first: 3, budget: {maxStatements: 400}"} {
			var got []string
			after := ""
			for page := 0; ; page++ {
				if page > len(want) {
					t.Fatalf("%s, %s: no end", args, step)
				}
				var a matchAnswer
				b.data(`{ match(`+args+`, `+step+after+`) { nodes { values } pageInfo { hasNextPage truncated endCursor } } }`, "", &a)
				got = append(got, a.rows(t)...)
				if !a.Match.PageInfo.HasNextPage {
					break
				}
				after = fmt.Sprintf(", after: %q", *a.Match.PageInfo.EndCursor)
				b.update(add(iri("n01"), iri("knows"), iri(fmt.Sprintf("new%d", page))))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %d rows %v, want %d %v", args, step, len(got), got, len(want), want)
			}
			b.update(kg.Patch{Op: kg.Replace, Quad: kg.Quad{Subject: iri("n01"), Predicate: iri("knows"), Object: iri("n07"), Graph: kg.DefaultGraph}}, add(iri("n01"), iri("knows"), iri("n04")))
		}
		other := b.execute(`{ match(pattern: {triples: [{s: "?a", p: "ex:size", o: "?n"}]}, first: 2) { pageInfo { endCursor } } }`, "")
		var a matchAnswer
		if err := json.Unmarshal(other.Data, &a); err != nil {
			t.Fatal(err)
		}
		r := b.execute(`{ match(`+args+fmt.Sprintf(`, after: %q`, *a.Match.PageInfo.EndCursor)+`) { nodes { values } } }`, "")
		if len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != string(kg.CodeCursorForeign) {
			t.Errorf("a cursor of another pattern: got %v, want %s", r.Errors, kg.CodeCursorForeign)
		}
	}
}

// TestMatchExplains proves that the plan is returned on request only.
func TestMatchExplains(t *testing.T) {
	b := newBench(t, graph.Options{})
	b.team()
	var data struct {
		Match struct {
			Explanation *struct {
				StatementsRead int
				Steps          []struct {
					Depth                          int
					Operation, Pattern             string
					Index                          *string
					Estimate, Rows, StatementsRead int
				}
			}
		}
	}
	const query = `{ match(pattern: {triples: [{s: "?a", p: "ex:knows", o: "?b"}, {s: "?b", p: "ex:age", o: "?n"}], notExists: [{triples: [{s: "?b", p: "ex:mood", o: "?m"}]}]}%s) { nodes { values } explanation { statementsRead steps { depth operation pattern index estimate rows statementsRead } } } }`
	b.data(fmt.Sprintf(query, ""), "", &data)
	if data.Match.Explanation != nil {
		t.Errorf("unasked: got %+v", data.Match.Explanation)
	}
	b.data(fmt.Sprintf(query, ", explain: true"), "", &data)
	x := data.Match.Explanation
	if x == nil || len(x.Steps) != 4 || x.StatementsRead == 0 {
		t.Fatalf("got %+v, want four steps", x)
	}
	read, depths := 0, ""
	for _, s := range x.Steps {
		read += s.StatementsRead
		depths += fmt.Sprint(s.Depth)
	}
	if x.Steps[0].Operation != "scan" || x.Steps[0].Index == nil || x.Steps[0].Rows == 0 || read > x.StatementsRead || !strings.Contains(depths, "1") {
		t.Errorf("got %+v", x)
	}
}

// TestMatchReadsValuesInTheirOrder proves by the plans that ranges and orders of decimals, and of times
// with an offset, read the values that they answer.
func TestMatchReadsValuesInTheirOrder(t *testing.T) {
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for i := range 2000 {
		post, at := iri(fmt.Sprint("post", i)), time.Date(2026, 3, 1, 10, i, 0, 0, time.FixedZone("", 2*60*60))
		patches = append(patches, add(post, iri("price"), kg.Typed(fmt.Sprintf("%d.25", i), kg.XSDDecimal)),
			add(post, iri("at"), kg.Typed(at.Format(time.RFC3339), kg.XSDDateTime)))
	}
	b.update(patches...)
	for _, row := range []struct{ predicate, args, operation string }{
		{"price", `filter: [{var: "v", value: {gte: 100, lt: 103}}]`, "range"},
		{"at", `filter: [{var: "v", value: {gte: "2026-03-01T09:00:00Z", lt: "2026-03-01T09:03:00Z"}}]`, "range"},
		{"price", `first: 3, orderBy: [{var: "v", direction: DESC}]`, "order"},
		{"at", `first: 3, orderBy: [{var: "v"}]`, "order"},
	} {
		var data struct {
			Match struct {
				Nodes       []struct{ Values []any }
				Explanation struct {
					Steps []struct {
						Operation      string
						StatementsRead int
					}
				}
			}
		}
		filter, args, ordered := "", row.args, strings.HasPrefix(row.args, "first")
		if !ordered {
			filter, args = ", "+row.args, "first: 10"
		}
		b.data(fmt.Sprintf(`{ match(pattern: {triples: [{s: "?s", p: "ex:%s", o: "?v"}]%s}, %s, explain: true) { nodes { values } explanation { steps { operation statementsRead } } } }`, row.predicate, filter, args), "", &data)
		steps := data.Match.Explanation.Steps
		if len(data.Match.Nodes) != 3 || len(steps) == 0 || steps[0].Operation != row.operation || steps[0].StatementsRead > 6 {
			t.Errorf("%s, %s: %d rows by %+v, want 3 by %s", row.predicate, row.args, len(data.Match.Nodes), steps, row.operation)
		}
	}
}

// Entities have an order, so that ltVar takes each pair once.
func TestMatchTakesPairsOnce(t *testing.T) {
	b := newBench(t, graph.Options{})
	for _, name := range []string{"a", "b", "c", "d"} {
		b.update(add(iri(name), iri("in"), iri("room")))
	}
	for condition, want := range map[string]int{"neVar": 12, "ltVar": 6, "gtVar": 6, "lteVar": 10, "eqVar": 4} {
		var data struct {
			Match struct{ TotalCount int }
		}
		b.data(`{ match(pattern: {triples: [{s: "?x", p: "ex:in", o: "?r"}, {s: "?y", p: "ex:in", o: "?r"}], filter: [{var: "x", `+condition+`: "y"}]}) { totalCount } }`, "", &data)
		if data.Match.TotalCount != want {
			t.Errorf("%s: got %d pairs, want %d", condition, data.Match.TotalCount, want)
		}
	}
}
