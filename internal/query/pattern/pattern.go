package pattern

import (
	"koine/internal/query/path"
	"koine/kg"
)

// Node is one position of a triple pattern: a variable, a term, or any one of
// several terms. The zero Node is empty; only Triple.Graph may be empty.
type Node struct {
	name  string
	terms []kg.Term
}

// Var returns a Node for the variable with the given name.
func Var(name string) Node { return Node{name: name} }

// Term returns a Node for the term t.
func Term(t kg.Term) Node { return Node{terms: []kg.Term{t}} }

// OneOf returns a Node that matches any of the terms, such as the lexical forms
// of one value. Without terms it matches nothing. It is valid as an object only.
func OneOf(terms ...kg.Term) Node {
	return Node{terms: append(make([]kg.Term, 0, len(terms)), terms...)}
}

func (n Node) isZero() bool { return n.name == "" && n.terms == nil }

// Triple is a triple pattern. Without a graph it matches the merge of the graphs
// in view, each triple once however many graphs have it. With a graph it matches
// the statements of that graph; a variable there is bound to the graph's name
// (kg.DefaultGraph for the default graph).
type Triple struct {
	Subject, Predicate, Object, Graph Node
	// Path is a property path instead of a predicate. With a path, Graph must
	// not be a variable.
	Path *path.Path

	except []kg.Term // predicates that a negated property set excludes
}

// Filter is a condition on variables. Holds gets the terms of Vars in the same
// order, the zero Term for an unbound one. It must be a pure function.
type Filter struct {
	Vars  []string
	Holds func([]kg.Term) bool
	// Objects has all literals that the first of Vars can have where the filter holds. Nil means
	// any.
	Objects *kg.Objects
}

// Group is a group graph pattern: the join of all triples, texts and unions, left
// joined with each of Optional in turn, minus the solutions that a filter or one
// of NotExists rejects (SPARQL 1.1, section 18.2.2). An empty group has one
// solution, without bindings.
type Group struct {
	Triples []Triple
	// Texts are joined with the triples.
	Texts []Text
	// Unions are joined with the rest. The solutions of a union are those of all
	// its alternatives.
	Unions   [][]Group
	Optional []Group
	// Filters see the variables of this group. In an optional group they also
	// see the left side of the join.
	Filters   []Filter
	NotExists []Group
}
