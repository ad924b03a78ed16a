package kg

import (
	"iter"

	"koine/kg/internal/keys"
)

// Numbered yields the statements of Sequence in the graph in the order of their
// numbers, from this number on. Getting to the first costs one seek, however
// many are before it.
func (s *Snapshot) Numbered(graph Term, from int64) iter.Seq2[Row, error] {
	return s.InOrder(graph, Sequence, max(1, from), ID{})
}

// InOrder yields the statements of Sequence, or of a property that is Ordered, in the
// graph, in the order of their numbers and then of their subjects' ids: those of this
// number with subjects behind the given one (the zero ID is before all), then those of
// greater numbers. Getting to the first costs one seek, however many are before it.
func (s *Snapshot) InOrder(graph, property Term, from int64, behind ID) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		ids, known, err := s.patternIDs(Pattern{Graph: graph, Predicate: property})
		if err != nil {
			yield(Row{}, err)
			return
		}
		if !known {
			return
		}
		for row, err := range s.MatchIDs(ids, place(ids, from, behind)) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// place is a quad that all with a lower number come before, and those with this number
// whose subjects are not behind the given one.
func place(p IDPattern, number int64, subject ID) *IDQuad {
	return &IDQuad{Graph: p.Graph, Predicate: p.Predicate, Object: keys.FromInt(keys.TagInteger, number), Subject: subject}
}
