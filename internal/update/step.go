package update

import (
	"fmt"
	"slices"

	"koine/kg"
)

// step is one patch of the normalised request. Steps are applied in order.
type step struct {
	kg.Patch
	mutation int // index of the mutation in the request
	// implied marks an rdf:type patch that a mutation implies. It has no effect if its
	// source already asserts that type: only an explicit mutation sets the certainty,
	// validity or provenance of a type.
	implied bool
	part    string // part of the mutation that implies the patch
}

var rdfType = kg.IRI(kg.RDFType)

// typeStatement is an rdf:type statement with its source.
type typeStatement struct {
	quad   kg.Quad
	source kg.AgentID
}

// typeParts are the parts of a mutation that imply a type.
var typeParts = [...]string{"subject.type", "object.type"}

// normalise checks the mutations and fills in omitted parts, so that equivalent
// requests become equal steps: the graph, the source, and the types as patches of their
// own.
func normalise(mutations []Mutation, source kg.AgentID) ([]step, error) {
	steps := make([]step, 0, len(mutations))
	// stated holds the types implied by the steps since the last removal: repeating
	// them has no effect.
	stated := map[typeStatement]bool{}
	for i, m := range mutations {
		p := m.Patch
		if p.Op == kg.Remove { // a removal has no evidence of its own
			p.Certainty, p.HasCertainty, p.Validity, p.Provenance, p.Embedding = 0, false, kg.TimeSpan{}, nil, nil
		}
		if err := p.Normalise(source); err != nil {
			return nil, atMutation(err, i)
		}
		if !m.ObjectType.IsZero() && !p.Quad.Object.IsResource() {
			return nil, kg.Errorf(kg.CodeInvalid, "the object must be a resource to have an rdf:type").At(fmt.Sprintf("[%d].object.type", i))
		}
		steps = append(steps, step{Patch: p, mutation: i})
		if p.Op != kg.Add {
			clear(stated)
		}
		if p.Op == kg.Remove {
			continue
		}
		for part, t := range [...]typeStatement{
			{kg.Quad{Subject: p.Quad.Subject, Object: m.SubjectType}, p.Source},
			{kg.Quad{Subject: p.Quad.Object, Object: m.ObjectType}, p.Source},
		} {
			t.quad.Predicate, t.quad.Graph = rdfType, p.Quad.Graph
			if t.quad.Object.IsZero() || stated[t] {
				continue
			}
			stated[t] = true
			steps = append(steps, step{Patch: kg.Patch{Op: kg.Add, Quad: t.quad, Source: t.source}, mutation: i, implied: true, part: typeParts[part]})
		}
	}
	return steps, nil
}

// atMutation adds the index of the mutation to an error.
func atMutation(err error, mutation int) error {
	return kg.AsError(err).At(fmt.Sprintf("[%d]", mutation))
}

func (s *step) applyTo(tx *kg.Tx) error {
	if s.implied {
		asserted, err := alreadyAsserted(tx, s.Source, s.Quad)
		if asserted || err != nil {
			return err
		}
	}
	return tx.Apply(s.Patch)
}

func alreadyAsserted(tx *kg.Tx, source kg.AgentID, q kg.Quad) (bool, error) {
	for st, err := range tx.Match(kg.Pattern(q)) {
		return slices.ContainsFunc(st.Assertions, func(a kg.Assertion) bool { return a.Source == source }), err
	}
	return false, nil
}
