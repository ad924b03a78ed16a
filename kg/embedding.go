package kg

import "iter"

// EmbeddedAssertion is an assertion with an embedding, and the ids of its statement.
type EmbeddedAssertion struct {
	IDQuad
	Assertion Assertion
}

// Embeddings yields the visible assertions with an embedding of the statements that match the
// pattern, in the order of MatchIDs. With after, it starts behind that quad.
func Embeddings(s *Snapshot, p IDPattern, after *IDQuad) iter.Seq2[EmbeddedAssertion, error] {
	return func(yield func(EmbeddedAssertion, error) bool) {
		for row, err := range s.MatchAsserted(p, after) {
			if err != nil {
				yield(EmbeddedAssertion{}, err)
				return
			}
			for i := range row.shown {
				if row.shown[i].Embedding != nil && !yield(EmbeddedAssertion{row.IDQuad, row.shown[i]}, nil) {
					return
				}
			}
		}
	}
}
