package graph_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/internal/w3c"
	"koine/kg"
)

// w3cQuery is a query of the W3C's SPARQL 1.1 suite in match. cannot is the reason if match
// cannot express it.
type w3cQuery struct {
	w3cPattern
	show     []string // the variables, in any order
	distinct bool
	groupBy  []string // groups instead of rows
	cannot   string
}

// w3cPattern is a PatternInput. Terms and the predicates of paths have prefixes, and a
// number stands for a value.
type w3cPattern struct {
	triples                    [][]string // subject, path, object, and the graph if there is one
	filter                     []map[string]any
	optional, union, notExists []w3cPattern
}

type w3cGraphs struct {
	prefixes map[string]string
	queries  map[string]w3cQuery // by the names that the manifest gives them
}

const (
	w3cMinus    = "MINUS compares what both sides bind; notExists holds for the row before it, which is not the same where its pattern leaves a variable without a value or shares none"
	w3cCoalesce = "keys of groups are variables, not expressions"
	w3cSample   = "there is no SAMPLE"
	w3cSyntax   = "the error cannot be written: groups show their keys and what is computed of them"
	w3cAnyGraph = "a path has a graph by name or none"
)

var w3cNegation = []string{"http://example/", "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/negation#"}

func w3cRow(subject, way, object string) w3cPattern {
	return w3cPattern{triples: [][]string{{subject, way, object}}}
}

// Two sets, and a member of the first that is none of the second.
var (
	w3cSets     = [][]string{{"?s2", "a", "x:Set"}, {"?s1", "a", "x:Set"}}
	w3cNoSubset = w3cPattern{triples: append(slices.Clip(w3cSets), []string{"?s1", "x:member", "?x"}), notExists: []w3cPattern{w3cRow("?s2", "x:member", "?x")}}
	w3cNoSuper  = w3cPattern{triples: append(slices.Clip(w3cSets), []string{"?s2", "x:member", "?x"}), notExists: []w3cPattern{w3cRow("?s1", "x:member", "?x")}}
	w3cOther    = []map[string]any{{"var": "s1", "neVar": "s2"}}
	w3cMember   = func(n string) w3cPattern {
		return w3cPattern{triples: [][]string{{"?set", "a", "x:Set"}}, notExists: []w3cPattern{{triples: [][]string{{"?set", "a", "x:Set"}}, notExists: []w3cPattern{w3cRow("?set", "x:member", n)}}}}
	}
	w3cNumbers = w3cPattern{triples: [][]string{{"?s", "x:p", "?v"}}, optional: []w3cPattern{w3cRow("?s", "x:q", "?w")}}
)

var w3cQueries = map[string]w3cGraphs{
	"property-path": {
		prefixes: map[string]string{
			"s:": "http://www.example.org/schema#", "in:": "http://www.example.org/instance#", "x:": "http://example/", "eo:": "http://example.org/",
			"w:": "http://www.example.org/", "foaf:": "http://xmlns.com/foaf/0.1/", "ec:": "http://example.com/",
		},
		queries: map[string]w3cQuery{
			"pp01": {w3cPattern: w3cRow("in:a", "s:p1/s:p2/s:p3", "?x")},
			"pp02": {w3cPattern: w3cRow("in:a", "(s:p1/s:p2/s:p3)*", "?x")},
			"pp03": {w3cPattern: w3cRow("in:a", "s:p1/s:p2/s:p3/s:p4", "?x")},
			// graph ?g {in:a p1/p2 ?x}: the sequence is its two triples, in one graph.
			"pp06":  {w3cPattern: w3cPattern{triples: [][]string{{"in:a", "s:p1", "?y", "?g"}, {"?y", "s:p2", "?x", "?g"}}}, show: []string{"x"}},
			"pp07":  {w3cPattern: w3cPattern{triples: [][]string{{"in:a", "s:p1", "?y", "?g"}, {"?y", "s:p2", "?x", "?g"}}}, show: []string{"x"}},
			"pp08":  {w3cPattern: w3cRow("in:b", "^s:p", "in:a")},
			"pp09":  {w3cPattern: w3cRow("in:c", "^(s:p1/s:p2)", "?x")},
			"pp10":  {w3cPattern: w3cRow("in:a", "!(s:p1|s:p2)", "?x")},
			"pp11":  {w3cPattern: w3cRow("in:a", "s:p1/s:p2", "?x")},
			"pp12":  {w3cPattern: w3cRow("in:a", "(s:p1/s:p2)+", "?x")},
			"pp14":  {w3cPattern: w3cRow("?X", "foaf:knows*", "?Y")},
			"pp16":  {w3cPattern: w3cRow("?X", "foaf:knows*", "?Y")},
			"pp21":  {w3cPattern: w3cRow("x:a", "x:p+", "?z")},
			"pp23":  {w3cPattern: w3cRow("x:a", "x:p+", "?z")},
			"pp25":  {w3cPattern: w3cRow("x:a", "x:p+", "?z")},
			"pp28a": {w3cPattern: w3cRow("x:a", "(x:p/x:p)?", "?t")},
			"pp30":  {w3cPattern: w3cRow("w:a", "w:p1|w:p2/w:p3|w:p4", "?t")},
			"pp31":  {w3cPattern: w3cRow("w:a", "(w:p1|w:p2)/(w:p3|w:p4)", "?t")},
			"pp32":  {w3cPattern: w3cRow("w:a", "w:p0|^w:p1/w:p2|w:p3", "?t")},
			"pp33":  {w3cPattern: w3cRow("w:a", "(w:p0|^w:p1)/w:p2|w:p3", "?t")},
			"pp34":  {w3cPattern: w3cPattern{triples: [][]string{{"?s", "w:p1*", "?t", "ng-01.ttl"}}}, show: []string{"t"}},
			"pp35":  {cannot: w3cAnyGraph},
			"pp36":  {w3cPattern: w3cRow("eo:a0", "(eo:p)*", "eo:a1")},
			"pp37":  {w3cPattern: w3cRow("eo:A0", "((eo:P)*)*", "?X")},
			// Of a variable that VALUES gives a value there is a condition.
			"values_and_path":        {w3cPattern: w3cPattern{triples: [][]string{{"?v", "ec:p?", "?v"}}, filter: []map[string]any{{"var": "v", "value": map[string]any{"eq": 1}}}}},
			"nps_inverse":            {w3cPattern: w3cRow("?s", "!^eo:pr", "?o")},
			"nps_direct_and_inverse": {w3cPattern: w3cRow("?s", "!(eo:pd|^eo:pr)", "?o")},
			"nps_a":                  {w3cPattern: w3cRow("?s", "!a", "?o")},
			"nps_a_inverse":          {w3cPattern: w3cRow("?s", "!^a", "?o")},
			"zero_or_more_set_start": {w3cPattern: w3cRow("?s", "x:p*", "x:o")},
			"zero_or_more_set_end":   {w3cPattern: w3cRow("x:s", "x:p*", "?o")},
			"zero_or_one_set_start":  {w3cPattern: w3cRow("?s", "x:p?", "x:o")},
			"zero_or_one_set_end":    {w3cPattern: w3cRow("x:s", "x:p?", "?o")},
		},
	},
	"negation": {
		prefixes: map[string]string{"x:": w3cNegation[0], "n:": w3cNegation[1], "dc:": "http://purl.org/dc/elements/1.1/"},
		queries: map[string]w3cQuery{
			"subset-by-exclusion-nex-1": {w3cPattern: w3cPattern{triples: [][]string{{"?animal", "a", "n:Animal"}}, notExists: []w3cPattern{w3cRow("?animal", "a", "n:Insect")}}},
			"subset-by-exclusion-minus-1": {w3cPattern: w3cPattern{triples: [][]string{{"?animal", "a", "n:Animal"}},
				notExists: []w3cPattern{w3cRow("?animal", "a", "n:Reptile"), w3cRow("?animal", "a", "n:Insect")}}},
			"temporal-proximity-by-exclusion-nex-1": {show: []string{"exam", "date"}, w3cPattern: w3cPattern{
				triples:   [][]string{{"?exam", "a", "n:PhysicalExamination"}, {"?exam", "dc:date", "?date"}, {"?exam", "n:precedes", "n:operation1"}, {"?op", "a", "n:SurgicalProcedure"}, {"?op", "dc:date", "?opDT"}},
				notExists: []w3cPattern{{triples: [][]string{{"?otherExam", "a", "n:PhysicalExamination"}, {"?otherExam", "n:follows", "?exam"}, {"?otherExam", "n:precedes", "n:operation1"}}}},
			}},
			// The conditions of subset-01 and set-equals-1 before and within MINUS are
			// the same; one is enough.
			"subset-01": {w3cPattern: w3cPattern{triples: w3cSets, filter: w3cOther, notExists: []w3cPattern{w3cNoSubset}}, show: []string{"s1=subset", "s2=superset"}},
			"subset-02": {show: []string{"s1=subset", "s2=superset"}, w3cPattern: w3cPattern{triples: w3cSets, notExists: []w3cPattern{
				w3cNoSubset,
				{triples: [][]string{{"?s1", "x:member", "?x"}}, filter: []map[string]any{{"var": "s1", "eqVar": "s2"}}},
				{triples: w3cSets, notExists: []w3cPattern{w3cRow("?s1", "x:member", "?y"), w3cRow("?s2", "x:member", "?y")}},
			}}},
			"set-equals-1": {w3cPattern: w3cPattern{triples: w3cSets, filter: []map[string]any{{"var": "s1", "ltVar": "s2"}}, notExists: []w3cPattern{w3cNoSubset, w3cNoSuper}}, show: []string{"s1", "s2"}, distinct: true},
			"subset-03": {show: []string{"s1=subset", "s2=superset"}, w3cPattern: w3cPattern{triples: w3cSets,
				notExists: []w3cPattern{w3cNoSubset, {triples: w3cSets, notExists: []w3cPattern{w3cNoSubset, w3cNoSuper}}}}},
			"exists-01":       {w3cPattern: w3cMember("9")},
			"exists-02":       {w3cPattern: w3cMember("7")},
			"full-minuend":    {cannot: w3cMinus},
			"partial-minuend": {cannot: w3cMinus},
			"graph-minus":     {cannot: w3cMinus},
		},
	},
	"grouping": {
		prefixes: map[string]string{"x:": "http://example/"},
		queries: map[string]w3cQuery{
			"group01": {w3cPattern: w3cRow("?s", "x:p", "?v"), groupBy: []string{"s"}},
			"group03": {cannot: w3cSample},
			"group04": {cannot: w3cCoalesce},
			"group05": {w3cPattern: w3cNumbers, groupBy: []string{"s", "w"}},
			"group06": {cannot: w3cSyntax},
			"group07": {cannot: w3cSyntax},
		},
	},
}

// TestW3CQueries: match answers the queries of the W3C's suites for property paths,
// negation and grouping that it can say as the suites want. Data and answers are those
// of the suites; each of their queries is translated, or the reason is given.
func TestW3CQueries(t *testing.T) {
	slowtest.Long(t)
	for suite, translated := range w3cQueries {
		t.Run(suite, func(t *testing.T) {
			dir := filepath.Join(w3c.RDFTests(t), "sparql", "sparql11", suite)
			tests := w3cManifest(t, dir)
			for name := range translated.queries {
				if _, ok := tests[name]; !ok {
					t.Errorf("the suite has no %s", name)
				}
			}
			said := 0
			for name, c := range tests {
				q, ok := translated.queries[name]
				if !ok {
					t.Errorf("%s is not translated", name)
				}
				if q.cannot != "" || !ok {
					continue
				}
				said++
				t.Run(name, func(t *testing.T) { q.check(t, c, translated.prefixes) })
			}
			t.Logf("%d of %d can be said", said, len(tests))
		})
	}
}

// w3cEntry is a test of a suite; its files are names in its directory.
type w3cEntry struct {
	dir, site            string
	data, graphs, result []string
}

func w3cRead(t *testing.T, dir, name, base string) (quads []kg.Quad) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for q, err := range rdf.Read(f, rdf.Turtle, rdf.Options{Base: base + name, Graph: kg.DefaultGraph}) {
		if err != nil {
			t.Fatal(err)
		}
		quads = append(quads, q)
	}
	return quads
}

// w3cManifest lists the tests that the manifest names, by the ends of their IRIs.
func w3cManifest(t *testing.T, dir string) map[string]w3cEntry {
	t.Helper()
	const (
		site  = "https://suite.example/"
		mf    = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
		query = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
	)
	objects := map[kg.Term]map[string][]kg.Term{}
	for _, q := range w3cRead(t, dir, "manifest.ttl", site) {
		if objects[q.Subject] == nil {
			objects[q.Subject] = map[string][]kg.Term{}
		}
		objects[q.Subject][q.Predicate.Value()] = append(objects[q.Subject][q.Predicate.Value()], q.Object)
	}
	files := func(terms []kg.Term) (names []string) {
		for _, term := range terms {
			names = append(names, strings.TrimPrefix(term.Value(), site))
		}
		return names
	}
	tests := map[string]w3cEntry{}
	list := objects[kg.IRI(site+"manifest.ttl")][mf+"entries"]
	if len(list) != 1 {
		t.Fatalf("the manifest has %d lists of tests", len(list))
	}
	for at := list[0]; at != kg.IRI(kg.RDF+"nil"); at = objects[at][kg.RDF+"rest"][0] {
		test := objects[at][kg.RDF+"first"][0]
		_, name, _ := strings.Cut(test.Value(), "#")
		about := objects[test]
		for _, action := range about[mf+"action"] {
			e := w3cEntry{dir: dir, site: site, data: files(objects[action][query+"data"]), graphs: files(objects[action][query+"graphData"]), result: files(about[mf+"result"])}
			tests[name] = e
		}
	}
	return tests
}

// check compares the result of match with that of the suite.
func (q *w3cQuery) check(t *testing.T, c w3cEntry, prefixes map[string]string) {
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for _, name := range c.data {
		for _, quad := range w3cRead(t, c.dir, name, c.site) {
			patches = append(patches, kg.Patch{Op: kg.Add, Quad: quad})
		}
	}
	for _, name := range c.graphs {
		for _, quad := range w3cRead(t, c.dir, name, c.site) {
			quad.Graph = kg.IRI(c.site + name)
			patches = append(patches, kg.Patch{Op: kg.Add, Quad: quad})
		}
	}
	if len(patches) > 0 {
		b.update(patches...)
	}
	variables, want := w3cResult(t, filepath.Join(c.dir, c.result[0]))
	got := q.ask(t, b, c.site, prefixes, variables)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// ask gives the rows as w3cResult does.
func (q *w3cQuery) ask(t *testing.T, b *bench, site string, prefixes map[string]string, variables []string) (rows []string) {
	fields, names := "", slices.Clone(q.show)
	if q.groupBy != nil {
		names = q.groupBy
	} else if names == nil {
		names = variables
	}
	for i, name := range names {
		of, as, renamed := strings.Cut(name, "=")
		if !renamed {
			as = of
		}
		if slices.Contains(variables, as) {
			key := "var"
			if q.groupBy != nil {
				key = "as"
			}
			fields += termOf(fmt.Sprintf("%s: %q", key, of), as)
		}
		names[i] = of
	}
	what := "nodes { __typename " + fields + "}"
	if q.groupBy != nil {
		var keys []string
		for _, name := range q.groupBy {
			keys = append(keys, fmt.Sprintf("{var: %q, as: %[1]q}", name))
		}
		what = "groups(by: [" + strings.Join(keys, ", ") + "]) { __typename " + fields + "}"
	}
	selected := ""
	if q.distinct {
		list, _ := json.Marshal(names)
		selected = ", distinct: true, select: " + string(list)
	}
	pattern, err := json.Marshal(map[string]any{"pattern": q.input(site, prefixes)})
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Match map[string]json.RawMessage
	}
	b.data(`query($pattern: PatternInput!) { match(pattern: $pattern, first: 1000`+selected+`) { `+what+` } }`, string(pattern), &data)
	for _, list := range data.Match {
		var solutions []map[string]json.RawMessage
		if err := json.Unmarshal(list, &solutions); err != nil {
			t.Fatal(err)
		}
		for _, s := range solutions {
			var row string
			for _, name := range variables {
				var term *sparqlTerm
				if err := json.Unmarshal(s[name], &term); err != nil {
					t.Fatalf("?%s: %v", name, err)
				}
				row += name + "=" + term.String() + " "
			}
			rows = append(rows, row)
		}
	}
	return rows
}

var w3cName = regexp.MustCompile(`[a-z]+:\w+`)

// input is the pattern as a PatternInput.
func (p *w3cPattern) input(site string, prefixes map[string]string) map[string]any {
	full := func(name string) string {
		prefix, local, _ := strings.Cut(name, ":")
		if space, ok := prefixes[prefix+":"]; ok {
			return space + local
		}
		return name
	}
	var triples []map[string]any
	for _, t := range p.triples {
		triple := map[string]any{"s": full(t[0]), "p": w3cName.ReplaceAllStringFunc(t[1], func(name string) string { return "<" + full(name) + ">" })}
		if object := json.Number(t[2]); regexp.MustCompile(`^\d+$`).MatchString(t[2]) {
			triple["value"] = object
		} else {
			triple["o"] = full(t[2])
		}
		if len(t) > 3 {
			triple["g"] = t[3]
			if !strings.HasPrefix(t[3], "?") {
				triple["g"] = site + t[3]
			}
		}
		triples = append(triples, triple)
	}
	in := map[string]any{"triples": triples}
	if p.filter != nil {
		in["filter"] = p.filter
	}
	for field, list := range map[string][]w3cPattern{"optional": p.optional, "union": p.union, "notExists": p.notExists} {
		var inputs []map[string]any
		for i := range list {
			inputs = append(inputs, list[i].input(site, prefixes))
		}
		if inputs != nil {
			in[field] = inputs
		}
	}
	return in
}

// w3cResult reads an answer in SPARQL's XML format: its variables, and each solution as
// a line. An ASK is a solution without variables, or none.
func w3cResult(t *testing.T, name string) (variables, rows []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	type literal struct {
		Datatype string `xml:"datatype,attr"`
		Lang     string `xml:"http://www.w3.org/XML/1998/namespace lang,attr"`
		Text     string `xml:",chardata"`
	}
	var answer struct {
		Variables []struct {
			Name string `xml:"name,attr"`
		} `xml:"head>variable"`
		Boolean *bool `xml:"boolean"`
		Results []struct {
			Bindings []struct {
				Name    string   `xml:"name,attr"`
				IRI     string   `xml:"uri"`
				Literal *literal `xml:"literal"`
			} `xml:"binding"`
		} `xml:"results>result"`
	}
	if err := xml.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, v := range answer.Variables {
		variables = append(variables, v.Name)
	}
	if answer.Boolean != nil && *answer.Boolean {
		rows = append(rows, "")
	}
	for _, solution := range answer.Results {
		terms := map[string]*sparqlTerm{}
		for _, b := range solution.Bindings {
			terms[b.Name] = &sparqlTerm{Iri: b.IRI}
			if l := b.Literal; l != nil {
				terms[b.Name] = &sparqlTerm{Lexical: l.Text, Datatype: l.Datatype, Language: l.Lang}
				if l.Datatype == "" {
					terms[b.Name].Datatype = kg.XSDString
				}
			}
		}
		var row string
		for _, name := range variables {
			row += name + "=" + terms[name].String() + " "
		}
		rows = append(rows, row)
	}
	return variables, rows
}
