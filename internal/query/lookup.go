package query

import "koine/kg"

// Lookup resolves the pattern to ids. If the pattern has only a predicate and
// the condition fixes the text, the pattern is narrowed to the literal with
// that text, provided that the view shows exactly one. The statements keep the
// order that they have without narrowing, so cursors are valid in both cases.
// known is false if nothing can match.
func (m *StatementMatch) Lookup(s *kg.Snapshot) (p kg.IDPattern, known bool, err error) {
	p, known, err = s.PatternIDs(m.Pattern)
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
		there, err := Shows(s, kg.IDPattern{Predicate: p.Predicate, Object: id})
		if err != nil {
			return p, false, err
		}
		if !there {
			continue
		}
		if narrow.Object != (kg.ID{}) {
			return p, true, nil // several languages or datatypes
		}
		narrow.Object = id
	}
	return narrow, narrow.Object != (kg.ID{}), nil
}
