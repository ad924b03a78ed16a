package graph_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/graph"
	"koine/kg"
)

var (
	seed   = flag.Uint64("seed", 0, "seed of the random tests; 0 takes another one each time")
	rounds = flag.Int("rounds", 400, "filters per kind of the differential test")
)

// TestFiltersAgainstNaive compares, on a random graph, what random filters and
// views select with a naive evaluation: every statement and every entity is
// looked at, and the filter is read from its JSON again, by other code.
func TestFiltersAgainstNaive(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	r := &random{rand.New(rand.NewPCG(s, 1))}
	b := newBench(t, graph.Options{})
	for range 4 {
		var patches []kg.Patch
		for range 60 {
			patches = append(patches, r.patch())
		}
		b.update(patches...)
	}
	all := b.everything(kg.View{Principal: reader})
	if len(all) < 50 {
		t.Fatalf("only %d statements", len(all))
	}
	selected := 0
	for range *rounds {
		filter := r.statementFilter(3)
		var want []string
		for _, st := range all {
			if naiveStatement(filter, st) {
				want = append(want, st.String())
			}
		}
		selected += len(want)
		b.compare(t, "statements", filter, want)
	}
	for range *rounds {
		filter := r.entityFilter(2)
		want := []string{}
		for name, about := range bySubject(all) {
			if naiveEntity(filter, about) {
				want = append(want, name.Name())
			}
		}
		selected += len(want)
		b.compare(t, "entities", filter, want)
	}
	if selected < *rounds {
		t.Errorf("the filters selected %d things in all: the test says little", selected)
	}
}

// TestViewsAgainstNaive compares what views show.
func TestViewsAgainstNaive(t *testing.T) {
	r := &random{rand.New(rand.NewPCG(7, *seed))}
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
				view := map[string]any{"minCertainty": least, "believedBy": believed, "graphs": graphs}
				var want []string
				for _, st := range all {
					if naiveView(st, least, believed, graphs) {
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

func naiveView(st plain, least float64, believed []string, graphs []any) bool {
	g := st.graph()
	switch {
	case graphs != nil && !slices.Contains(graphs, g):
		return false
	case graphs == nil && g != nil && strings.HasPrefix(g.(string), kg.OwnGraphPrefix):
		return false
	}
	for _, a := range st.Assertions {
		ok := a.EffectiveCertainty() >= least
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
type plain struct{ kg.Statement }

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
		all = append(all, plain{st})
	}
	return all
}

func bySubject(all []plain) map[kg.Term][]plain {
	m := map[kg.Term][]plain{}
	for _, st := range all {
		m[st.Subject] = append(m[st.Subject], st)
	}
	return m
}

func (b *bench) compare(t *testing.T, field string, filter map[string]any, want []string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"where": filter})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if field == "statements" {
		got = b.statements(t, `query ($where: StatementFilter) { statements(first: 1000, where: $where) { totalCount nodes { subject { iri } predicate object { ... on Entity { iri } ... on Literal { lexical datatype language } } graph } } }`, string(text))
	} else {
		var data struct{ Entities connection }
		b.data(`query ($where: EntityFilter) { entities(first: 1000, where: $where) { totalCount nodes { iri } } }`, string(text), &data)
		got = data.Entities.iris()
		if data.Entities.TotalCount != int64(len(got)) {
			t.Errorf("%s: %d nodes of %d", text, len(got), data.Entities.TotalCount)
		}
	}
	sameSets(t, string(text), got, want)
}

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
