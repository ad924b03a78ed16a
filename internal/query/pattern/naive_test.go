package pattern_test

import (
	"errors"
	"maps"
	"slices"

	"koine/internal/query/pattern"
	"koine/kg"
)

// This file evaluates patterns as SPARQL 1.1, section 18.5, defines them: bottom-up, over slices
// of quads, without an index and without a planner.

// solution maps variables to terms.
type solution map[string]kg.Term

var errTooMany = errors.New("too many solutions for the slow way")

const naiveRows = 4000

type naive struct {
	quads    []kg.Quad
	triples  []kg.Quad // merged over graphs, each once
	constant solution  // substituted variables
}

func newNaive(quads []kg.Quad) *naive {
	n := &naive{quads: quads}
	seen := map[kg.Quad]bool{}
	for _, q := range quads {
		q.Graph = kg.Term{}
		if !seen[q] {
			seen[q] = true
			n.triples = append(n.triples, q)
		}
	}
	return n
}

// group returns the solutions of a group with its filters applied. The filters of an optional group
// are applied after the join instead.
func (n *naive) group(g pattern.Group) []solution {
	return n.filtered(g, n.unfiltered(g))
}

func (n *naive) unfiltered(g pattern.Group) []solution {
	all := []solution{{}}
	for _, t := range g.Triples {
		all = join(all, n.triple(t))
	}
	for _, t := range g.Texts {
		all = join(all, n.text(t))
	}
	for _, union := range g.Unions {
		var any []solution
		for _, alternative := range union {
			any = append(any, n.group(alternative)...)
		}
		all = join(all, any)
	}
	for _, o := range g.Optional {
		right := n.unfiltered(o)
		var out []solution
		for _, left := range all {
			found := n.filtered(o, join([]solution{left}, right))
			if len(found) == 0 {
				found = []solution{left}
			}
			out = append(out, found...)
		}
		all = out
	}
	return all
}

func (n *naive) filtered(g pattern.Group, in []solution) (out []solution) {
	for _, s := range in {
		if n.holds(g, s) {
			out = append(out, s)
		}
	}
	return out
}

func (n *naive) holds(g pattern.Group, s solution) bool {
	for _, f := range g.Filters {
		var terms []kg.Term
		for _, name := range f.Vars {
			terms = append(terms, n.value(name, s))
		}
		if !f.Holds(terms) {
			return false
		}
	}
	for _, absent := range g.NotExists {
		inner := *n
		inner.constant = maps.Clone(n.constant)
		if inner.constant == nil {
			inner.constant = solution{}
		}
		maps.Copy(inner.constant, s)
		if len(inner.group(absent)) > 0 {
			return false
		}
	}
	return true
}

func (n *naive) value(name string, s solution) kg.Term {
	if t, ok := n.constant[name]; ok {
		return t
	}
	return s[name]
}

func join(left, right []solution) (out []solution) {
	for _, l := range left {
	pairs:
		for _, r := range right {
			for name, t := range r {
				if u, ok := l[name]; ok && t != u {
					continue pairs
				}
			}
			both := maps.Clone(l)
			maps.Copy(both, r)
			if out = append(out, both); len(out) > naiveRows {
				panic(errTooMany)
			}
		}
	}
	return out
}

// spot is a node of a triple in its parts.
type spot struct {
	name  string
	terms []kg.Term
}

func (n *naive) triple(t pattern.Triple) (out []solution) {
	from := n.triples
	graph := spotOf(t.Graph)
	if graph.name != "" || graph.terms != nil {
		from = n.quads
	}
	if t.Path != nil {
		return n.path(t, from)
	}
	for _, q := range from {
		s := solution{}
		if n.fits(spotOf(t.Subject), q.Subject, s) && n.fits(spotOf(t.Predicate), q.Predicate, s) && n.fits(spotOf(t.Object), q.Object, s) &&
			(q.Graph.IsZero() || n.fits(graph, q.Graph, s)) {
			out = append(out, s)
		}
	}
	return out
}

func (n *naive) text(t pattern.Text) (out []solution) {
	for term, score := range t.Source.(found) {
		s := solution{}
		if n.fits(spot{name: t.Var}, term, s) && (t.Score == "" || n.fits(spot{name: t.Score}, kg.Double(score), s)) {
			out = append(out, s)
		}
	}
	return out
}

func (n *naive) fits(p spot, t kg.Term, s solution) bool {
	if p.name == "" {
		return slices.Contains(p.terms, t)
	}
	if want, ok := n.constant[p.name]; ok {
		return t == want
	}
	if want, ok := s[p.name]; ok {
		return t == want
	}
	s[p.name] = t
	return true
}

// relation is the multiset of pairs that a path relates (SPARQL 1.1, section 18.4).
type relation [][2]kg.Term

// way is a path: the pairs that it relates in a graph, and whether it may have length zero.
type way struct {
	steps    func(quads []kg.Quad) relation
	nullable bool
}

func (n *naive) path(t pattern.Triple, from []kg.Quad) (out []solution) {
	if g := spotOf(t.Graph); g.terms != nil {
		from = slices.DeleteFunc(slices.Clone(from), func(q kg.Quad) bool { return !slices.Contains(g.terms, q.Graph) })
		if len(from) == 0 {
			return nil // no such graph
		}
	}
	w := pathRelations[t.Path.String()]
	pairs := w.steps(n.merged(from))
	if w.nullable {
		for _, end := range []spot{spotOf(t.Subject), spotOf(t.Object)} {
			given := end.terms
			if c, ok := n.constant[end.name]; ok && end.name != "" {
				given = []kg.Term{c}
			}
			for _, term := range given {
				pairs = append(pairs, [2]kg.Term{term, term})
			}
		}
		pairs = once(pairs)
	}
	for _, pair := range pairs {
		s := solution{}
		if n.fits(spotOf(t.Subject), pair[0], s) && n.fits(spotOf(t.Object), pair[1], s) {
			out = append(out, s)
		}
	}
	return out
}

// merged returns each triple of the quads once.
func (n *naive) merged(quads []kg.Quad) (out []kg.Quad) {
	for _, q := range quads {
		q.Graph = kg.Term{}
		if !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// once removes duplicate pairs.
func once(r relation) (out relation) {
	seen := map[[2]kg.Term]bool{}
	for _, pair := range r {
		if !seen[pair] {
			seen[pair] = true
			out = append(out, pair)
		}
	}
	return out
}

func single(admits func(predicate kg.Term) bool, back bool) way {
	return way{steps: func(quads []kg.Quad) (r relation) {
		for _, q := range quads {
			if !admits(q.Predicate) {
				continue
			}
			if back {
				q.Subject, q.Object = q.Object, q.Subject
			}
			r = append(r, [2]kg.Term{q.Subject, q.Object})
		}
		return r
	}}
}

func step(predicate int, back bool) way {
	return single(func(p kg.Term) bool { return p == predicates[predicate] }, back)
}

func except(predicate int) way {
	return single(func(p kg.Term) bool { return p != predicates[predicate] }, false)
}

func composed(a, b relation) (r relation) {
	for _, x := range a {
		for _, y := range b {
			if x[1] == y[0] {
				if r = append(r, [2]kg.Term{x[0], y[1]}); len(r) > naiveRows {
					panic(errTooMany)
				}
			}
		}
	}
	return r
}

func sequence(a, b way) way {
	if a.nullable && b.nullable {
		panic("a term that is in no statement: not done here")
	}
	return way{steps: func(quads []kg.Quad) relation { return composed(a.steps(quads), b.steps(quads)) }}
}

func either(a, b way) way {
	if a.nullable || b.nullable {
		panic("a term that is in no statement: not done here")
	}
	return way{steps: func(quads []kg.Quad) relation { return append(a.steps(quads), b.steps(quads)...) }}
}

// repeated repeats a path least to most times, each pair once; most -1 is unbounded.
func repeated(a way, least, most int) way {
	return way{nullable: least == 0, steps: func(quads []kg.Quad) (r relation) {
		var at relation // after i steps
		for _, q := range quads {
			at = append(at, [2]kg.Term{q.Subject, q.Subject}, [2]kg.Term{q.Object, q.Object})
		}
		at = once(at)
		single := a.steps(quads)
		for i := 0; most < 0 || i <= most; i++ {
			before := len(r)
			if i >= least {
				r = once(append(r, at...))
			}
			if most < 0 && i > least && len(r) == before {
				return r
			}
			at = once(composed(at, single))
		}
		return r
	}}
}
