package rdf

import (
	"iter"
	"slices"

	"koine/kg"
)

// Export yields all that a snapshot shows, graph by graph in the order of
// their names: the order in which Writer writes the shortest document, and the
// same one whenever the same statements are exported.
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
