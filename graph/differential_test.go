package graph_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/internal/slowtest"
	"koine/kg"
)

var (
	seed   = flag.Uint64("seed", 0, "seed of the random tests; 0 takes another one each time")
	rounds = flag.Int("rounds", 400, "filters per kind of the differential test")
)

// TestFiltersAgainstNaive compares, on a random graph, the results of random filters and
// views with a naive evaluation: it reads every statement and every entity, and parses the
// filter from its JSON again, with other code.
func TestFiltersAgainstNaive(t *testing.T) {
	slowtest.Long(t)
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{Rand: rand.New(rand.NewPCG(s, 1))}
	c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	b := newBench(t, graph.Options{}, c.configure)
	r.moment = c.now
	for range 4 {
		var patches []kg.Patch
		for range 60 {
			patches = append(patches, r.patch())
		}
		b.update(patches...)
	}
	now := c.stop()
	for _, least := range []float64{0, 0.5} {
		all := b.everything(kg.View{Principal: reader, MinCertainty: least})
		for i := range all {
			all[i].now = now
		}
		if len(all) < 50 {
			t.Fatalf("only %d statements", len(all))
		}
		view := map[string]any{"minCertainty": least}
		if n := b.compareStatements(t, r, all, view); n < *rounds {
			t.Errorf("the filters selected %d statements in all: the test says little", n)
		}
		if n := b.compareEntities(t, r, bySubject(all), view); n < *rounds {
			t.Errorf("the filters selected %d entities in all: the test says little", n)
		}
	}
}

func (b *bench) compareStatements(t *testing.T, r *random, all []plain, view map[string]any) (selected int) {
	for range *rounds {
		filter := r.statementFilter(3)
		var want []string
		for _, st := range all {
			if naiveStatement(filter, st) {
				want = append(want, st.String())
			}
		}
		selected += len(want)
		text, _ := json.Marshal(map[string]any{"where": filter, "view": view})
		got := b.statements(t, `query ($where: StatementFilter, $view: ViewInput) { statements(first: 1000, where: $where, view: $view) { totalCount nodes { subject { iri } predicate object { ... on Entity { iri } ... on Literal { lexical datatype language } } graph } } }`, string(text))
		sameSets(t, string(text), got, want)
	}
	return selected
}

// compareEntities evaluates each filter twice: so that an index can be used, and as the
// only branch of an `or`, which uses none.
func (b *bench) compareEntities(t *testing.T, r *random, all things, view map[string]any) (selected int) {
	for range *rounds {
		filter := r.entityFilter(2)
		want := []string{}
		for name := range all {
			if naiveEntity(filter, name, all) {
				want = append(want, name.Name())
			}
		}
		selected += len(want)
		for _, where := range []any{filter, map[string]any{"or": []any{filter}}} {
			text, _ := json.Marshal(map[string]any{"where": where, "view": view})
			var data struct{ Entities connection }
			b.data(`query ($where: EntityFilter, $view: ViewInput) { entities(first: 1000, where: $where, view: $view) { totalCount nodes { iri } } }`, string(text), &data)
			got := data.Entities.iris()
			if data.Entities.TotalCount != int64(len(got)) {
				t.Errorf("%s: %d nodes of %d", text, len(got), data.Entities.TotalCount)
			}
			sameSets(t, string(text), got, want)
		}
	}
	return selected
}

// TestViewsAgainstNaive compares the statements of views.
func TestViewsAgainstNaive(t *testing.T) {
	r := &random{Rand: rand.New(rand.NewPCG(7, *seed))}
	b := newBench(t, graph.Options{})
	var patches []kg.Patch
	for range 80 {
		patches = append(patches, r.patch())
	}
	b.update(patches...)
	all := b.everything(kg.View{Principal: reader, AllGraphs: true})
	for _, least := range []float64{0, 0.3, 0.5, 1} {
		for _, believed := range [][]string{nil, {}, {"a1"}, {"agent://a1", "a2"}} {
			for _, graphs := range [][]any{nil, {}, {nil}, {ex + "g1"}, {nil, ex + "g1"}, {string(kg.OwnGraphPrefix) + "x"}} {
				for _, valid := range []any{nil, year(1980), year(1990), year(1990).Add(-1), year(2000)} {
					view := map[string]any{"minCertainty": least, "believedBy": believed, "graphs": graphs, "validAt": valid}
					var want []string
					for _, st := range all {
						if naiveView(st, least, believed, graphs, valid) {
							want = append(want, st.String())
						}
					}
					text, _ := json.Marshal(map[string]any{"view": view})
					got := b.statements(t, `query ($view: ViewInput) { statements(first: 1000, view: $view) { totalCount nodes { subject { iri } predicate object { ... on Entity { iri } ... on Literal { lexical datatype language } } graph } } }`, string(text))
					sameSets(t, string(text), got, want)
				}
			}
		}
	}
}

func naiveView(st plain, least float64, believed []string, graphs []any, valid any) bool {
	g := st.graph()
	switch {
	case graphs != nil && !slices.Contains(graphs, g):
		return false
	case graphs == nil && g != nil && strings.HasPrefix(g.(string), kg.OwnGraphPrefix):
		return false
	}
	for _, a := range st.Assertions {
		ok := a.EffectiveCertainty() >= least
		if at, asked := valid.(time.Time); asked {
			ok = ok && !at.Before(a.Validity.From) && (a.Validity.Until.IsZero() || at.Before(a.Validity.Until))
		}
		if believed != nil {
			ok = ok && (slices.Contains(believed, string(a.Source)) || slices.Contains(believed, strings.TrimPrefix(string(a.Source), "agent://")))
		}
		if ok {
			return true
		}
	}
	return false
}

// plain is a statement as the naive evaluation sees it.
type plain struct {
	kg.Statement
	now time.Time // of the read
}

// graph is the graph's name, nil for the default graph.
func (p plain) graph() any {
	if p.Graph == kg.DefaultGraph {
		return nil
	}
	return p.Graph.Value()
}

func (p plain) String() string {
	return fmt.Sprint(p.Subject.Name(), " ", p.Predicate.Name(), " ", termText(p.Object.Name(), p.Object.Value(), p.Object.Datatype(), p.Object.Lang()), " ", p.graph())
}

func termText(name, lexical, datatype, lang string) string {
	if datatype == "" {
		return name
	}
	return fmt.Sprintf("%q^^%s@%s", lexical, datatype, lang)
}

func (b *bench) everything(view kg.View) (all []plain) {
	b.t.Helper()
	s, err := b.store.View(b.t.Context(), view)
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	for st, err := range s.Match(kg.Pattern{}) {
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, plain{Statement: st})
	}
	return all
}

// bySubject are the statements about each subject.
func bySubject(all []plain) things {
	m := things{}
	for _, st := range all {
		m[st.Subject] = append(m[st.Subject], st)
	}
	return m
}

type things map[kg.Term][]plain

func (b *bench) statements(t *testing.T, query, variables string) (got []string) {
	t.Helper()
	var data struct {
		Statements struct {
			TotalCount int
			Nodes      []struct {
				Subject   struct{ IRI string }
				Predicate string
				Object    struct{ IRI, Lexical, Datatype, Language string }
				Graph     any
			}
		}
	}
	b.data(query, variables, &data)
	for _, n := range data.Statements.Nodes {
		o := n.Object
		got = append(got, fmt.Sprint(n.Subject.IRI, " ", n.Predicate, " ", termText(o.IRI, o.Lexical, o.Datatype, o.Language), " ", n.Graph))
	}
	if data.Statements.TotalCount != len(got) {
		t.Errorf("%s: %d nodes of %d", variables, len(got), data.Statements.TotalCount)
	}
	return got
}

func sameSets(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s\ngot  %v\nwant %v", what, got, want)
	}
}
