package graph

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"koine/graph/internal/scalar"
	"koine/kg"
)

func (p *planner) planCounts(f graphql.CollectedField) ([]scalarField, error) {
	return p.planScalars(f.Selections, termCountImplementors, "iri", "count")
}

func appendCounts(b []byte, list []kg.TermCount, fields []scalarField) []byte {
	return appendObjects(b, list, fields, "TermCount", func(b []byte, c kg.TermCount, name string) []byte {
		if name == "iri" {
			return scalar.AppendName(b, c.Term)
		}
		return scalar.AppendUint(b, c.Count)
	})
}

// appendPredicates writes the outgoing predicates with their counts.
func (l *loader) appendPredicates(g *gathered, id kg.ID, fields []scalarField, b []byte) ([]byte, error) {
	counts := map[kg.ID]uint64{}
	if id != (kg.ID{}) {
		for g.Sweep.Seek(kg.IDPattern{Subject: id}, nil); g.Sweep.Next(); {
			counts[g.Sweep.Row().Predicate]++
		}
		if err := g.Sweep.Err(); err != nil {
			return b, err
		}
	}
	list := make([]kg.TermCount, 0, len(counts))
	for p, n := range counts {
		t, err := l.snapshot.Term(p)
		if err != nil {
			return b, err
		}
		list = append(list, kg.TermCount{Term: t, Count: n})
	}
	slices.SortFunc(list, func(a, b kg.TermCount) int { return a.Term.Compare(b.Term) })
	return appendCounts(b, list, fields), nil
}
