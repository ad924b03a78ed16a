package rdf_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/kg"
)

// isomorphic tells whether two sets of quads are the same graphs up to the
// names of blank nodes (RDF 1.1 Concepts, section 3.6): colours are refined
// until they settle, and where nodes stay alike one of them is told apart by
// trial.
func isomorphic(a, b []kg.Quad) bool {
	a, b = unique(a), unique(b)
	if len(a) != len(b) {
		return false
	}
	return match(a, b, colours(a, nil), colours(b, nil))
}

func match(a, b []kg.Quad, ca, cb map[kg.Term]string) bool {
	ca, cb = refine(a, ca), refine(b, cb)
	classes, twin := classesOf(ca), classesOf(cb)
	if len(classes) != len(twin) {
		return false
	}
	for colour, nodes := range classes {
		if len(twin[colour]) != len(nodes) {
			return false
		}
	}
	for colour, nodes := range classes {
		if len(nodes) == 1 {
			continue
		}
		for _, other := range twin[colour] {
			if match(a, b, colours(a, ca, nodes[0]), colours(b, cb, other)) {
				return true
			}
		}
		return false
	}
	return slices.Equal(painted(a, ca), painted(b, cb))
}

func unique(quads []kg.Quad) []kg.Quad {
	seen := map[kg.Quad]bool{}
	var out []kg.Quad
	for _, q := range quads {
		if !seen[q] {
			seen[q] = true
			out = append(out, q)
		}
	}
	return out
}

// colours copies a colouring, with these nodes told apart.
func colours(quads []kg.Quad, from map[kg.Term]string, special ...kg.Term) map[kg.Term]string {
	out := map[kg.Term]string{}
	for _, q := range quads {
		for _, t := range []kg.Term{q.Subject, q.Object, q.Graph} {
			if t.Kind() == kg.KindBlank {
				out[t] = from[t]
			}
		}
	}
	for _, t := range special {
		out[t] += "!"
	}
	return out
}

func refine(quads []kg.Quad, c map[kg.Term]string) map[kg.Term]string {
	for {
		about := map[kg.Term][]string{}
		for _, q := range quads {
			if q.Subject.Kind() == kg.KindBlank {
				about[q.Subject] = append(about[q.Subject], "s"+paint(q, c))
			}
			if q.Object.Kind() == kg.KindBlank {
				about[q.Object] = append(about[q.Object], "o"+paint(q, c))
			}
			if q.Graph.Kind() == kg.KindBlank {
				about[q.Graph] = append(about[q.Graph], "g"+paint(q, c))
			}
		}
		next := map[kg.Term]string{}
		for t, lines := range about {
			slices.Sort(lines)
			next[t] = fmt.Sprintf("%x", sha256.Sum256([]byte(c[t]+strings.Join(lines, "\x00"))))
		}
		if len(classesOf(next)) == len(classesOf(c)) {
			return next
		}
		c = next
	}
}

func classesOf(c map[kg.Term]string) map[string][]kg.Term {
	out := map[string][]kg.Term{}
	for t, colour := range c {
		out[colour] = append(out[colour], t)
	}
	return out
}

func painted(quads []kg.Quad, c map[kg.Term]string) []string {
	var out []string
	for _, q := range quads {
		out = append(out, paint(q, c))
	}
	slices.Sort(out)
	return out
}

func paint(q kg.Quad, c map[kg.Term]string) string {
	text := func(t kg.Term) string {
		if t.Kind() == kg.KindBlank {
			return "_" + c[t]
		}
		return fmt.Sprintf("%d%q%q%q", t.Kind(), t.Value(), t.Datatype(), t.Lang())
	}
	return text(q.Subject) + text(q.Predicate) + text(q.Object) + text(q.Graph)
}

func TestIsomorphic(t *testing.T) {
	p := kg.IRI("http://x.example/p")
	edge := func(from, to string) kg.Quad {
		return kg.Quad{Subject: kg.Blank(from), Predicate: p, Object: kg.Blank(to), Graph: kg.DefaultGraph}
	}
	ring := func(names ...string) (out []kg.Quad) {
		for i, n := range names {
			out = append(out, edge(n, names[(i+1)%len(names)]))
		}
		return out
	}
	six := ring("a", "b", "c", "d", "e", "f")
	if !isomorphic(six, ring("u", "z", "v", "y", "w", "x")) {
		t.Error("a renamed ring is not seen as the same")
	}
	if isomorphic(six, append(ring("a", "b", "c"), ring("d", "e", "f")...)) {
		t.Error("two rings of three are taken for one of six")
	}
}
