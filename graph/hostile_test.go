package graph_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
)

// hostile are queries within the limits with the highest possible cost: wide, deep, full of
// aliases, scans without an index, orders by counts.
func hostile() []string {
	var aliases, deep strings.Builder
	for i := range 49 {
		aliases.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26)) + `: entities(first: 20, where: {property: [{predicate: "ex:name", contains: "number 9"}]}) { totalCount } `)
	}
	for range 5 {
		deep.WriteString(`in(first: 4) { nodes { subject { iri label out(first: 1) { nodes { object { ... on Entity { iri `)
	}
	deep.WriteString(`iri` + strings.Repeat(` } } } } } } } `, 5))
	return []string{
		`{ ` + aliases.String() + `}`,
		`{ entities(first: 1000, orderBy: [{by: DEGREE, direction: DESC}]) { totalCount nodes { iri degree predicates { iri count } } } }`,
		`{ entities(first: 1000, where: {property: [{predicate: "ex:name", regex: "^(.*)*9.*[0-9]$"}]}, orderBy: [{property: "ex:name"}]) { nodes { iri } } }`,
		`{ statements(first: 1000, orderBy: [{by: OBJECT, direction: DESC}]) { totalCount nodes { id subject { iri label } predicate certainty } } }`,
		`{ entities(first: 20) { nodes { iri ` + deep.String() + ` } } }`,
		`{ entities(first: 1000) { nodes { out(first: 20) { totalCount nodes { id object { ... on Entity { iri label degree } } } } } } }`,
		`{ statements(first: 1, where: {object: {contains: "nowhere"}}) { totalCount nodes { id } } }`,
		`{ entities(first: 1000, where: {not: {property: [{predicate: "ex:name", endsWith: "7"}]}}) { totalCount nodes { iri types label } } }`,
	}
}

// BenchmarkBesideHostile measures a light query alone, and again while eight
// clients send hostile ones: its median and 99th percentile in milliseconds, and
// the longest that a hostile one took, which must end within its limit and a
// second.
//
//	go test ./graph -run '^$' -bench BesideHostile -benchtime 2000x
func BenchmarkBesideHostile(b *testing.B) {
	const bound = 2 * time.Second
	t := newBench(b, graph.Options{Limits: limit.Limits{Duration: bound}})
	for range 3 {
		t.manyThings()
	}
	t.performances(3000)
	t.team()
	light := t.request(`{ entity(iri: "ex:ada") { iri label age: value(predicate: "ex:age") } }`, "")
	measure := func(b *testing.B) {
		var took []float64
		for b.Loop() {
			start := time.Now()
			if r := t.engine.Execute(b.Context(), light); len(r.Errors) > 0 {
				b.Fatal(r.Errors)
			}
			took = append(took, float64(time.Since(start).Microseconds())/1000)
			time.Sleep(time.Millisecond) // a client that comes and goes
		}
		slices.Sort(took)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(took[len(took)/2], "p50-ms")
		b.ReportMetric(took[len(took)*99/100], "p99-ms")
	}
	b.Run("alone", measure)
	b.Run("beside", func(b *testing.B) {
		var stop atomic.Bool
		var slowest, ended, refused atomic.Int64
		var wg sync.WaitGroup
		for _, query := range hostile() {
			req := t.request(query, "")
			wg.Go(func() {
				for !stop.Load() {
					start := time.Now()
					r := t.engine.Execute(b.Context(), req)
					took := time.Since(start)
					ended.Add(1)
					if len(r.Errors) > 0 {
						refused.Add(1)
						if code := r.Errors[0].Extensions["code"]; code != "LIMIT_EXCEEDED" && code != "TIMEOUT" {
							b.Errorf("%.80s: %v", query, r.Errors)
							return
						}
					}
					slowest.Store(max(slowest.Load(), int64(took)))
				}
			})
		}
		measure(b)
		stop.Store(true)
		wg.Wait()
		if took := time.Duration(slowest.Load()); took > bound+time.Second {
			b.Errorf("a hostile query took %v", took)
		}
		b.ReportMetric(float64(slowest.Load())/1e6, "hostile-max-ms")
		b.ReportMetric(float64(ended.Load()), "hostile")
		b.ReportMetric(float64(refused.Load()), "limited")
	})
}
