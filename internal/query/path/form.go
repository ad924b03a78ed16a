package path

import (
	"slices"

	"koine/kg"
)

// Kind classifies paths by their multiplicity (SPARQL 1.1, section 18.2.2.4).
type Kind uint8

const (
	// Statement is a single step: one solution per matching statement.
	Statement Kind = iota
	// Sequence is a join: one solution per way through its parts.
	Sequence
	// Alternative is a union: one solution per part that matches.
	Alternative
	// Closure is an existence test: *, +, ? and ranges of repetitions.
	Closure
)

// Form is a path split at its outermost operator. Only single steps and closures
// are inverted.
type Form struct {
	Kind Kind
	// Predicate is that of a Statement. If it is zero, any but Except matches.
	Predicate kg.Term
	Except    []kg.Term
	// Inverted reports that a Statement leads from its object to its subject.
	Inverted bool
	// Parts are the operands of a Sequence or an Alternative, two at least.
	Parts []*Path
}

// Form splits the path at its outermost operator. {n} is a sequence of n copies;
// {m,n} and {m,} are closures, as *, + and ?, which abbreviate them.
func (p *Path) Form() Form {
	e, inverted := p.root, false
	if i, ok := e.(inverse); ok {
		e, inverted = i.of, true
	}
	switch e := e.(type) {
	case link:
		return Form{Kind: Statement, Predicate: e.predicate, Inverted: inverted}
	case negated:
		return Form{Kind: Statement, Except: e.predicates, Inverted: inverted}
	case sequence:
		f := Form{Kind: Sequence, Parts: partsOf(e, inverted)}
		if inverted {
			slices.Reverse(f.Parts)
		}
		return f
	case alternative:
		return Form{Kind: Alternative, Parts: partsOf(e, inverted)}
	case repeat:
		if e.least == e.most && e.most > 1 {
			return Form{Kind: Sequence, Parts: partsOf(slices.Repeat([]expression{e.of}, e.most), inverted)}
		}
	}
	return Form{Kind: Closure}
}

func partsOf(list []expression, inverted bool) []*Path {
	parts := make([]*Path, len(list))
	for i, e := range list {
		if inverted {
			e = invertExpr(e)
		}
		parts[i] = newPath(e)
	}
	return parts
}
