package update

import (
	"context"
	"fmt"

	"koine/internal/names"
	"koine/kg"
)

// Facts are mutations as plain patches, for those who write them with something
// else in one commit.
type Facts struct {
	Patches []kg.Patch
	// Implied tells of each patch whether it is an rdf:type that a mutation states
	// on the side: it is left out where its source backs that type already.
	Implied []bool
	// Of tells of each patch which mutation it is of.
	Of []int
}

// FactsOf spells mutations out. What they leave unsaid of graph and source stays so:
// who writes the patches says it.
// Names are judged as in Apply, for the principal.
func FactsOf(ctx context.Context, judge *names.Judge, by kg.Principal, mutations []Mutation) (f Facts, err error) {
	judging := judge.Begin(ctx, by)
	defer judging.Close()
	add := func(p kg.Patch, implied bool, of int) {
		f.Patches, f.Implied, f.Of = append(f.Patches, p), append(f.Implied, implied), append(f.Of, of)
	}
	for i := range mutations {
		m := &mutations[i]
		p := m.Patch
		if p.Op == kg.Remove { // what backs a statement is no part of taking it away
			p.Certainty, p.HasCertainty, p.Validity, p.Provenance = 0, false, kg.TimeSpan{}, nil
		}
		if !m.ObjectType.IsZero() && !p.Quad.Object.IsResource() {
			return Facts{}, kg.Errorf(kg.CodeInvalid, "only a resource has an rdf:type").At(fmt.Sprintf("[%d].object.type", i))
		}
		if err := judging.Check(&p, i, ""); err != nil {
			return Facts{}, at(err, i)
		}
		add(p, false, i)
		if p.Op == kg.Remove {
			continue
		}
		for part, t := range [...]struct{ of, is kg.Term }{{p.Quad.Subject, m.SubjectType}, {p.Quad.Object, m.ObjectType}} {
			if t.is.IsZero() {
				continue
			}
			typed := kg.Patch{Op: kg.Add, Source: p.Source, Quad: kg.Quad{Subject: t.of, Predicate: rdfType, Object: t.is, Graph: p.Quad.Graph}}
			if err := judging.Check(&typed, i, typeParts[part]); err != nil {
				return Facts{}, at(err, i)
			}
			add(typed, true, i)
		}
	}
	return f, nil
}
