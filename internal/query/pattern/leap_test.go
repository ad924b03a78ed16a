package pattern_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"koine/internal/query/pattern"
	"koine/kg"
	"koine/kg/kgtest"
)

// cycles returns a pattern with a cycle of three or four variables, perhaps with a chord, and
// perhaps with other parts.
func (r *generator) cycles() (g pattern.Group) {
	n := 3 + r.IntN(2)
	add := func(t pattern.Triple) {
		r.text.WriteString(t.String() + " . ")
		g.Triples = append(g.Triples, t)
	}
	edge := func(a, b int) {
		if r.IntN(2) == 0 {
			a, b = b, a
		}
		add(pattern.Triple{Subject: pattern.Var(names[a]), Predicate: pattern.Term(predicates[r.IntN(3)]), Object: pattern.Var(names[b])})
	}
	for i := range n {
		edge(i, (i+1)%n)
	}
	if n == 4 && r.IntN(2) == 0 {
		edge(0, 2)
	}
	for r.IntN(3) == 0 {
		add(r.triple())
	}
	if r.IntN(4) == 0 {
		r.text.WriteString("OPTIONAL ")
		g.Optional = append(g.Optional, r.group(0, 2))
	}
	if r.IntN(4) == 0 {
		r.text.WriteString("NOT EXISTS ")
		g.NotExists = append(g.NotExists, r.group(0, 2))
	}
	if r.IntN(3) == 0 {
		vars := []string{names[r.IntN(n)], names[r.IntN(n)]}
		fmt.Fprintf(&r.text, "FILTER different %v ", vars)
		g.Filters = append(g.Filters, pattern.Filter{Vars: vars, Holds: conditions[3].holds})
	}
	return g
}

// TestLeapfrogAgainstNaive proves that patterns with cycles have the solutions of the algebra,
// with their multiplicities, when their rows may come in any order and are joined in memory, in
// views of some graphs and of the past.
func TestLeapfrogAgainstNaive(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -pattern.seed=%d", seed)
	r := &generator{Rand: rand.New(rand.NewPCG(seed, 4))}
	leaps, rows := 0, 0
	const worlds, rounds = 8, 25
	for range worlds {
		w := newWorld(t, r)
		for range rounds {
			r.text.Reset()
			g := r.cycles()
			p, err := pattern.Compile(g, pattern.Limits{Texts: 64})
			if err != nil {
				t.Fatalf("%s: %v", &r.text, err)
			}
			want, ok := naively(w.shown, g, solution{})
			if !ok {
				continue
			}
			got, _, e := w.evaluate(t, p, pattern.Query{AnyOrder: true})
			slices.Sort(got)
			if texts := written(p, want); !slices.Equal(got, texts) {
				t.Fatalf("%s\nat revision %d\n%s\ngot  %d %v\nwant %d %v", &r.text, w.snapshot.Revision(), explained(e.Explain(), "  "), len(got), got, len(texts), texts)
			}
			if e.Leaps() {
				leaps += countRows(e.Explain(), "leapfrog")
				rows += len(got)
			}
		}
		w.snapshot.Close()
	}
	t.Logf("%d leapfrog joins with rows, %d rows", leaps, rows)
	if leaps < worlds*rounds/8 {
		t.Error("too few leapfrog joins")
	}
}

// TestLeapfrogIsChosen shows when a cycle is joined in memory: for all of its rows, if it is not
// one of few statements, and within the limits, which it ends at.
func TestLeapfrogIsChosen(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	node := func(n int) kg.Term { return kg.IRI(fmt.Sprintf("urn:n%d", n)) }
	const nodes = 60
	_, err := s.Update(t.Context(), kg.Meta{}, func(tx *kg.Tx) error {
		for a := range nodes {
			for by := range 6 { // each knows the six behind it
				q := kg.Quad{Subject: node(a), Predicate: predicates[0], Object: node((a + by + 1) % nodes), Graph: kg.DefaultGraph}
				if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
		}
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: node(1), Predicate: predicates[1], Object: node(2), Graph: kg.DefaultGraph}})
	})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.View(t.Context(), kg.View{})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	triangle := func(first int) pattern.Group {
		edge := func(a string, p int, b string) pattern.Triple {
			return pattern.Triple{Subject: pattern.Var(a), Predicate: pattern.Term(predicates[p]), Object: pattern.Var(b)}
		}
		return pattern.Group{Triples: []pattern.Triple{edge("a", first, "b"), edge("b", 0, "c"), edge("a", 0, "c")}}
	}
	count := func(g pattern.Group, l pattern.Limits, q pattern.Query) (n int, leaps bool, err error) {
		p, err := pattern.Compile(g, l)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Evaluate(t.Context(), snapshot, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range e.Rows() {
			if err != nil {
				return n, e.Leaps(), err
			}
			n++
		}
		return n, e.Leaps(), nil
	}
	whole := pattern.Query{AnyOrder: true}
	const triangles = nodes * 15 // a pair of distances 1 to 6 with a sum of at most 6
	if n, leaps, err := count(triangle(0), pattern.Limits{}, whole); n != triangles || !leaps || err != nil {
		t.Errorf("all triangles: %d rows, leapfrog %t, %v", n, leaps, err)
	}
	if n, leaps, err := count(triangle(0), pattern.Limits{}, pattern.Query{}); n != triangles || leaps || err != nil {
		t.Errorf("triangles in order: %d rows, leapfrog %t, %v", n, leaps, err)
	}
	if n, leaps, err := count(triangle(1), pattern.Limits{}, whole); n != 5 || leaps || err != nil {
		t.Errorf("triangles with one rare side: %d rows, leapfrog %t, %v", n, leaps, err)
	}
	if _, leaps, err := count(triangle(0), pattern.Limits{Rows: triangles - 1}, whole); !leaps || kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("one row more than the limit: leapfrog %t, %v", leaps, err)
	}
	if n, leaps, err := count(triangle(0), pattern.Limits{Rows: triangles}, whole); n != triangles || !leaps || err != nil {
		t.Errorf("as many rows as the limit: %d, leapfrog %t, %v", n, leaps, err)
	}
}
