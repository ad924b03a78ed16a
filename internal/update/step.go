package update

import (
	"fmt"

	"koine/kg"
)

// step is one patch of the normalised request. Steps are applied in order.
type step struct {
	kg.Patch
	mutation int // index in the request
	// implied marks an rdf:type patch that a mutation states on the side. It
	// yields to what its source says of that type already: only a mutation of
	// its own sets the certainty, the validity or the provenance of a type.
	implied bool
	part    string // of the mutation that an implied patch is of
}

var rdfType = kg.IRI(kg.RDFType)

// typing is an rdf:type statement and who makes it.
type typing struct {
	quad   kg.Quad
	source kg.AgentID
}

// typeParts are the parts of a mutation that state a type on the side.
var typeParts = [...]string{"subject.type", "object.type"}

// normalise checks the mutations and spells out what they leave unsaid, so that
// requests that ask for the same thing become the same steps: the graph, the
// source, the types as patches of their own.
func normalise(mutations []Mutation, source kg.AgentID) ([]step, error) {
	steps := make([]step, 0, len(mutations))
	// stated holds the types that the steps since the last removal imply:
	// saying them again has no effect.
	stated := map[typing]bool{}
	for i, m := range mutations {
		p := m.Patch
		if p.Op == kg.Remove { // what backs a statement is no part of taking it away
			p.Certainty, p.HasCertainty, p.Validity, p.Provenance = 0, false, kg.TimeSpan{}, nil
		}
		if err := p.Normalise(source); err != nil {
			return nil, at(err, i)
		}
		if !m.ObjectType.IsZero() && !p.Quad.Object.IsResource() {
			return nil, kg.Errorf(kg.CodeInvalid, "only a resource has an rdf:type").At(fmt.Sprintf("[%d].object.type", i))
		}
		steps = append(steps, step{Patch: p, mutation: i})
		if p.Op != kg.Add {
			clear(stated)
		}
		if p.Op == kg.Remove {
			continue
		}
		for part, t := range [...]typing{
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

// at says which mutation an error is about.
func at(err error, mutation int) error {
	return kg.AsError(err).At(fmt.Sprintf("[%d]", mutation))
}

// run applies the step inside the transaction.
func (s *step) run(tx *kg.Tx) error {
	if s.implied {
		said, err := says(tx, s.Source, s.Quad)
		if said || err != nil {
			return err
		}
	}
	return tx.Apply(s.Patch)
}

// says tells whether the source backs the statement already.
func says(tx *kg.Tx, source kg.AgentID, q kg.Quad) (bool, error) {
	for st, err := range tx.Match(kg.Pattern(q)) {
		if err != nil {
			return false, err
		}
		for _, a := range st.Assertions {
			if a.Source == source {
				return true, nil
			}
		}
	}
	return false, nil
}
