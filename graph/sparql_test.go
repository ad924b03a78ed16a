package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/slowtest"
	"koine/kg"
)

var sparqlSeed = flag.Uint64("sparql.seed", 0, "seed of the comparison with a SPARQL engine; 0 takes a new one")

// TestAgainstSPARQL compares match with oxigraph on random graphs and patterns: rows and
// their number, DISTINCT, groups and orders. KOINE_SPARQL_QUERIES sets the number of
// queries.
//
// Oxigraph 0.5 differs from the specification in ways that are avoided here:
//
//   - An alternative gives two ends once (18.4 gives them once for each side). So one
//     is written as the equivalent union (18.2.2.4); within closures, which are sets,
//     it stays.
//   - A negated set counts statements if one end is given, and two ends once if none
//     is. It is written as a triple with a condition on its predicate.
//   - A path of length zero does not lead from a term that the graph does not have.
//     Closures begin and end at variables, or at terms that every graph has.
//   - An equality with a constant is treated as the same term if the variable begins
//     a closure (?a <p>* ?b FILTER(?a = 1) has no row for 1.0). Constants are compared
//     with ?a * 1.
//   - A literal of an unknown datatype is at least itself, although >= is not defined
//     for it (17.3). Literals of urn:datatype are excluded from >=.
//   - Literals lose their notation: "01" becomes "1". All are canonical.
func TestAgainstSPARQL(t *testing.T) {
	if testing.Short() {
		t.Skip("a test with node; -short leaves it out")
	}
	if _, err := os.Stat("sparql/node_modules/.package-lock.json"); err != nil {
		t.Fatalf("%v: run scripts/install-test-tools.sh", err)
	}
	queries, seed := 100, uint64(1) // the same in every run; those of more queries differ
	if text := os.Getenv("KOINE_SPARQL_QUERIES"); text != "" {
		var err error
		if queries, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		seed = rand.Uint64()
	}
	if *sparqlSeed != 0 {
		seed = *sparqlSeed
	}
	t.Logf("repeat %d queries with -sparql.seed=%d", queries, seed)
	const perGraph = 15
	r := &sparqlRandom{Rand: rand.New(rand.NewPCG(seed, 17))}
	var worlds []*sparqlWorld
	for n := 0; n < queries; n += perGraph {
		w := r.world(t)
		for range min(perGraph, queries-n) {
			w.questions = append(w.questions, r.question())
		}
		worlds = append(worlds, w)
	}
	answers := askSPARQL(t, worlds)
	compared, rows := map[string]int{}, 0
	for _, w := range worlds {
		for i := range w.questions {
			q := &w.questions[i]
			want := answers[0]
			answers = answers[1:]
			if n := w.compare(t, q, want); n >= 0 {
				compared[q.kind]++
				rows += n
			}
		}
	}
	t.Logf("compared %v, with %d rows", compared, rows)
	if total := compared["rows"] + compared["distinct"] + compared["groups"] + compared["order"]; total < queries*3/4 || len(compared) < 4 || rows < queries {
		t.Errorf("too little was compared: %v, %d rows", compared, rows)
	}
}

type sparqlRandom struct {
	*rand.Rand
	fresh int // variables
}

// sparqlWorld is a graph and the queries on it.
type sparqlWorld struct {
	bench     *bench
	triples   string
	questions []sparqlQuestion
}

// sparqlQuestion is a question in both languages.
type sparqlQuestion struct {
	kind    string
	graphql string
	sparql  string
	names   []string // of the variables that are compared, in order
}

func (r *sparqlRandom) node() string      { return fmt.Sprintf("n%d", r.IntN(5)) }
func (r *sparqlRandom) predicate() string { return fmt.Sprintf("p%d", r.IntN(3)) }

func (r *sparqlRandom) world(t *testing.T) *sparqlWorld {
	literals := []kg.Term{
		kg.Integer(1), kg.Integer(2), kg.Typed("1", kg.XSDDecimal), kg.Typed("1.5", kg.XSDDecimal), kg.Typed("2", kg.XSDDouble),
		kg.Boolean(true), kg.Boolean(false),
		kg.String("Gift"), kg.LangString("Gift", "en"), kg.LangString("Gift", "de"), kg.String("Haus"), kg.Typed("Gift", "urn:datatype"),
		kg.Typed("2024-01-01T00:00:00Z", kg.XSDDateTime), kg.Typed("2024-01-01T01:00:00+01:00", kg.XSDDateTime), kg.Typed("2024-01-01T00:30:00Z", kg.XSDDateTime), kg.Typed("2024-06-01", kg.XSDDate),
	}
	w := &sparqlWorld{bench: newBench(t, graph.Options{})}
	seen := map[string]bool{}
	var patches []kg.Patch
	for i := range 14 + r.IntN(8) {
		o := iri(r.node())
		if r.IntN(3) == 0 {
			o = literals[r.IntN(len(literals))]
		}
		subject := r.node()
		if i < 5 {
			subject = fmt.Sprintf("n%d", i)
		}
		p := add(iri(subject), iri(r.predicate()), o)
		line := fmt.Sprintf("%v %v %v .\n", p.Quad.Subject, p.Quad.Predicate, p.Quad.Object)
		if !seen[line] {
			seen[line] = true
			w.triples += line
			patches = append(patches, p)
		}
	}
	w.bench.update(patches...)
	return w
}

// sparqlGroup is a group in both languages, with the variables that are in scope.
type sparqlGroup struct {
	body, filter, sparql string
	scope                map[string]bool
}

// graphql writes the group, with another condition if there is one.
func (g *sparqlGroup) graphql(condition string) string {
	filters := slices.DeleteFunc([]string{g.filter, condition}, func(f string) bool { return f == "" })
	return "{" + g.body + ", filter: [" + strings.Join(filters, ", ") + "]}"
}

func (r *sparqlRandom) group(depth int) sparqlGroup {
	g := sparqlGroup{scope: map[string]bool{}}
	var triples []string
	var where strings.Builder
	for range 1 + r.IntN(2) {
		k, s := r.triple(g.scope)
		triples = append(triples, k)
		where.WriteString(s)
	}
	parts := []string{"triples: [" + strings.Join(triples, ", ") + "]"}
	nested := func(field, before string, n int, scoped bool) {
		var list []string
		for i := range n {
			inner := r.group(depth - 1)
			list = append(list, inner.graphql(""))
			if i > 0 && field == "union" {
				where.WriteString("UNION ")
			}
			where.WriteString(before + "{ " + inner.sparql + "} ")
			if before == "FILTER NOT EXISTS " {
				continue
			}
			if scoped {
				maps.Copy(g.scope, inner.scope)
			}
		}
		parts = append(parts, field+": ["+strings.Join(list, ", ")+"]")
	}
	if depth > 0 {
		if r.IntN(3) == 0 {
			nested("union", "", 2, true)
		}
		if r.IntN(3) == 0 {
			nested("optional", "OPTIONAL ", 1, true)
		}
		if r.IntN(4) == 0 {
			nested("notExists", "FILTER NOT EXISTS ", 1, false)
		}
	}
	if len(g.scope) > 0 && r.IntN(3) == 0 {
		k, s := r.filter(slices.Sorted(maps.Keys(g.scope)))
		g.filter = k
		where.WriteString(s)
	}
	g.body, g.sparql = strings.Join(parts, ", "), where.String()
	return g
}

func (r *sparqlRandom) triple(scope map[string]bool) (graphql, sparql string) {
	end := func() (string, string) {
		if r.IntN(5) == 0 {
			n := r.node()
			return "ex:" + n, iri(n).String()
		}
		name := string(rune('a' + r.IntN(4)))
		scope[name] = true
		return "?" + name, "?" + name
	}
	s, sparqlS := end()
	o, sparqlO := end()
	p, ways := r.path()
	graphql = fmt.Sprintf("{s: %q, p: %q, o: %q}", s, p, o)
	for i, way := range ways {
		if i > 0 {
			sparql += "UNION "
		}
		from, to := sparqlS, sparqlO
		if rest, inverted := strings.CutPrefix(way, "^!"); inverted {
			way, from, to = "!"+rest, sparqlO, sparqlS
		}
		if predicate, negated := strings.CutPrefix(way, "!"); negated {
			r.fresh++
			sparql += fmt.Sprintf("{ %s ?f%d %s FILTER(?f%[2]d != %[4]s) } ", from, r.fresh, to, predicate)
		} else {
			sparql += "{ " + from + " " + way + " " + to + " } "
		}
	}
	return graphql, sparql
}

// path is a predicate or a path; ways are the sides of an alternative.
func (r *sparqlRandom) path() (text string, ways []string) {
	link := func() string { return "<" + ex + r.predicate() + ">" }
	step := func() string {
		switch r.IntN(6) {
		case 0:
			return "^" + link()
		case 1:
			return link() + []string{"*", "+", "?"}[r.IntN(3)]
		case 2:
			return "(" + link() + "|^" + link() + ")" + []string{"*", "+", "?"}[r.IntN(3)]
		case 3:
			return "(" + link() + "/" + link() + ")" + []string{"*", "+", "?"}[r.IntN(3)]
		}
		return link()
	}
	switch r.IntN(10) {
	case 0, 1:
		text = step() + "/" + step()
	case 2:
		a, b := step(), step()
		return a + "|" + b, []string{a, b}
	case 3:
		text = "!" + link()
	case 4:
		a, b := link(), link()
		return "!(" + a + "|^" + b + ")", []string{"!" + a, "^!" + b}
	case 5:
		a := link()
		return a + "{2}", []string{a + "/" + a}
	case 6:
		text = step()
	default:
		text = link()
	}
	return text, []string{text}
}

func (r *sparqlRandom) filter(names []string) (graphql, sparql string) {
	a, b := names[r.IntN(len(names))], names[r.IntN(len(names))]
	switch r.IntN(4) {
	case 0:
		there := r.IntN(2) == 0
		return fmt.Sprintf("{var: %q, exists: %t}", a, there), fmt.Sprintf("FILTER(bound(?%s) = %t) ", a, there)
	case 1:
		return fmt.Sprintf("{var: %q, value: {in: [1, 2]}}", a), fmt.Sprintf("FILTER(?%[1]s * 1 IN (1, 2)) ", a)
	case 2:
		return fmt.Sprintf("{var: %q, value: {gte: 1.5}}", a), fmt.Sprintf("FILTER(?%s >= 1.5) ", a)
	}
	k := r.IntN(4)
	operator, sign := []string{"eqVar", "neVar", "ltVar", "gteVar"}[k], []string{"=", "!=", "<", ">="}[k]
	graphql = fmt.Sprintf("{var: %q, %s: %q}", a, operator, b)
	if k < 2 {
		return graphql, fmt.Sprintf("FILTER(?%s %s ?%s) ", a, sign, b)
	}
	// koine orders entities by their IRIs.
	known := ""
	if sign == ">=" {
		known = fmt.Sprintf(" && datatype(?%s) != <urn:datatype>", a)
	}
	return graphql, fmt.Sprintf("FILTER(IF(isIRI(?%[1]s) && isIRI(?%[3]s), str(?%[1]s) %[2]s str(?%[3]s), ?%[1]s %[2]s ?%[3]s%[4]s)) ", a, sign, b, known)
}

// termOf shows a variable as a term.
func termOf(field, name string) string {
	return fmt.Sprintf(`%s: term(%s) { ... on Entity { iri } ... on Literal { lexical datatype language } } `, name, field)
}

const mostRows = 900

func (r *sparqlRandom) question() (q sparqlQuestion) {
	g := r.group(1 + r.IntN(2))
	names := slices.Sorted(maps.Keys(g.scope))
	q.kind = []string{"rows", "rows", "rows", "distinct", "groups", "order"}[r.IntN(6)]
	if len(names) == 0 {
		return r.question()
	}
	q.names = names
	show := func(names []string) (fields string) {
		for _, name := range names {
			fields += termOf(fmt.Sprintf("var: %q", name), name)
		}
		return fields
	}
	pattern := "pattern: " + g.graphql("") + ", first: 1000"
	switch q.kind {
	case "rows":
		q.graphql = `{ match(` + pattern + `) { totalCount nodes { ` + show(names) + `} } }`
		q.sparql = "SELECT ?" + strings.Join(names, " ?") + " WHERE { " + g.sparql + "}"
	case "distinct":
		q.names = names[:1+r.IntN(len(names))]
		selected, _ := json.Marshal(q.names)
		q.graphql = `{ match(` + pattern + `, distinct: true, select: ` + string(selected) + `) { totalCount nodes { ` + show(q.names) + `} } }`
		q.sparql = "SELECT DISTINCT ?" + strings.Join(q.names, " ?") + " WHERE { " + g.sparql + "}"
	case "groups":
		key, of := names[r.IntN(len(names))], names[r.IntN(len(names))]
		q.names = []string{"key", "n", "different"}
		q.graphql = fmt.Sprintf(`{ match(%s) { totalCount groups(first: 1000, by: [{var: %q, as: "key"}], compute: [{as: "n", fn: COUNT, var: %[3]q}, {as: "different", fn: COUNT_DISTINCT, var: %[3]q}]) { %s } } }`,
			pattern, key, of, termOf(`as: "key"`, "key")+termOf(`as: "n"`, "n")+termOf(`as: "different"`, "different"))
		q.sparql = fmt.Sprintf("SELECT (?%s AS ?key) (COUNT(?%[2]s) AS ?n) (COUNT(DISTINCT ?%[2]s) AS ?different) WHERE { %s} GROUP BY ?%[1]s", key, of, g.sparql)
	case "order":
		key := names[r.IntN(len(names))]
		q.names = []string{key}
		q.graphql = fmt.Sprintf(`{ match(%s, orderBy: [{var: %q}]) { totalCount nodes { %s} } }`,
			"pattern: "+g.graphql(fmt.Sprintf("{var: %q, value: {gte: 0}}", key))+", first: 1000", key, show(q.names))
		q.sparql = fmt.Sprintf("SELECT ?%s WHERE { %s FILTER(?%[1]s >= 0) } ORDER BY ?%[1]s", key, g.sparql)
	}
	return q
}

// sparqlAnswer is the answer of oxigraph.
type sparqlAnswer struct {
	rows []map[string]string
	err  string
}

func askSPARQL(t *testing.T, worlds []*sparqlWorld) (answers []sparqlAnswer) {
	t.Helper()
	type asked struct {
		Graph   string   `json:"graph"`
		Queries []string `json:"queries"`
	}
	var all []asked
	for _, w := range worlds {
		a := asked{Graph: w.triples}
		for _, q := range w.questions {
			a.Queries = append(a.Queries, q.sparql)
		}
		all = append(all, a)
	}
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(5*time.Minute))
	defer cancel()
	command := exec.CommandContext(ctx, "node", "query.mjs")
	command.Dir, command.Stdin = "sparql", bytes.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, &stderr)
	}
	for line := range strings.Lines(string(out)) {
		var a sparqlAnswer
		if err := json.Unmarshal([]byte(line), &a.rows); err != nil {
			a.err = line
		}
		answers = append(answers, a)
	}
	return answers
}

// compare queries koine, and returns the number of rows that were compared, -1 for a query
// with too many.
func (w *sparqlWorld) compare(t *testing.T, q *sparqlQuestion, want sparqlAnswer) int {
	t.Helper()
	if want.err != "" {
		t.Errorf("%s: %s", q.sparql, want.err)
		return -1
	}
	if len(want.rows) > mostRows {
		return -1
	}
	var data struct {
		Match struct {
			TotalCount int
			Nodes      []map[string]*sparqlTerm
			Groups     []map[string]*sparqlTerm
		}
	}
	w.bench.data(q.graphql, "", &data)
	got := data.Match.Nodes
	if q.kind == "groups" {
		got = data.Match.Groups
	} else if data.Match.TotalCount != len(want.rows) {
		t.Errorf("the total is %d, want %d\n%s\n%s\n%s", data.Match.TotalCount, len(want.rows), q.graphql, q.sparql, w.triples)
	}
	var a, b []string
	for _, row := range got {
		a = append(a, q.line(func(name string) string { return row[name].String() }))
	}
	for _, row := range want.rows {
		b = append(b, q.line(func(name string) string { return row[name] }))
	}
	if q.kind != "order" {
		slices.Sort(a)
		slices.Sort(b)
	}
	if !slices.Equal(a, b) {
		t.Errorf("%s\n%s\n%s\ngot  %d %v\nwant %d %v", q.graphql, q.sparql, w.triples, len(a), a, len(b), b)
	}
	return len(b)
}

// line is a row as text; for an order with equal rows, the number.
func (q *sparqlQuestion) line(term func(name string) string) string {
	var line string
	for _, name := range q.names {
		text := term(name)
		if q.kind == "order" {
			lexical, _, _ := strings.Cut(strings.TrimPrefix(text, `"`), `"`)
			f, _ := strconv.ParseFloat(lexical, 64)
			text = fmt.Sprint(f)
		}
		line += text + " "
	}
	return line
}

// sparqlTerm is a term as the fields of Term show it.
type sparqlTerm struct{ Iri, Lexical, Datatype, Language string }

// String is the term as N-Triples has it, without the datatype of a string.
func (s *sparqlTerm) String() string {
	switch {
	case s == nil:
		return ""
	case s.Iri != "":
		return "<" + s.Iri + ">"
	case s.Language != "":
		return strconv.Quote(s.Lexical) + "@" + s.Language
	case s.Datatype == kg.XSDString:
		return strconv.Quote(s.Lexical)
	}
	return strconv.Quote(s.Lexical) + "^^<" + s.Datatype + ">"
}
