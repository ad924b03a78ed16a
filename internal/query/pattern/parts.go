package pattern

import "koine/kg"

// Parts returns the name of the variable, or the terms that the node may match.
func (n Node) Parts() (name string, terms []kg.Term) { return n.name, n.terms }

// Certain returns the variables that every solution of the group binds.
func (g *Group) Certain() []string { return certainOf(g) }
