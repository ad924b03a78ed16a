package graph_test

import (
	"flag"
	"iter"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/social"
	"koine/kg"
)

var groupedStatements = flag.Int("groups.statements", 1_000_000, "the size of the social network of BenchmarkGroupsOfMany")

// BenchmarkGroups counts the films of each director and shows the ten with the most, in
// the obvious way and by match. In turns with it: the same with a bound of the statements
// that may be read, for which the elements are read one by one and grouped in a table, and
// the least that the store's own means can do, one walk over the statements. Each question is
// asked of a store without a cache of runs, and of one that has answered it before.
func BenchmarkGroups(b *testing.B) {
	for name, bytes := range map[string]int64{"first": -1, "again": 0} {
		b.Run(name, func(b *testing.B) { groupFilms(b, bytes) })
	}
}

func groupFilms(b *testing.B, cache int64) {
	t := newBench(b, unlimited, func(o *kg.Options) { o.TermCache, o.RunCacheBytes = 1<<19, cache })
	t.filmGraph(b)
	type_ := `where: {type: {eq: "` + film + `film"}}`
	groups := `groups(by: [{as: "director", property: "` + directedBy + `"}], first: 10) { key(as: "director") count }`
	b.Run("entities", func(b *testing.B) {
		t.askInTurns(b, directedBy, `entities(`+type_+`%s) { `+groups+` }`)
	})
	b.Run("every entity", func(b *testing.B) {
		t.askInTurns(b, directedBy, `entities(first: 1%s) { groups(by: [{as: "director", property: "`+directedBy+`"}], having: [{as: "director", exists: true}], first: 10) { key(as: "director") count } }`)
	})
	b.Run("match/class", func(b *testing.B) {
		t.askInTurns(b, directedBy, `match(pattern: {triples: [{s: "?film", p: "rdf:type", o: "`+film+`film"}, {s: "?film", p: "<`+directedBy+`>", o: "?director"}]}%s) { groups(by: [{var: "director"}], first: 10) { key(as: "director") count } }`)
	})
	b.Run("match", func(b *testing.B) {
		t.askInTurns(b, directedBy, `match(pattern: {triples: [{s: "?film", p: "<`+directedBy+`>", o: "?director"}]}%s) { groups(by: [{var: "director"}], first: 10) { key(as: "director") count } }`)
	})
}

// unlimited are options for questions that a loaded machine answers slowly.
var unlimited = graph.Options{Limits: limit.Limits{Duration: time.Hour, Reads: math.MaxInt, Rows: math.MaxInt}}

// askInTurns measures a query, in turns with itself under a budget, in the place of %s,
// and with a walk over the statements of a predicate.
func (t *bench) askInTurns(b *testing.B, predicate, query string) {
	b.Helper()
	ask := func(budget string) func() {
		req := t.request("{ "+strings.ReplaceAll(query, "%s", budget)+" }", "")
		return func() {
			if r := t.engine.Execute(b.Context(), req); len(r.Errors) > 0 {
				b.Fatal(r.Errors)
			}
		}
	}
	sides := []side{
		{"engine", ask("")},
		{"elements", ask(", budget: {maxStatements: 1000000000}")},
		{"walk", func() { t.walkPredicate(b, predicate) }},
	}
	for _, s := range sides {
		s.do() // warm
	}
	busyInTurns(b, sides)
}

// busyInTurns measures the processor time of the sides in turns, in milliseconds, and the
// ratio of the first to each of the others, and the time of the median round of the first.
func busyInTurns(b *testing.B, sides []side) {
	busy := make([]time.Duration, len(sides))
	var took []float64
	for b.Loop() {
		for i, s := range sides {
			from, start := processorTime(b), time.Now()
			s.do()
			busy[i] += processorTime(b) - from
			if i == 0 {
				took = append(took, float64(time.Since(start).Microseconds())/1000)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // a round is no unit
	b.ReportMetric(median(took), "wall-ms")
	for i, s := range sides {
		b.ReportMetric(float64(busy[i].Microseconds())/1000/float64(b.N), s.name+"-ms")
		if i > 0 {
			b.ReportMetric(float64(busy[0])/float64(busy[i]), "x-"+s.name)
		}
	}
}

func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func (t *bench) walkPredicate(b *testing.B, predicate string) {
	s, err := t.store.View(b.Context(), kg.View{Principal: reader})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	p, _, err := s.PatternIDs(kg.Pattern{Predicate: kg.IRI(predicate)})
	n := 0
	if err == nil {
		err = kg.WalkIDs(s, p, func(*kg.IDQuad) error { n++; return nil })
	}
	if n == 0 || err != nil {
		b.Fatal(n, err)
	}
}

// socialNetwork loads a generated social network.
func (t *bench) socialNetwork(b *testing.B, n int) {
	b.Helper()
	quads := func(yield func(kg.Quad, error) bool) {
		for q := range social.Statements(n, kg.DefaultGraph) {
			if !yield(q, nil) {
				return
			}
		}
	}
	if _, err := t.store.Load(b.Context(), kg.Meta{}, iter.Seq2[kg.Quad, error](quads), kg.LoadOptions{}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGroupsOfMany groups in a social network: all likes by their post, and the
// people of 58 years and more by their city, with the average of their age.
func BenchmarkGroupsOfMany(b *testing.B) {
	t := newBench(b, unlimited, func(o *kg.Options) { o.TermCache, o.RunCacheBytes = 1<<19, -1 })
	t.socialNetwork(b, *groupedStatements)
	ns := social.Vocabulary
	b.Run("likes/match", func(b *testing.B) {
		t.askInTurns(b, ns+"likes", `match(pattern: {triples: [{s: "?who", p: "<`+ns+`likes>", o: "?post"}]}%s) { groups(by: [{var: "post"}], first: 10) { key(as: "post") count } }`)
	})
	b.Run("likes/statements", func(b *testing.B) {
		t.askInTurns(b, ns+"likes", `statements(where: {predicate: {eq: "`+ns+`likes"}}%s) { groups(by: [{as: "post", by: OBJECT}], first: 10) { key(as: "post") count } }`)
	})
	b.Run("classes", func(b *testing.B) {
		t.askInTurns(b, kg.RDFType, `entities(first: 1%s) { groups(by: [{as: "class", property: "rdf:type"}], having: [{as: "class", exists: true}], first: 10) { key(as: "class") count } }`)
	})
	b.Run("predicates", func(b *testing.B) {
		t.askInTurns(b, kg.RDFType, `statements(first: 1%s) { groups(by: [{as: "predicate", by: PREDICATE}], first: 10) { key(as: "predicate") count } }`)
	})
	b.Run("average", func(b *testing.B) {
		t.askInTurns(b, ns+"age", `entities(where: {type: {eq: "`+ns+`Person"}, property: [{predicate: "`+ns+`age", gte: 58}]}%s) { groups(by: [{as: "city", property: "`+ns+`city"}], compute: [{as: "age", fn: AVG, property: "`+ns+`age"}], first: 10) { key(as: "city") count value(as: "age") } }`)
	})
}

// BenchmarkTriangles counts the triangles of acquaintances in a social network: a join of
// all three sides in memory, in turns with one side after the other, which a budget asks for.
func BenchmarkTriangles(b *testing.B) {
	t := newBench(b, unlimited, func(o *kg.Options) { o.TermCache, o.RunCacheBytes = 1<<19, -1 })
	t.socialNetwork(b, *groupedStatements)
	knows := `p: "<` + social.Vocabulary + `knows>"`
	t.askInTurns(b, social.Vocabulary+"knows", `match(first: 1, pattern: {triples: [{s: "?a", `+knows+`, o: "?b"}, {s: "?b", `+knows+`, o: "?c"}, {s: "?a", `+knows+`, o: "?c"}]}%s) { totalCount }`)
}
