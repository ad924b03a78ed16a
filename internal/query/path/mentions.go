package path

import (
	"slices"

	"koine/kg"
)

// Mentions returns the predicates that decide the relation: those of all statements on a
// path. every is true if statements of any predicate do.
func (p *Path) Mentions() (predicates []kg.Term, every bool) {
	if p.Nullable() { // it relates every node, and any statement adds nodes
		return nil, true
	}
	for _, l := range p.forward.labels {
		if l.negated {
			return nil, true
		}
		for _, t := range l.predicates {
			if !slices.Contains(predicates, t) {
				predicates = append(predicates, t)
			}
		}
	}
	return predicates, false
}

// Predicates returns all predicates in the path, including excluded ones.
func (p *Path) Predicates() (named []kg.Term) {
	for _, l := range p.forward.labels {
		for _, t := range l.predicates {
			if !slices.Contains(named, t) {
				named = append(named, t)
			}
		}
	}
	return named
}
