package update

import (
	"context"
	"fmt"

	"koine/internal/names"
	"koine/kg"
)

// Facts are mutations as plain patches, for callers that write them in one commit with
// something else.
type Facts struct {
	Patches []kg.Patch
	// Implied marks the patches that state an implied rdf:type: the caller omits one if
	// its source already asserts that type.
	Implied []bool
	// Mutation is the index of the mutation of each patch.
	Mutation []int
}

// Expand expands mutations into patches. It leaves an empty graph or source empty for
// the caller to set. It checks names as Apply does, for the principal.
func Expand(ctx context.Context, judge *names.Judge, by kg.Principal, mutations []Mutation) (f Facts, err error) {
	judging := judge.Begin(ctx, by)
	defer judging.Close()
	add := func(p kg.Patch, implied bool, mutation int) {
		f.Patches, f.Implied, f.Mutation = append(f.Patches, p), append(f.Implied, implied), append(f.Mutation, mutation)
	}
	for i := range mutations {
		m := &mutations[i]
		p := m.Patch
		if p.Op == kg.Remove { // a removal has no evidence of its own
			p.Certainty, p.HasCertainty, p.Validity, p.Provenance, p.Embedding = 0, false, kg.TimeSpan{}, nil, nil
		}
		if !m.ObjectType.IsZero() && !p.Quad.Object.IsResource() {
			return Facts{}, kg.Errorf(kg.CodeInvalid, "the object must be a resource to have an rdf:type").At(fmt.Sprintf("[%d].object.type", i))
		}
		if err := judging.Check(&p, i, ""); err != nil {
			return Facts{}, atMutation(err, i)
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
				return Facts{}, atMutation(err, i)
			}
			add(typed, true, i)
		}
	}
	return f, nil
}
