package rdf

import (
	"iter"
	"slices"

	"koine/kg"
)

// Export yields all statements in the snapshot's view, graph by graph in the order of
// their names. In this order Writer produces the shortest document, and the same document
// for the same statements.
func Export(s *kg.Snapshot) iter.Seq2[kg.Quad, error] {
	return func(yield func(kg.Quad, error) bool) {
		graphs, err := s.Graphs()
		if err != nil {
			yield(kg.Quad{}, err)
			return
		}
		slices.SortFunc(graphs, func(a, b kg.TermCount) int { return a.Term.Compare(b.Term) })
		for _, g := range graphs {
			for st, err := range s.Match(kg.Pattern{Graph: g.Term}) {
				if !yield(st.Quad, err) || err != nil {
					return
				}
			}
		}
	}
}
