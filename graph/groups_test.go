package graph_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/query"
	"koine/kg"
)

// number is the value of a literal in sums; other code than the engine's.
func number(t kg.Term) (r *big.Rat, ok bool) {
	switch strings.TrimPrefix(t.Datatype(), kg.XSD) {
	case "integer", "decimal", "double":
		r, ok = new(big.Rat).SetString(t.Value())
	}
	return r, ok && t.IsLiteral()
}

// distinct gives each term once, by how it is written.
func distinct(terms []kg.Term) map[string]kg.Term {
	m := map[string]kg.Term{}
	for _, t := range terms {
		m[t.String()] = t
	}
	return m
}

// naiveGroup is a group with all that was put into it.
type naiveGroup struct {
	count  int
	values []kg.Term
}

func (g *naiveGroup) String() string {
	total, numbers := new(big.Rat), int64(0)
	for _, t := range g.values {
		if r, ok := number(t); ok {
			total.Add(total, r)
			numbers++
		}
	}
	mean := "null"
	if numbers > 0 {
		f, _ := new(big.Rat).Quo(total, big.NewRat(numbers, 1)).Float64()
		mean = fmt.Sprintf("%.6f", f)
	}
	sum, _ := total.Float64()
	return fmt.Sprintf("count=%d values=%d different=%d sum=%.6f mean=%s", g.count, len(g.values), len(distinct(g.values)), sum, mean)
}

// naiveGroups puts each thing into a group for each way to choose its keys.
func naiveGroups(things [][]plain, keys func([]plain) [][]kg.Term, values func([]plain) []kg.Term) map[string]*naiveGroup {
	groups := map[string]*naiveGroup{}
	for _, thing := range things {
		ways := []string{""}
		for _, terms := range keys(thing) {
			names := []string{"null"}
			if len(terms) > 0 {
				names = nil
				for m := range distinct(terms) {
					names = append(names, m)
				}
			}
			var more []string
			for _, way := range ways {
				for _, n := range names {
					more = append(more, way+"|"+n)
				}
			}
			ways = more
		}
		for _, way := range ways {
			g := groups[way]
			if g == nil {
				g = &naiveGroup{}
				groups[way] = g
			}
			g.count++
			for _, t := range distinct(values(thing)) {
				g.values = append(g.values, t)
			}
		}
	}
	return groups
}

// TestGroupsAgainstNaive compares groups of random graphs with a naive evaluation, and
// checks the invariants of the shown keys.
func TestGroupsAgainstNaive(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{Rand: rand.New(rand.NewPCG(s, 2))}
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for range 200 {
		patches = append(patches, r.patch())
	}
	b.update(patches...)
	var things [][]plain
	all := b.everything(kg.View{Principal: reader})
	for _, about := range bySubject(all) {
		things = append(things, about)
	}
	of := func(predicate kg.Term) func([]plain) []kg.Term {
		return func(about []plain) (terms []kg.Term) {
			for _, st := range about {
				if st.Predicate == predicate {
					terms = append(terms, st.Object)
				}
			}
			return terms
		}
	}
	ends := func(p naivePath) func([]plain) []kg.Term {
		return func(about []plain) []kg.Term {
			return slices.Collect(maps.Keys(p.ends(about[0].Subject, bySubject(all))))
		}
	}
	for range 40 {
		one, two, computed := r.path(2), r.predicate(), r.predicate()
		want := naiveGroups(things, func(about []plain) [][]kg.Term { return [][]kg.Term{ends(one)(about), of(two)(about)} }, of(computed))
		query := fmt.Sprintf(`{ entities { groups(first: 1000, by: [{as: "one", path: %q}, {as: "two", property: %q}], compute: [
			{as: "values", fn: COUNT, property: %[3]q}, {as: "different", fn: COUNT_DISTINCT, property: %[3]q}, {as: "sum", fn: SUM, property: %[3]q}, {as: "mean", fn: AVG, property: %[3]q}
		]) { keys values count `+groupTerms+` } } }`, one.String(), two.Name(), computed.Name())
		sameGroups(t, b, "entities", query, want)
	}
	single := make([][]plain, len(all))
	for i, st := range all {
		single[i] = []plain{st}
	}
	object := func(about []plain) []kg.Term { return []kg.Term{about[0].Object} }
	want := naiveGroups(single, func(about []plain) [][]kg.Term {
		graph := []kg.Term{about[0].Graph}
		if about[0].Graph == kg.DefaultGraph {
			graph = nil
		}
		return [][]kg.Term{{about[0].Predicate}, graph}
	}, object)
	sameGroups(t, b, "statements", `{ statements { groups(first: 1000, by: [{as: "one", by: PREDICATE}, {as: "two", by: GRAPH}], compute: [
		{as: "values", fn: COUNT, of: OBJECT}, {as: "different", fn: COUNT_DISTINCT, of: OBJECT}, {as: "sum", fn: SUM, of: OBJECT}, {as: "mean", fn: AVG, of: OBJECT}
	]) { keys values count `+groupTerms+` } } }`, want)
}

// groupTerms shows the keys as terms.
const groupTerms = `one: term(as: "one") { ... on Entity { iri } ... on Literal { lexical datatype language } }
	two: term(as: "two") { ... on Entity { iri } ... on Literal { lexical datatype language } }`

func sameGroups(t *testing.T, b *bench, field, query string, want map[string]*naiveGroup) {
	t.Helper()
	var data map[string]struct {
		Groups []struct {
			Keys     struct{ One, Two any }
			One, Two *struct{ Iri, Lexical, Datatype, Language string }
			Values   struct {
				Values, Different int
				Sum               float64
				Mean              *float64
			}
			Count int
		}
	}
	b.data(query, "", &data)
	var got []string
	last := 1 << 30
	for _, g := range data[field].Groups {
		mean := "null"
		if g.Values.Mean != nil {
			mean = fmt.Sprintf("%.6f", *g.Values.Mean)
		}
		got = append(got, fmt.Sprintf("count=%d values=%d different=%d sum=%.6f mean=%s", g.Count, g.Values.Values, g.Values.Different, g.Values.Sum, mean))
		if g.Count > last {
			t.Errorf("%s: a group of %d behind one of %d", query, g.Count, last)
		}
		last = g.Count
	}
	var expected []string
	for _, g := range want {
		expected = append(expected, g.String())
	}
	sameSets(t, query, got, expected)
	seen := map[string]bool{}
	for _, g := range data[field].Groups {
		key := fmt.Sprintf("%+v %+v", g.One, g.Two)
		if seen[key] {
			t.Errorf("%s: the keys %s twice", query, key)
		}
		seen[key] = true
	}
}

// Sums of integers and decimals are exact, of any size.
func TestSumsAreExact(t *testing.T) {
	b := newBench(t, graph.Options{})
	age := iri("age")
	b.update(
		add(iri("a"), age, kg.Typed("9223372036854775807", kg.XSDInteger)), add(iri("b"), age, kg.Typed("9223372036854775807", kg.XSDInteger)),
		add(iri("c"), age, kg.Typed("0.1", kg.XSDDecimal)), add(iri("d"), age, kg.Typed("0.2", kg.XSDDecimal)),
		add(iri("e"), age, kg.Typed("-12345678901234567890123", kg.XSDInteger)), add(iri("f"), age, kg.String("7")),
	)
	for _, c := range []struct{ where, want string }{
		{`{iri: {in: ["ex:a", "ex:b"]}}`, `{"sum":18446744073709551614,"mean":9223372036854775807}`},
		{`{iri: {in: ["ex:c", "ex:d"]}}`, `{"sum":0.3,"mean":0.15}`},
		{`{iri: {in: ["ex:a", "ex:e"]}}`, `{"sum":-12336455529197713114316,"mean":-6168227764598856557158}`},
		{`{iri: {in: ["ex:c", "ex:d", "ex:a", "ex:f"]}}`, `{"sum":9223372036854775807.3,"mean":3074457345618258602.433333333333333333}`},
	} {
		got := b.execute(`{ entities(where: `+c.where+`) { groups(compute: [{as: "sum", fn: SUM, property: "ex:age"}, {as: "mean", fn: AVG, property: "ex:age"}]) { values } } }`, "")
		var data struct {
			Entities struct {
				Groups []struct{ Values json.RawMessage }
			}
		}
		if err := json.Unmarshal(got.Data, &data); err != nil || len(got.Errors) > 0 {
			t.Fatal(err, got.Errors)
		}
		if v := string(data.Entities.Groups[0].Values); v != c.want {
			t.Errorf("%s: got %s, want %s", c.where, v, c.want)
		}
	}
}

// TestGroupBounds tests each bound, at and past it.
func TestGroupBounds(t *testing.T) {
	b := newBench(t, graph.Options{Limits: limit.Limits{Groups: 3, GroupedValues: 5, PageSize: 10}})
	var patches []kg.Patch
	for i := range 4 {
		patches = append(patches, add(iri(fmt.Sprint("s", i)), iri("p"), kg.Integer(int64(i))))
	}
	for i := range 3 {
		patches = append(patches, add(iri(fmt.Sprint("s", i)), iri("q"), kg.Integer(int64(i))), add(iri(fmt.Sprint("s", i)), iri("r"), kg.Integer(int64(i+10))))
	}
	b.update(patches...)
	keys := func(n int) string {
		return strings.Join(slices.Collect(func(yield func(string) bool) {
			for i := range n {
				if !yield(fmt.Sprintf(`{as: "k%d", property: "ex:none"}`, i)) {
					return
				}
			}
		}), ", ")
	}
	computed := func(n int) string {
		return repeat(n, func(i int) string { return fmt.Sprintf(`{as: "c%d", fn: COUNT}, `, i) })
	}
	for _, c := range []struct{ limit, at, past string }{
		{"groups", `where: {property: {predicate: "ex:q"}}) { groups(by: [{as: "q", property: "ex:q"}])`, `) { groups(by: [{as: "p", property: "ex:p"}])`},
		{"groupedValues", `) { groups(compute: [{as: "p", fn: COUNT, property: "ex:p"}, {as: "q", fn: COUNT, property: "ex:q"}])`, `) { groups(compute: [{as: "p", fn: COUNT, property: "ex:p"}, {as: "r", fn: COUNT, property: "ex:r"}])`},
		{"groupKeys", `) { groups(by: [` + keys(query.MaxGroupKeys) + `])`, `) { groups(by: [` + keys(query.MaxGroupKeys+1) + `])`},
		{"groupValues", `) { groups(compute: [` + computed(query.MaxComputed) + `])`, `) { groups(compute: [` + computed(query.MaxComputed+1) + `])`},
		{"pageSize", `) { groups(first: 10)`, `) { groups(first: 11)`},
	} {
		if r := b.execute(`{ entities(first: 1, `+c.at+` { count } } }`, ""); len(r.Errors) > 0 {
			t.Errorf("%s: at the bound: %v", c.limit, r.Errors)
		}
		r := b.execute(`{ entities(first: 1, `+c.past+` { count } } }`, "")
		if len(r.Errors) != 1 || r.Errors[0].Extensions["limit"] != c.limit || r.Errors[0].Extensions["code"] != string(kg.CodeLimitExceeded) {
			t.Errorf("%s: past the bound: %v", c.limit, r.Errors)
		}
	}
}

// The number of instances of a class comes from the catalogue if that has it, and equals
// that of a scan.
func TestTotalOfAClass(t *testing.T) {
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for i := range 50 {
		patches = append(patches, add(iri(fmt.Sprint("s", i)), kg.IRI(kg.RDFType), iri("C")))
	}
	b.update(patches...)
	total := func(where string) (n int64, read int64) {
		t.Helper()
		r := b.execute(`{ entities(first: 2, where: `+where+`) { totalCount nodes { iri } } }`, "")
		var data struct{ Entities connection }
		if err := json.Unmarshal(r.Data, &data); err != nil || len(r.Errors) > 0 {
			t.Fatal(err, r.Errors)
		}
		return data.Entities.TotalCount, r.StatementsRead
	}
	known, read := total(`{type: {eq: "ex:C"}}`)
	scanned, readAll := total(`{type: {in: ["ex:C"]}}`)
	if known != 50 || scanned != 50 || read >= 20 || readAll < 50 {
		t.Errorf("got %d of %d statements, and %d of %d by a scan", known, read, scanned, readAll)
	}
	b.update(in(iri("g"), add(iri("s1"), kg.IRI(kg.RDFType), iri("C"))))
	if n, _ := total(`{type: {eq: "ex:C"}}`); n != 50 {
		t.Errorf("with one of them in two graphs: got %d", n)
	}
	if n, _ := total(`{type: {eq: "ex:C", contains: "nothing"}}`); n != 0 {
		t.Errorf("with a second condition: got %d", n)
	}
}
