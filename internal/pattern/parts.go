package pattern

import "koine/kg"

// Parts takes a node apart: the name of a variable, or the terms that it may be.
func (n Node) Parts() (name string, terms []kg.Term) { return n.name, n.terms }

// Certain lists the variables that every solution of the group binds.
func (g *Group) Certain() []string { return certainOf(g) }
