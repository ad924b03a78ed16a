package graph_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"koine/graph"
	"koine/internal/query/pattern"
	"koine/internal/rdf"
	"koine/kg"
)

const (
	film       = "http://rdf.freebase.com/ns/film/"
	directedBy = film + "film/directed_by"
	starring   = film + "film/starring"
	playedBy   = film + "performance/actor"
)

// BenchmarkMatch measures match on the film graph, in turns with hand-written loops over
// the index for this query, terms decoded; with the pattern alone, without GraphQL, between
// them.
//
//   - actors: all actors in the films of a director, three triples.
//   - shared: the common films of two actors, four triples. The loops
//     gather the films of each and intersect them.
//
// KOINE_FILMS names the film graph; without it, it lies beside the repository.
func BenchmarkMatch(b *testing.B) {
	t := newBench(b, graph.Options{}, func(o *kg.Options) { o.TermCache = 1 << 19 })
	t.filmGraph(b)
	w := newFilmWorld(b, t)
	b.Run("actors", func(b *testing.B) {
		w.inTurns(b, w.directors, `query($x: PatternTerm!) { match(first: 1000, pattern: {triples: [{s: "?f", p: "<`+directedBy+`>", o: $x}, {s: "?f", p: "<`+starring+`>", o: "?p"}, {s: "?p", p: "<`+playedBy+`>", o: "?a"}]}, select: ["a"]) { nodes { value(var: "a") } } }`,
			func(of [2]kg.Term) pattern.Group {
				return pattern.Group{Triples: []pattern.Triple{
					filmTriple(pattern.Var("f"), directedBy, pattern.Term(of[0])), filmTriple(pattern.Var("f"), starring, pattern.Var("p")), filmTriple(pattern.Var("p"), playedBy, pattern.Var("a")),
				}}
			}, "a", w.actorsOf)
	})
	b.Run("shared", func(b *testing.B) {
		w.inTurns(b, w.pairs, `query($x: PatternTerm!, $y: PatternTerm!) { match(first: 1000, pattern: {triples: [{s: "?f", p: "<`+starring+`>", o: "?p"}, {s: "?p", p: "<`+playedBy+`>", o: $x}, {s: "?f", p: "<`+starring+`>", o: "?q"}, {s: "?q", p: "<`+playedBy+`>", o: $y}]}, select: ["f"]) { nodes { value(var: "f") } } }`,
			func(of [2]kg.Term) pattern.Group {
				return pattern.Group{Triples: []pattern.Triple{
					filmTriple(pattern.Var("f"), starring, pattern.Var("p")), filmTriple(pattern.Var("p"), playedBy, pattern.Term(of[0])),
					filmTriple(pattern.Var("f"), starring, pattern.Var("q")), filmTriple(pattern.Var("q"), playedBy, pattern.Term(of[1])),
				}}
			}, "f", w.sharedBy)
	})
}

func filmTriple(s pattern.Node, p string, o pattern.Node) pattern.Triple {
	return pattern.Triple{Subject: s, Predicate: pattern.Term(kg.IRI(p)), Object: o}
}

// filmGraph loads the film graph.
func (b *bench) filmGraph(t *testing.B) {
	t.Helper()
	f, err := os.Open(cmp.Or(os.Getenv("KOINE_FILMS"), "../../shared/data/movies.nq.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("KOINE_FILMS names no film graph (docs/benchmarks.md)")
	}
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
}

// filmWorld is the data of the queries.
type filmWorld struct {
	*bench
	directed, stars, plays kg.ID
	directors, pairs       [][2]kg.Term
}

const filmQuestions = 200

func newFilmWorld(b *testing.B, t *bench) *filmWorld {
	b.Helper()
	w := &filmWorld{bench: t}
	s := w.view(b)
	defer s.Close()
	for _, p := range []struct {
		iri string
		id  *kg.ID
	}{{directedBy, &w.directed}, {starring, &w.stars}, {playedBy, &w.plays}} {
		id, known, err := s.ID(kg.IRI(p.iri))
		if !known || err != nil {
			b.Fatal(p.iri, err)
		}
		*p.id = id
	}
	n := 0
	for row, err := range s.MatchIDs(kg.IDPattern{Predicate: w.directed}, nil) {
		if err != nil {
			b.Fatal(err)
		}
		if n++; n%150 != 0 || len(w.directors) == filmQuestions {
			continue
		}
		w.directors = append(w.directors, [2]kg.Term{term(b, s, row.Object)})
		var cast []kg.Term
		for p := range s.MatchIDs(kg.IDPattern{Subject: row.Subject, Predicate: w.stars}, nil) {
			for a := range s.MatchIDs(kg.IDPattern{Subject: p.Object, Predicate: w.plays}, nil) {
				cast = append(cast, term(b, s, a.Object))
			}
		}
		if len(cast) > 1 {
			w.pairs = append(w.pairs, [2]kg.Term{cast[0], cast[1]})
		}
	}
	return w
}

func term(b *testing.B, s *kg.Snapshot, id kg.ID) kg.Term {
	t, err := s.Term(id)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func (w *filmWorld) view(b *testing.B) *kg.Snapshot {
	s, err := w.store.View(b.Context(), kg.View{Principal: reader})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// inTurns runs each query through the engine, by the pattern, and by loops. All must find
// the same number of results.
func (w *filmWorld) inTurns(b *testing.B, questions [][2]kg.Term, query string, group func(of [2]kg.Term) pattern.Group, shown string, loops func(*testing.B, *kg.Snapshot, [2]kg.Term) int) {
	var byEngine, byPattern, byLoops int
	ask := func(sum *int, one func([2]kg.Term) int) func() {
		return func() {
			*sum = 0
			for _, q := range questions {
				*sum += one(q)
			}
		}
	}
	sides := []side{
		{"engine", ask(&byEngine, func(q [2]kg.Term) int { return w.byEngine(b, query, q) })},
		{"pattern", ask(&byPattern, func(q [2]kg.Term) int { return w.byPattern(b, group(q), shown) })},
		{"loops", ask(&byLoops, func(q [2]kg.Term) int {
			s := w.view(b)
			defer s.Close()
			return loops(b, s, q)
		})},
	}
	for _, s := range sides {
		s.do() // warm
	}
	if byEngine != byLoops || byPattern != byLoops || byLoops < len(questions) {
		b.Fatalf("found %d, %d and %d things", byEngine, byPattern, byLoops)
	}
	inTurns(b, "question", len(questions), sides)
	b.ReportMetric(float64(byLoops)/float64(len(questions)), "rows/question")
}

func (w *filmWorld) byEngine(b *testing.B, query string, q [2]kg.Term) int {
	variables := map[string]any{"x": q[0].Name()}
	if !q[1].IsZero() {
		variables["y"] = q[1].Name()
	}
	req := w.request(query, "")
	req.Variables = variables
	r := w.engine.Execute(b.Context(), req)
	if len(r.Errors) > 0 {
		b.Fatal(r.Errors)
	}
	return bytes.Count(r.Data, []byte(`{"value":`)) // rows
}

func (w *filmWorld) byPattern(b *testing.B, g pattern.Group, shown string) (n int) {
	s := w.view(b)
	defer s.Close()
	p, err := pattern.Compile(g, pattern.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	e, err := p.Evaluate(b.Context(), s, pattern.Query{})
	if err != nil {
		b.Fatal(err)
	}
	column := p.Column(shown)
	for row, err := range e.Rows() {
		if err != nil {
			b.Fatal(err)
		}
		term(b, s, row[column])
		n++
	}
	return n
}

// actorsOf walks director → films → performances → actors.
func (w *filmWorld) actorsOf(b *testing.B, s *kg.Snapshot, q [2]kg.Term) (n int) {
	director, _, err := s.ID(q[0])
	if err != nil {
		b.Fatal(err)
	}
	for f := range s.MatchIDs(kg.IDPattern{Predicate: w.directed, Object: director}, nil) {
		for p := range s.MatchIDs(kg.IDPattern{Subject: f.Subject, Predicate: w.stars}, nil) {
			for a := range s.MatchIDs(kg.IDPattern{Subject: p.Object, Predicate: w.plays}, nil) {
				term(b, s, a.Object)
				n++
			}
		}
	}
	return n
}

// sharedBy gathers the films of one actor, and looks for those of the other.
func (w *filmWorld) sharedBy(b *testing.B, s *kg.Snapshot, q [2]kg.Term) (n int) {
	films := map[kg.ID]int{}
	for i, actor := range q {
		id, _, err := s.ID(actor)
		if err != nil {
			b.Fatal(err)
		}
		for p := range s.MatchIDs(kg.IDPattern{Predicate: w.plays, Object: id}, nil) {
			for f := range s.MatchIDs(kg.IDPattern{Predicate: w.stars, Object: p.Subject}, nil) {
				if i == 0 {
					films[f.Subject]++
				} else {
					for range films[f.Subject] {
						term(b, s, f.Subject)
						n++
					}
				}
			}
		}
	}
	return n
}

// textEntities is how many entities BenchmarkMatchText has.
const textEntities = 200_000

// BenchmarkMatchText measures a match with a text, in turns with the same question without the
// index of texts: a condition on the labels.
//
//   - rare: a word of about twenty labels; the plan begins with the hits.
//   - common: a word of a quarter of the labels, with a triple of ten rows; the plan tests them.
func BenchmarkMatchText(b *testing.B) {
	t := newBench(b, graph.Options{}, func(o *kg.Options) { o.TermCache = 1 << 19 })
	random := rand.New(rand.NewPCG(3, 9))
	quads := func(yield func(kg.Quad, error) bool) {
		for i := range textEntities {
			words := make([]string, 8)
			for k := range words {
				words[k] = fmt.Sprintf("r%dx", random.IntN(textEntities*len(words)/20))
			}
			if random.IntN(4) == 0 {
				words[0] = "common"
			}
			s, at := iri(fmt.Sprintf("e%d", i)), iri(fmt.Sprintf("group%d", i/10))
			if !yield(kg.Quad{Subject: s, Predicate: kg.IRI(kg.RDFSLabel), Object: kg.LangString(strings.Join(words, " "), "en"), Graph: kg.DefaultGraph}, nil) ||
				!yield(kg.Quad{Subject: s, Predicate: iri("in"), Object: at, Graph: kg.DefaultGraph}, nil) {
				return
			}
		}
	}
	if _, err := t.store.Load(b.Context(), kg.Meta{}, quads, kg.LoadOptions{}); err != nil {
		b.Fatal(err)
	}
	t.search(b)
	for _, row := range []struct{ name, word, triples string }{
		{"rare", "r%dx", `{s: "?e", p: "ex:in", o: "?group"}`},
		{"common", "common", `{s: "?e", p: "ex:in", o: "ex:group%d"}`},
	} {
		write := func(n int, pattern string) string {
			word, triples := row.word, row.triples
			if strings.Contains(word, "%d") {
				word = fmt.Sprintf(word, n*7)
			} else {
				triples = fmt.Sprintf(triples, n*7)
			}
			return fmt.Sprintf(`{ match(first: 1000, pattern: {`+pattern+`}) { totalCount } }`, word, triples)
		}
		const texts, labels = `text: {var: "e", query: %q}, triples: [%s]`, `triples: [{s: "?e", p: "rdfs:label", o: "?l"}, %[2]s], filter: [{var: "l", value: {contains: %[1]q}}]`
		if got, want := t.ask(write(11, texts)), t.ask(write(11, labels)); got != want || strings.Contains(got, `"totalCount":0`) {
			b.Fatalf("%s: got %s, want %s", row.name, got, want)
		}
		for name, pattern := range map[string]string{"text": texts, "labels": labels} {
			b.Run(row.name+"/"+name, func(b *testing.B) {
				for n := 0; b.Loop(); n++ {
					t.ask(write(n%1000, pattern))
				}
			})
		}
	}
}
