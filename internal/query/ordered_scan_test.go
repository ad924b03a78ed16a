package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"koine/internal/query/pattern"
	"koine/internal/slowtest"
	"koine/kg"
)

// orderedPatterns are patterns that an ordered scan of ?v may begin with, or must not.
func orderedPatterns(predicate kg.Term, random *rand.Rand) []pattern.Group {
	v := pattern.Var
	term := func(iri string) pattern.Node { return pattern.Term(kg.IRI(iri)) }
	values := pattern.Triple{Subject: v("s"), Predicate: pattern.Term(predicate), Object: v("v")}
	named, inGraph := values, values
	named.Graph, inGraph.Graph = v("g"), term("urn:g")
	class := pattern.Triple{Subject: v("s"), Predicate: pattern.Term(RDFType), Object: term("urn:c0")}
	other := pattern.Triple{Subject: v("s"), Predicate: term("urn:p1"), Object: v("w")}
	loop := pattern.Triple{Subject: v("v"), Predicate: term("urn:p2"), Object: v("v")}
	odd := pattern.Filter{Vars: []string{"v"}, Holds: func(t []kg.Term) bool { return len(t[0].Value())%2 == 1 }}
	ranged := odd
	ranged.Holds = func(t []kg.Term) bool { return t[0].Datatype() == kg.XSDInteger }
	ranged.Objects = &kg.Objects{Ranges: kg.UniteIDs([]kg.IDRange{kg.IntegerIDs(math.MinInt64, math.MaxInt64), kg.NumberedLiteralIDs()})}
	all := []pattern.Group{
		{Triples: []pattern.Triple{values}},
		{Triples: []pattern.Triple{named}},
		{Triples: []pattern.Triple{inGraph}},
		{Triples: []pattern.Triple{values, class}},
		{Triples: []pattern.Triple{class, values, other}},
		{Triples: []pattern.Triple{values, loop}},
		{Triples: []pattern.Triple{values}, Filters: []pattern.Filter{odd}},
		{Triples: []pattern.Triple{values}, Filters: []pattern.Filter{ranged}},
		{Triples: []pattern.Triple{values}, Optional: []pattern.Group{{Triples: []pattern.Triple{other}}}},
		{Triples: []pattern.Triple{values}, NotExists: []pattern.Group{{Triples: []pattern.Triple{class}}}},
		{Triples: []pattern.Triple{values}, Unions: [][]pattern.Group{{{Triples: []pattern.Triple{class}}, {Triples: []pattern.Triple{other}}}}},
		{Triples: []pattern.Triple{class}, Optional: []pattern.Group{{Triples: []pattern.Triple{values}}}},
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// Pages of ordered rows are the same whether an ordered scan finds them or all rows are sorted, in
// every view, and whichever found the pages before.
func TestOrderedScans(t *testing.T) {
	slowtest.WithoutRace(t)
	random := rand.New(rand.NewPCG(5, 6))
	store := mixedStore(t, random, 6_000)
	scanned, sorted := map[string]int{}, 0
	eachView(t, store, func(s *kg.Snapshot) {
		for n := range 4 {
			predicate := kg.IRI(fmt.Sprint("urn:p", n))
			for _, g := range orderedPatterns(predicate, random) {
				p, err := pattern.Compile(g, pattern.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				by := MatchOrder{Var: "v", Direction: []SortDirection{Ascending, Descending}[random.IntN(2)], Nulls: []NullsOrder{NullsFirst, NullsLast}[random.IntN(2)]}
				q := pattern.Query{Order: []pattern.Order{by.SortKey()}}
				if slices.Contains(p.Names(), "w") && random.IntN(2) == 0 {
					q.Order = append(q.Order, MatchOrder{Var: "w", Direction: Descending}.SortKey())
				}
				if random.IntN(3) == 0 {
					q.Distinct, q.Select = true, []string{"v", "w", "s"}[:1+random.IntN(2)]
					if q.Select[len(q.Select)-1] == "w" && !slices.Contains(p.Names(), "w") || len(q.Order) == 2 && len(q.Select) < 2 {
						q.Distinct, q.Select = false, nil
					}
				}
				all, _, _ := orderedRows(t, p, s, q, 1<<30)
				from := 0
				for q.First = 1 + random.IntN(30); from < min(len(all), 90); {
					rows, place, kind := orderedRows(t, p, s, q, q.First)
					if want := all[from:min(from+q.First, len(all))]; !slices.Equal(rows, want) {
						t.Fatalf("%s by %s, %s, distinct %t, rows from %d on: got\n%v, want\n%v", fmt.Sprint(g.Triples), predicate, by.Direction, q.Distinct, from, rows, want)
					}
					if kind == "order" {
						scanned[fmt.Sprint(predicate, by.Direction)]++
					} else {
						sorted++
					}
					from, q.After = from+len(rows), place
				}
			}
		}
	})
	for _, p := range []string{"<urn:p1>", "<urn:p3>"} {
		for _, d := range []SortDirection{Ascending, Descending} {
			if scanned[fmt.Sprint(kg.IRI(p[1:len(p)-1]), d)] < 20 {
				t.Errorf("only %v pages were found by ordered scans", scanned)
			}
		}
	}
	if sorted < 20 {
		t.Errorf("only %d pages were sorted", sorted)
	}
}

// orderedRows reads up to n rows, and returns the cursor behind them and the kind of the first step.
func orderedRows(t *testing.T, p *pattern.Pattern, s *kg.Snapshot, q pattern.Query, n int) (rows []string, place []byte, kind string) {
	t.Helper()
	e, err := p.Evaluate(t.Context(), s, q)
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range e.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows, place = append(rows, fmt.Sprint(row)), e.Cursor()
		if len(rows) == n {
			break
		}
	}
	return rows, place, e.Explain()[0].Kind
}

// An ordered scan reads what it returns, and gives up where few rows match.
func TestOrderedScanReadsLittle(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	store := mixedStore(t, random, 60_000)
	s, err := store.View(t.Context(), kg.View{Principal: kg.Principal{ID: "agent://root"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	values := pattern.Triple{Subject: pattern.Var("s"), Predicate: pattern.Term(kg.IRI("urn:p3")), Object: pattern.Var("v")}
	for _, c := range []struct {
		holds func([]kg.Term) bool
		kind  string
		most  int64
	}{
		{func([]kg.Term) bool { return true }, "order", 600},
		{func(t []kg.Term) bool { return t[0].Value() == "19" }, "scan", 1 << 30},
	} {
		p, err := pattern.Compile(pattern.Group{Triples: []pattern.Triple{values}, Filters: []pattern.Filter{{Vars: []string{"v"}, Holds: c.holds}}}, pattern.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Evaluate(t.Context(), s, pattern.Query{First: 10, Order: []pattern.Order{MatchOrder{Var: "v"}.SortKey()}})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range e.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 10 {
				break
			}
		}
		if kind := e.Explain()[0].Kind; kind != c.kind || n == 0 || e.StatementsRead() > c.most {
			t.Errorf("%d rows by %s after %d statements, want %s and at most %d", n, kind, e.StatementsRead(), c.kind, c.most)
		}
	}
}
