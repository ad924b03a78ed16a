package pattern

import (
	"koine/internal/path"
	"koine/kg"
)

// Node is what stands in a place of a triple: a variable, a term, or any one of
// several terms. The zero Node is nothing, which only a graph may be.
type Node struct {
	name  string
	terms []kg.Term
}

// Var is the variable with this name.
func Var(name string) Node { return Node{name: name} }

// Term is the term itself.
func Term(t kg.Term) Node { return Node{terms: []kg.Term{t}} }

// OneOf is any of the terms, as a value that is written in several ways; none
// of none matches. Only an object can be this.
func OneOf(terms ...kg.Term) Node {
	return Node{terms: append(make([]kg.Term, 0, len(terms)), terms...)}
}

func (n Node) isZero() bool { return n.name == "" && n.terms == nil }

// Triple is a triple pattern. Without a graph it matches what the graphs that
// the view shows say together, each triple once however many of them hold it;
// with one, the statements of that graph, and a variable there is bound to the
// graph's name (kg.DefaultGraph for the one without).
type Triple struct {
	Subject, Predicate, Object, Graph Node
	// Path is a property path in the place of the predicate. Its graph may not
	// be a variable.
	Path *path.Path

	except []kg.Term // predicates that a negated property set leaves out
}

// Filter is a condition on variables. Holds gets their terms in the same order,
// the zero Term for one that is not bound. It must depend on nothing else.
type Filter struct {
	Vars  []string
	Holds func([]kg.Term) bool
}

// Group is a group graph pattern: the join of all triples and unions, left
// joined with each of Optional in turn, less what a filter or one of NotExists
// refuses (SPARQL 1.1, section 18.2.2). It may be empty: then it has one
// solution, without bindings.
type Group struct {
	Triples []Triple
	// Unions are joined with the rest; the solutions of each are those of its
	// alternatives together.
	Unions   [][]Group
	Optional []Group
	// Filters see the variables of this group, and those of an optional group
	// also what they are left joined with.
	Filters   []Filter
	NotExists []Group
}
