package path_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"koine/kg"
)

// A path as a tree and its semantics, implemented as directly as SPARQL 1.1 defines it
// (section 18.4, with sets instead of multisets), independent of the package.

// pairs is the relation of a path.
type pairs map[[2]kg.Term]bool

// naive is an expression: its text, and the relation in a graph.
type naive interface {
	text() string
	eval(g *naiveGraph) pairs
}

type naiveGraph struct {
	quads []kg.Quad
	nodes map[kg.Term]bool
}

func newNaiveGraph(quads []kg.Quad) *naiveGraph {
	g := &naiveGraph{quads, map[kg.Term]bool{}}
	for _, q := range quads {
		g.nodes[q.Subject], g.nodes[q.Object] = true, true
	}
	return g
}

// zero returns the path of length zero: ZeroLengthPath.
func (g *naiveGraph) zero() pairs {
	out := pairs{}
	for n := range g.nodes {
		out[[2]kg.Term{n, n}] = true
	}
	return out
}

func joined(a, b pairs) pairs {
	out := pairs{}
	for x := range a {
		for y := range b {
			if x[1] == y[0] {
				out[[2]kg.Term{x[0], y[1]}] = true
			}
		}
	}
	return out
}

func union(a, b pairs) pairs {
	out := pairs{}
	for x := range a {
		out[x] = true
	}
	for x := range b {
		out[x] = true
	}
	return out
}

type nLink struct{ predicate kg.Term }

func (n nLink) text() string { return n.predicate.String() }

func (n nLink) eval(g *naiveGraph) pairs {
	out := pairs{}
	for _, q := range g.quads {
		if q.Predicate == n.predicate {
			out[[2]kg.Term{q.Subject, q.Object}] = true
		}
	}
	return out
}

type nInverse struct{ of naive }

func (n nInverse) text() string { return "^(" + n.of.text() + ")" }

func (n nInverse) eval(g *naiveGraph) pairs {
	out := pairs{}
	for x := range n.of.eval(g) {
		out[[2]kg.Term{x[1], x[0]}] = true
	}
	return out
}

type nSequence struct{ a, b naive }

func (n nSequence) text() string             { return "(" + n.a.text() + "/" + n.b.text() + ")" }
func (n nSequence) eval(g *naiveGraph) pairs { return joined(n.a.eval(g), n.b.eval(g)) }

type nAlternative struct{ a, b naive }

func (n nAlternative) text() string             { return "(" + n.a.text() + "|" + n.b.text() + ")" }
func (n nAlternative) eval(g *naiveGraph) pairs { return union(n.a.eval(g), n.b.eval(g)) }

// nRepeat is {m,n}; n is -1 if unbounded.
type nRepeat struct {
	of   naive
	m, n int
}

func (n nRepeat) text() string {
	of := "(" + n.of.text() + ")"
	switch {
	case n.m == 0 && n.n < 0:
		return of + "*"
	case n.m == 1 && n.n < 0:
		return of + " +"
	case n.m == 0 && n.n == 1:
		return of + "?"
	case n.n < 0:
		return fmt.Sprintf("%s{%d,}", of, n.m)
	case n.m == n.n:
		return fmt.Sprintf("%s{%d}", of, n.m)
	case n.m == 0:
		return fmt.Sprintf("%s{,%d}", of, n.n)
	}
	return fmt.Sprintf("%s{ %d , %d }", of, n.m, n.n)
}

func (n nRepeat) eval(g *naiveGraph) pairs {
	of, power := n.of.eval(g), g.zero()
	for range n.m {
		power = joined(power, of)
	}
	out := power
	for k := n.m; n.n < 0 || k < n.n; k++ {
		power = joined(power, of)
		if next := union(out, power); len(next) > len(out) || n.n >= 0 {
			out = next
		} else if k-n.m > len(g.nodes)*len(g.nodes) {
			return out
		}
	}
	return out
}

// nNegated is !(…) with forward and inverted predicates.
type nNegated struct{ along, against []kg.Term }

func (n nNegated) text() string {
	var list []string
	for i := range max(len(n.along), len(n.against)) { // interleaved
		if i < len(n.against) {
			list = append(list, "^"+n.against[i].String())
		}
		if i < len(n.along) {
			list = append(list, n.along[i].String())
		}
	}
	return "!(" + strings.Join(list, " | ") + ")"
}

func (n nNegated) eval(g *naiveGraph) pairs {
	without := func(list []kg.Term) pairs {
		out := pairs{}
		for _, q := range g.quads {
			excluded := false
			for _, p := range list {
				excluded = excluded || p == q.Predicate
			}
			if !excluded {
				out[[2]kg.Term{q.Subject, q.Object}] = true
			}
		}
		return out
	}
	out := pairs{}
	if len(n.along) > 0 || len(n.against) == 0 {
		out = without(n.along)
	}
	if len(n.against) > 0 {
		for x := range without(n.against) {
			out[[2]kg.Term{x[1], x[0]}] = true
		}
	}
	return out
}

// randomPath returns a random path of the given depth.
func randomPath(r *rand.Rand, predicates []kg.Term, depth int) naive {
	one := func() kg.Term { return predicates[r.IntN(len(predicates))] }
	if depth == 0 || r.IntN(6) == 0 {
		if r.IntN(5) > 0 {
			return nLink{one()}
		}
		var n nNegated
		for range r.IntN(3) {
			n.along = append(n.along, one())
		}
		for range r.IntN(2) {
			n.against = append(n.against, one())
		}
		return n
	}
	next := func() naive { return randomPath(r, predicates, depth-1) }
	switch r.IntN(8) {
	case 0, 1, 2:
		return nSequence{next(), next()}
	case 3, 4:
		return nAlternative{next(), next()}
	case 5:
		return nInverse{next()}
	}
	m := r.IntN(3)
	switch r.IntN(5) {
	case 0:
		return nRepeat{next(), m, -1}
	case 1:
		return nRepeat{next(), 0, -1}
	case 2:
		return nRepeat{next(), 0, 1}
	}
	return nRepeat{next(), m, m + r.IntN(3)}
}

// randomQuads returns a small graph with cycles, shared values, and statements in two graphs.
func randomQuads(r *rand.Rand, nodes, statements int, predicates []kg.Term) (quads []kg.Quad) {
	values := []kg.Term{kg.Integer(1), kg.String("a text that is in the dictionary"), kg.LangString("Rom", "de")}
	for range statements {
		q := quad(iri(fmt.Sprint("n", r.IntN(nodes))), predicates[r.IntN(len(predicates))], iri(fmt.Sprint("n", r.IntN(nodes))))
		switch r.IntN(5) {
		case 0:
			q.Object = values[r.IntN(len(values))]
		case 1:
			q.Subject = kg.Blank(fmt.Sprint("b", r.IntN(2)))
		}
		quads = append(quads, q)
		if r.IntN(4) == 0 {
			q.Graph = iri("g")
			quads = append(quads, q)
		}
	}
	return quads
}
