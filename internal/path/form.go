package path

import (
	"slices"

	"koine/kg"
)

// Kind says how a path counts (SPARQL 1.1, section 18.2.2.4).
type Kind uint8

const (
	// Statement is a single step: it counts once for each statement that is it.
	Statement Kind = iota
	// Sequence counts as a join does: once for each way through its parts.
	Sequence
	// Alternative counts as a union does: once for each part that holds.
	Alternative
	// Closure relates two nodes or does not: *, +, ? and ranges of repetitions.
	Closure
)

// Form is a path taken apart by its outermost operator. Inversions stand at
// single steps and closures only.
type Form struct {
	Kind Kind
	// Predicate is that of a Statement; without one, it has none of Except.
	Predicate kg.Term
	Except    []kg.Term
	// Inverted tells that a Statement leads from its object to its subject.
	Inverted bool
	// Parts are those of a Sequence or an Alternative, of two at least.
	Parts []*Path
}

// Form takes the path apart. {n} is a sequence of n times the same; {m,n} and
// {m,} relate each pair once, as *, + and ? do, which are short for such.
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
			e = invert(e)
		}
		parts[i] = newPath(e)
	}
	return parts
}
