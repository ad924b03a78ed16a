package search_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"koine/internal/search"
	"koine/kg"
)

// embedded is a text whose assertion has an embedding.
func embedded(p kg.Patch, model string, vector ...float32) kg.Patch {
	p.Embedding = &kg.Embedding{Model: model, Vector: vector}
	return p
}

// near returns the names and similarities of the hits near to a vector, or the error.
func (f *fixture) near(agent kg.AgentID, query string, near search.Near) string {
	f.t.Helper()
	page, err := f.search(agent, search.Request{Query: query, Near: &near})
	if err != nil {
		return fmt.Sprintf("%v (%s)", err, kg.AsError(err).Hint)
	}
	var out []string
	for _, h := range page.Hits {
		name := strings.TrimPrefix(h.Subject.Value(), "urn:")
		if h.Similarity != nil {
			name += fmt.Sprintf(":%.2f", *h.Similarity)
		}
		if h.WordScore != nil {
			name += "+"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func (f *fixture) wantNear(agent kg.AgentID, query string, near search.Near, want string) {
	f.t.Helper()
	if got := f.near(agent, query, near); got != want {
		f.t.Errorf("%s by %q near %v: got %s, want %s", agent, query, near.Vector, got, want)
	}
}

func TestNear(t *testing.T) {
	f := open(t, t.TempDir())
	defer func() { f.close() }()
	east := search.Near{Model: "m", Vector: []float32{1, 0}}
	const ann, bob = kg.AgentID("agent://ann"), kg.AgentID("agent://bob")
	f.wantNear(bob, "", east, "near.model: no vector that you may read is of model m (Embeddings are given with patches and messages.)")
	f.apply(
		embedded(text("", "a", "label", "east"), "m", 2, 0), embedded(text("", "b", "label", "north east"), "m", 1, 1), embedded(text("", "c", "label", "west"), "m", -1, 0),
		embedded(text("private:ann", "d", "label", "east by Ann"), "m", 1, 0.1), embedded(text("", "e", "label", "other"), "m", 1, 0, 0), embedded(text("private:ann", "f", "label", "other"), "n", 1),
		text("", "g", "label", "east without a vector"))
	f.wantNear(bob, "", east, "a:1.00 b:0.71 c:-1.00")
	f.wantNear(ann, "", east, "a:1.00 d:1.00 b:0.71 c:-1.00")
	f.wantNear(bob, "", search.Near{Model: "m", Vector: []float32{1, 0}, Metric: search.Dot}, "a:2.00 b:1.00 c:-1.00")
	// Both lists: c is the third of one, g of the other.
	f.wantNear(bob, "east", east, "a:1.00+ b:0.71+ c:-1.00 g+")
	// A statement that is not of a literal may have a vector.
	thing := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:t"), Predicate: kg.IRI("urn:p"), Object: kg.IRI("urn:o")}}
	f.apply(embedded(thing, "m", 1, 0.5))
	f.wantNear(bob, "", east, "a:1.00 t:0.89 b:0.71 c:-1.00")
	f.apply(thing) // again, without a vector
	f.wantNear(bob, "", east, "a:1.00 b:0.71 c:-1.00")
	// Another vector for the same assertion, another source, and removals.
	f.apply(embedded(text("", "c", "label", "west"), "m", 1, 0.2))
	f.wantNear(bob, "", east, "a:1.00 c:0.98 b:0.71")
	second := embedded(text("", "b", "label", "north east"), "m", 1, 0)
	second.Source = "agent://ann"
	f.apply(second)
	f.wantNear(bob, "", east, "b:1.00 a:1.00 c:0.98")
	second.Op, second.Embedding = kg.Remove, nil
	f.apply(second)
	f.wantNear(bob, "", east, "a:1.00 c:0.98")
	gone := text("", "a", "label", "east")
	gone.Op = kg.Remove
	f.apply(gone)
	want := f.near(bob, "", east)
	if strings.Contains(want, "a:") {
		t.Errorf("a removed statement is found: %s", want)
	}
	// A restart, a replaced graph, and an index that is built anew.
	dir := f.dir
	f.close()
	f = open(t, dir)
	f.wantNear(bob, "", east, want)
	graph := kg.IRI("urn:g")
	f.apply(embedded(text("g", "x", "label", "x"), "m", 1, 0))
	if _, err := f.store.ReplaceGraph(t.Context(), kg.Meta{Principal: kg.Principal{ID: ann}}, graph, func(yield func(kg.Quad, error) bool) {
		yield(kg.Quad{Subject: kg.IRI("urn:y"), Predicate: kg.IRI("urn:label"), Object: kg.String("y"), Graph: graph}, nil)
	}, kg.ReplaceOptions{}); err != nil {
		t.Fatal(err)
	}
	f.wantNear(bob, "", east, want)
	f.close()
	if err := search.RemoveIndex(dir); err != nil {
		t.Fatal(err)
	}
	f = open(t, dir)
	f.wantNear(bob, "", east, want)
}

// Errors name the models that the caller may know.
func TestNearErrors(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	const bob = kg.AgentID("agent://bob")
	f.apply(embedded(text("", "a", "label", "east"), "m", 1, 0), embedded(text("private:ann", "b", "label", "east"), "secret", 1, 0, 0))
	for _, c := range []struct {
		query string
		near  search.Near
		want  string
	}{
		{"", search.Near{Model: "x", Vector: []float32{1}}, "near.model: no vector that you may read is of model x (Models: m (2 numbers).)"},
		{"", search.Near{Model: "secret", Vector: []float32{1, 0, 0}}, "near.model: no vector that you may read is of model secret (Models: m (2 numbers).)"},
		{"", search.Near{Model: "m", Vector: []float32{1, 0, 0}}, "near.vector: the vectors of model m have 2 numbers, and not 3 ()"},
		{"", search.Near{Model: "m"}, "near: near has a vector, or like ()"},
		{"", search.Near{Model: "m", Vector: []float32{1}, Like: "x"}, "near: near has a vector, or like ()"},
		{"", search.Near{Model: "m", Like: "x"}, "near.like: this server makes no vectors of texts: give a vector (koine serve --embeddings-url configures an endpoint that makes them.)"},
		{"east -west", search.Near{Model: "m", Vector: []float32{1, 0}}, "query: a query beside near has no -words: a vector does not tell which words a text has ()"},
	} {
		f.wantNear(bob, c.query, c.near, c.want)
	}
	for _, v := range [][]float32{make([]float32, kg.MaxEmbeddingNumbers+1), {float32(math.NaN())}, {0, 0}} {
		if _, err := f.search(bob, search.Request{Near: &search.Near{Model: "m", Vector: v}}); err == nil || kg.AsError(err).Field != "near.vector" {
			t.Errorf("a vector of %d numbers: %v", len(v), err)
		}
	}
	if _, err := f.search(bob, search.Request{Order: search.ByTime, Near: &search.Near{Model: "m", Vector: []float32{1, 0}}}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("by time: %v", err)
	}
	// A filter that holds for nothing is no error.
	if page, err := f.search(bob, search.Request{Near: &search.Near{Model: "m", Vector: []float32{1, 0}}, Filter: search.Filter{Classes: []kg.Term{kg.IRI("urn:none")}}}); err != nil || len(page.Hits) > 0 {
		t.Errorf("a filter that holds for nothing: %v %v", page, err)
	}
}

// What an agent may not read changes no byte of its answers: hits, scores, order, pages and
// errors, by vectors alone and beside words.
func TestOthersChangeNothingNear(t *testing.T) {
	both, own := open(t, t.TempDir()), open(t, t.TempDir())
	defer both.close()
	defer own.close()
	random := rand.New(rand.NewPCG(9, 9))
	vocabulary := strings.Fields("client server http answer log")
	vector := func() []float32 {
		return []float32{float32(random.IntN(3)), float32(random.IntN(3) - 1), 1}
	}
	const bob = kg.AgentID("agent://bob")
	all := func(f *fixture, query string, near search.Near) (out []any) {
		r := search.Request{Query: query, Near: &near, First: 3, Filter: search.Filter{Graphs: []kg.Term{kg.DefaultGraph, kg.IRI("urn:g"), kg.IRI("urn:private:ann")}}}
		if query == "log" {
			r.Filter = search.Filter{}
		}
		for range 10 {
			page, err := f.search(bob, r)
			if err != nil {
				return append(out, err.Error(), kg.AsError(err).Hint)
			}
			for _, h := range page.Hits {
				out = append(out, h.Subject.Value(), h.Score, h.Matches)
				for _, s := range []*float64{h.WordScore, h.Similarity} {
					if s != nil {
						out = append(out, *s)
					}
				}
			}
			if len(page.Hits) < r.First {
				return out
			}
			r.After = &page.Hits[len(page.Hits)-1].Place
		}
		return out
	}
	for round := range 8 {
		for range 12 {
			p := text([]string{"", "private:ann", "g"}[random.IntN(3)], fmt.Sprint(random.IntN(15)), fmt.Sprint("p", random.IntN(2)), vocabulary[random.IntN(len(vocabulary))])
			if random.IntN(4) > 0 {
				p = embedded(p, []string{"m", "n"}[random.IntN(2)], vector()...)
			}
			both.apply(p)
			if p.Quad.Graph != kg.IRI("urn:private:ann") {
				own.apply(p)
			}
		}
		both.apply(embedded(text("private:ann", fmt.Sprint("x", round), "label", "client log"), "secret", 1, 2))
		for _, query := range []string{"", "client", "log", "servr http"} {
			for _, near := range []search.Near{{Model: "m", Vector: []float32{1, 0, 1}}, {Model: "n", Vector: []float32{0, 1, 1}, Metric: search.Dot}, {Model: "secret", Vector: []float32{1, 2}}} {
				if got, want := all(both, query, near), all(own, query, near); !reflect.DeepEqual(got, want) {
					t.Fatalf("round %d: %q near %v gives %v, and without Ann's vectors %v", round, query, near, got, want)
				}
			}
		}
	}
}

// embedder makes vectors of the length of texts, of those that it was told to.
type embedder struct {
	mu    sync.Mutex
	texts map[string]bool
	name  string
}

func (e *embedder) Model() string { return "m" }

func (e *embedder) Identity() string { return e.name }

func (e *embedder) Vector(q *kg.Quad) []float32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.texts[q.Object.Value()] {
		return nil
	}
	return []float32{float32(len(q.Object.Value())), 1}
}

func (e *embedder) make(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.texts[text] = true
}

func (*embedder) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	if text == "fail" {
		return nil, kg.Errorf(kg.CodeOverloaded, "the embeddings endpoint does not answer")
	}
	return []float32{float32(len(text)), 1}, nil
}

func TestNearText(t *testing.T) {
	f := openWith(t, search.Options{Dir: filepath.Join(t.TempDir(), "search"), Embedder: &embedder{}})
	defer f.close()
	f.apply(embedded(text("", "a", "label", "a"), "m", 1, 1), embedded(text("", "b", "label", "b"), "m", 9, 1))
	const bob = kg.AgentID("agent://bob")
	f.wantNear(bob, "", search.Near{Like: "a long one"}, "b:1.00 a:0.77")
	f.wantNear(bob, "", search.Near{Model: "m", Like: "x"}, "a:1.00 b:0.78")
	f.wantNear(bob, "", search.Near{Vector: []float32{1, 1}}, "a:1.00 b:0.78")
	f.wantNear(bob, "", search.Near{Model: "n", Like: "x"}, "near.model: this server makes vectors of model m: give a vector for another one ()")
	f.wantNear(bob, "", search.Near{Like: "fail"}, "near.like: the embeddings endpoint does not answer ()")
}

// Vectors that are made of texts are found as those that are given, by the same rights, whether
// they are made before or after the text is indexed, and go with the text.
func TestMadeVectors(t *testing.T) {
	dir := t.TempDir()
	e := &embedder{texts: map[string]bool{"early": true, "Ann's": true}, name: "one"}
	o := search.Options{Dir: filepath.Join(dir, "search"), Embedder: e}
	f := openWith(t, o)
	defer func() { f.close() }()
	const ann, bob = kg.AgentID("agent://ann"), kg.AgentID("agent://bob")
	near := search.Near{Vector: []float32{1, 1}}
	late := text("", "b", "label", "late")
	f.apply(text("", "a", "label", "early"), late, text("private:ann", "c", "label", "Ann's"), text("", "d", "label", "never"))
	f.wantNear(bob, "", near, "a:0.83")
	f.wantNear(ann, "", near, "c:0.83 a:0.83")
	e.make("late")
	if err := f.AddMade(t.Context(), []kg.Quad{late.Quad, text("", "x", "label", "late").Quad}); err != nil {
		t.Fatal(err)
	}
	f.wantNear(bob, "", near, "b:0.86 a:0.83")
	f.close()
	f = openWith(t, o)
	f.wantNear(bob, "", near, "b:0.86 a:0.83")
	// Beside a given vector of the same statement.
	f.apply(embedded(text("", "a", "label", "early"), "m", 1, 1))
	f.wantNear(bob, "", near, "a:1.00 b:0.86")
	late.Op = kg.Remove
	f.apply(late)
	f.wantNear(bob, "", near, "a:1.00")
	if err := f.AddMade(t.Context(), []kg.Quad{late.Quad}); err != nil {
		t.Fatal(err)
	}
	f.wantNear(bob, "", near, "a:1.00")
	// Without the embedder, and with another one, the index has none of its vectors.
	f.close()
	f = openWith(t, search.Options{Dir: o.Dir})
	f.wantNear(ann, "", search.Near{Model: "m", Vector: near.Vector}, "a:1.00")
	f.close()
	o.Embedder = &embedder{texts: map[string]bool{"never": true}, name: "two"}
	f = openWith(t, o)
	f.wantNear(ann, "", near, "a:1.00 d:0.83")
}

// Beside words the ranks count, and equal scores are in the order of hashed names.
func TestFusion(t *testing.T) {
	f := open(t, t.TempDir())
	defer f.close()
	var list []kg.Patch
	for i := range search.FusedHits + 50 {
		list = append(list, embedded(text("", fmt.Sprint("s", i), "label", "word"), "m", 1, float32(i)))
	}
	f.apply(list...)
	page, err := f.search("agent://bob", search.Request{Query: "word", Near: &search.Near{Model: "m", Vector: []float32{1, 0}}, First: search.MaxFirst})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, h := range page.Hits {
		if h.Similarity != nil {
			seen++
		}
	}
	// A rare class, and one that most have, among so many.
	for _, class := range []struct {
		name  string
		every int
	}{{"Rare", 50}, {"Common", 2}} {
		var want []string
		list = nil
		for i := range search.FusedHits + 50 {
			if i%class.every == 1 {
				list = append(list, kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI(fmt.Sprint("urn:s", i)), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:" + class.name)}})
				want = append(want, fmt.Sprint("s", i))
			}
		}
		f.apply(list...)
		page := f.mustSearch("agent://bob", search.Request{Near: &search.Near{Model: "m", Vector: []float32{0, 1}}, Filter: search.Filter{Classes: []kg.Term{kg.IRI("urn:" + class.name)}}, First: search.MaxFirst})
		if slices.Sort(want); namesOf(page) != strings.Join(want, " ") {
			t.Errorf("of class %s: %s, want %v", class.name, namesOf(page), want)
		}
	}
	if seen != search.FusedHits {
		t.Errorf("%d hits of the vectors, want %d", seen, search.FusedHits)
	}
	if !slices.IsSortedFunc(page.Hits, func(a, b search.Hit) int {
		if a.ComesBefore(b.Place.Place) {
			return -1
		}
		return 1
	}) {
		t.Error("hits are not in order")
	}
}
