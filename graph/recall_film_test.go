package graph_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/graph"
	"koine/graph/limit"
	"koine/internal/compact"
	"koine/internal/rdf"
	"koine/internal/search"
	"koine/internal/slowtest"
	"koine/kg"
)

// The tokens that recall and GraphQL may use for a film and its people, and the share of the
// facts of GraphQL that recall has.
const (
	recallTokens  = 600
	graphqlTokens = 3_000
	recallShare   = 0.9
	recallPart    = 0.33 // of the tokens of GraphQL, in the mean
)

const filmAndPeople = `query($film: IRI!, $first: Int) { entity(iri: $film) { iri label out(first: $first) { nodes { predicate object {
	... on Entity { iri label out(first: 20) { nodes { predicate object { ... on Entity { iri label } ... on Literal { value } } } } } ... on Literal { value } } } } } }`

// answeredTerm is a term in the answer to filmAndPeople.
type answeredTerm struct {
	IRI, Label string
	Value      any
	Out        struct {
		Nodes []struct {
			Predicate string
			Object    answeredTerm
		}
	}
}

// recall of a film and its people in 600 tokens has at least 90 % of the facts that GraphQL
// has in 3,000. KOINE_FILMS names the film graph; without it, an excerpt is read, with films
// of at most nine roles.
func TestRecallOfFilms(t *testing.T) {
	b, films := newFilms(t)
	shares := map[string][]float64{}
	var tokens [2]int
	for _, film := range films {
		text, facts := b.recalledFacts(film)
		if n := compact.Tokens(text); n > recallTokens {
			t.Fatalf("%s: recall has %d tokens", film, n)
		}
		answer, want := b.answeredFacts(film)
		have := 0
		for fact := range want {
			if facts[fact] {
				have++
			}
		}
		n := compact.Tokens(answer)
		tokens[0], tokens[1] = tokens[0]+compact.Tokens(text), tokens[1]+n
		class := "GraphQL below 1,500 tokens"
		if n > graphqlTokens/2 {
			class = "GraphQL 1,500 to 3,000 tokens"
		}
		share := float64(have) / float64(len(want))
		shares[class], shares["all"] = append(shares[class], share), append(shares["all"], share)
		if share < recallShare && testing.Verbose() {
			t.Logf("%s: %d of %d facts, GraphQL %d tokens", film, have, len(want), n)
		}
	}
	for class, list := range shares {
		slices.Sort(list)
		sum := 0.0
		for _, s := range list {
			sum += s
		}
		t.Logf("%s: %d films, mean share %.3f, least %.3f", class, len(list), sum/float64(len(list)), list[0])
		if mean := sum / float64(len(list)); mean < recallShare {
			t.Errorf("%s: recall has %.3f of the facts, want %.2f", class, mean, recallShare)
		}
	}
	if part := float64(tokens[0]) / float64(tokens[1]); part > recallPart {
		t.Errorf("recall has %.2f of the tokens of GraphQL, want at most %.2f", part, recallPart)
	}
	t.Logf("tokens in the mean: recall %d, GraphQL %d", tokens[0]/len(films), tokens[1]/len(films))
}

// newFilms loads the film graph, and returns every so many of its films with roles.
func newFilms(t *testing.T) (*bench, []string) {
	t.Helper()
	b := newBench(t, graph.Options{}, func(o *kg.Options) { o.TermCache = 1 << 18 })
	f, err := os.Open(cmp.Or(os.Getenv("KOINE_FILMS"), "../internal/rdf/testdata/movies-excerpt.nq.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := rdf.Decompress(f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Load(t.Context(), kg.Meta{}, rdf.Read(text, rdf.NQuads, rdf.Options{}), kg.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	texts, err := search.Open(b.store, search.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	texts.Start()
	t.Cleanup(func() {
		if err := texts.Close(); err != nil {
			t.Error(err)
		}
	})
	b.engine = graph.NewEngine(graph.Deps{Store: b.store, Search: texts, Logger: slog.New(slog.NewTextHandler(b.log, nil))},
		graph.Options{Limits: limit.Limits{Wait: time.Minute, Duration: slowtest.Slack(limit.DefaultDuration)}})
	s, err := b.store.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	roles := map[string]int{}
	for st, err := range s.Match(kg.Pattern{Predicate: kg.IRI(starring)}) {
		if err != nil {
			t.Fatal(err)
		}
		roles[st.Subject.Value()]++
	}
	var films []string
	for film, n := range roles {
		if n >= 5 {
			films = append(films, film)
		}
	}
	slices.SortFunc(films, func(a, b string) int { return cmp.Or(cmp.Compare(roles[a], roles[b]), cmp.Compare(a, b)) })
	const most = 200
	every := max(1, len(films)/most)
	var some []string
	for i := len(films) - 1; i >= 0; i -= every {
		some = append(some, films[i])
	}
	return b, some
}

func (b *bench) decoded(query string, variables map[string]any, into any) string {
	b.t.Helper()
	raw, err := json.Marshal(variables)
	if err != nil {
		b.t.Fatal(err)
	}
	r := b.engine.Execute(b.t.Context(), b.request(query, string(raw)))
	if len(r.Errors) > 0 {
		b.t.Fatal(r.Errors)
	}
	if err := json.Unmarshal(r.Data, into); err != nil {
		b.t.Fatal(err)
	}
	return string(r.Data)
}

// recalledFacts returns the text about a film, and the facts that a reader takes from it.
func (b *bench) recalledFacts(film string) (string, map[string]bool) {
	b.t.Helper()
	var answer struct{ Recall struct{ Text string } }
	b.decoded(`query($topic: String!, $most: Int) { recall(topic: $topic, maxTokens: $most) { text } }`, map[string]any{"topic": film, "most": recallTokens}, &answer)
	facts, err := compact.Read(answer.Recall.Text, b.store.Prefixes())
	if err != nil {
		b.t.Fatal(err, answer.Recall.Text)
	}
	actors := map[kg.Term]string{}
	for _, f := range facts {
		if f.Predicate.Term.Value() == playedBy {
			actors[f.Subject.Term] = f.Object.Term.Value()
		}
	}
	name := func(t kg.Term) string {
		if actor := actors[t]; actor != "" {
			return "the role of " + actor
		}
		return t.Value()
	}
	out := map[string]bool{}
	for _, f := range facts {
		out[name(f.Subject.Term)+" "+f.Predicate.Term.Value()+" "+name(f.Object.Term)] = true
		if f.Object.Label != "" {
			out[f.Object.Term.Value()+" "+kg.RDFSLabel+" "+f.Object.Label] = true
		}
	}
	return answer.Recall.Text, out
}

// answeredFacts returns as much of the answer of GraphQL as has at most graphqlTokens, and its
// facts.
func (b *bench) answeredFacts(film string) (string, map[string]bool) {
	b.t.Helper()
	var text string
	var answer struct{ Entity answeredTerm }
	for first := 1000; ; first = min(first, len(answer.Entity.Out.Nodes)) - 1 {
		answer.Entity = answeredTerm{}
		if text = b.decoded(filmAndPeople, map[string]any{"film": film, "first": first}, &answer); compact.Tokens(text) <= graphqlTokens {
			break
		}
	}
	out := map[string]bool{}
	var add func(name string, of *answeredTerm)
	add = func(name string, of *answeredTerm) {
		if of.Label != "" {
			out[name+" "+kg.RDFSLabel+" "+of.Label] = true
		}
		for i := range of.Out.Nodes {
			n := &of.Out.Nodes[i]
			object := cmp.Or(n.Object.IRI, fmt.Sprint(n.Object.Value))
			for _, inner := range n.Object.Out.Nodes {
				if inner.Predicate == playedBy {
					object = "the role of " + inner.Object.IRI
				}
			}
			out[name+" "+n.Predicate+" "+object] = true
			if n.Object.IRI != "" && !strings.HasPrefix(n.Object.IRI, kg.RDF) {
				add(object, &n.Object)
			}
		}
	}
	add(answer.Entity.IRI, &answer.Entity)
	return text, out
}
