package path_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"koine/internal/query/path"
	"koine/internal/slowtest"
	"koine/kg"
)

var (
	seed = flag.Uint64("path.seed", 0, "seed of the random runs; 0 takes a new one")
	runs = flag.Int("path.runs", 20, "random graphs to try")
)

// random returns a source of randomness; its seed is printed when the test fails.
func random(t *testing.T) *rand.Rand {
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("do it again with -path.seed=%d", n)
		}
	})
	return rand.New(rand.NewPCG(n, 0))
}

// TestPathsMeanWhatTheDefinitionSays proves that the ends of a path, forward, backward,
// from many nodes, between two nodes, and as pairs, are those of the definition; that
// each end comes once; and that String and Parse are inverse.
func TestPathsMeanWhatTheDefinitionSays(t *testing.T) {
	r := random(t)
	predicates := []kg.Term{iri("p"), iri("q"), iri("r")}
	for range slowtest.Size(*runs, *runs/4) {
		quads := randomQuads(r, 3+r.IntN(4), 4+r.IntN(12), predicates)
		g := newNaiveGraph(quads)
		s := snapshotOf(t, quads...)
		for range 60 {
			n := randomPath(r, append(predicates, iri("unknown")), r.IntN(5))
			p, err := path.Parse(n.text(), prefixes(t))
			if kg.CodeOf(err) == kg.CodeLimitExceeded {
				continue // too many steps
			}
			if err != nil {
				t.Fatalf("%s: %v", n.text(), err)
			}
			again := mustParse(t, p.String())
			if again.String() != p.String() {
				t.Fatalf("%s is written %s, and that %s", n.text(), p, again)
			}
			holdAgainst(t, s, g, again, n.eval(g))
			if t.Failed() {
				t.Fatalf("the path was %s, the graph %v", n.text(), quads)
			}
		}
	}
}

// holdAgainst compares all results of a bound path with the expected pairs.
func holdAgainst(t *testing.T, s *kg.Snapshot, g *naiveGraph, p *path.Path, want pairs) {
	t.Helper()
	b, err := p.Bind(s, path.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []kg.Term
	var ids []kg.ID
	for n := range g.nodes {
		nodes, ids = append(nodes, n), append(ids, idOf(t, s, n))
	}
	got := map[string]pairs{"Forward": {}, "Backward": {}, "ForwardAll": {}, "BackwardAll": {}, "Pairs": {}, "Connects": {}}
	note := func(by string, from, to kg.Term, err error) {
		if err != nil {
			t.Fatalf("%s of %s: %v", by, p, err)
		}
		if x := [2]kg.Term{from, to}; got[by][x] {
			t.Errorf("%s of %s gives %v twice", by, p, x)
		} else {
			got[by][x] = true
		}
	}
	term := func(id kg.ID) kg.Term {
		if id == (kg.ID{}) {
			return kg.Term{}
		}
		return termOf(t, s, id)
	}
	for i, n := range nodes {
		for id, err := range b.Forward(ids[i]) {
			note("Forward", n, term(id), err)
		}
		for id, err := range b.Backward(ids[i]) {
			note("Backward", term(id), n, err)
		}
		for k, m := range nodes {
			if ok, err := b.Connects(ids[i], ids[k]); ok || err != nil {
				note("Connects", n, m, err)
			}
		}
	}
	for e, err := range b.ForwardAll(ids) {
		note("ForwardAll", nodes[e.Start], term(e.ID), err)
	}
	for e, err := range b.BackwardAll(ids) {
		note("BackwardAll", term(e.ID), nodes[e.Start], err)
	}
	for x, err := range b.Pairs() {
		note("Pairs", term(x.From), term(x.To), err)
	}
	for by, list := range got {
		for x := range list {
			if !want[x] {
				t.Errorf("%s of %s gives %v, which it must not", by, p, x)
			}
		}
		for x := range want {
			if !list[x] {
				t.Errorf("%s of %s leaves %v out", by, p, x)
			}
		}
	}
}
