package graph

import "koine/kg"

// looked is the pattern by ids. Of a predicate alone it is narrowed to the
// literal with the text that the condition leaves, if the view shows a single
// one: those statements, in the order in which they are found without it, so that
// a cursor is good whether it is narrowed or not. False when nothing can fit.
func (m *statementMatch) looked(s *kg.Snapshot) (p kg.IDPattern, known bool, err error) {
	p, known, err = idPattern(s, m.pattern)
	if m.text == nil || !known || err != nil || p.Predicate == (kg.ID{}) || p != (kg.IDPattern{Predicate: p.Predicate}) {
		return p, known, err
	}
	literals, complete, err := s.Literals(*m.text)
	if err != nil || !complete {
		return p, true, err
	}
	narrow := p
	for _, t := range literals {
		id, known, err := s.ID(t)
		if err != nil {
			return p, false, err
		}
		if !known {
			continue
		}
		there, err := holdsAny(s, kg.IDPattern{Predicate: p.Predicate, Object: id})
		if err != nil {
			return p, false, err
		}
		if !there {
			continue
		}
		if narrow.Object != (kg.ID{}) {
			return p, true, nil // in several languages or datatypes
		}
		narrow.Object = id
	}
	return narrow, narrow.Object != (kg.ID{}), nil
}
