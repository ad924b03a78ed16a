package path

import (
	"slices"

	"koine/kg"
)

// Mentions lists the predicates whose statements decide what the path relates;
// every is true when all statements do, whatever their predicate.
func (p *Path) Mentions() (predicates []kg.Term, every bool) {
	if p.Nullable() { // it relates every node, and any statement makes one
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

// Predicates are all that the path names, also to exclude them.
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
