package kg

import (
	"bytes"
	"iter"

	"koine/kg/internal/keys"
)

// Numbered yields the statements of Sequence in the graph in the order of their
// numbers, from this number on. Getting to the first costs one seek, however
// many are before it.
func (s *Snapshot) Numbered(graph Term, from int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		g, known, err := s.dict.id(graph)
		if err != nil {
			yield(Row{}, err)
			return
		}
		if !known {
			return
		}
		for row, err := range s.MatchIDs(IDPattern{Graph: g, Predicate: keys.Sequence}, before(g, max(1, from))) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// before is a quad that no statement of Sequence with the number comes before,
// and all with a lower one do.
func before(graph ID, number int64) *IDQuad {
	q := &IDQuad{Graph: graph, Predicate: keys.Sequence, Object: keys.FromInt(keys.TagInteger, number-1)}
	copy(q.Subject[:], bytes.Repeat([]byte{0xff}, keys.IDSize))
	return q
}
