package graph

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"koine/kg"
)

// countField is a field of TermCount.
type countField struct {
	key  []byte
	name string
}

func (p *planner) counts(f graphql.CollectedField) (fields []countField, err error) {
	err = p.eachField(f.Selections, termCountImplementors, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, countField{key, f.Name})
		switch f.Name {
		case "__typename", "iri", "count":
			return nil
		}
		return unplanned(f)
	})
	return fields, err
}

func appendCounts(b []byte, list []kg.TermCount, fields []countField) []byte {
	b = append(b, '[')
	for i, c := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		for j, f := range fields {
			if j > 0 {
				b = append(b, ',')
			}
			b = append(b, f.key...)
			switch f.name {
			case "iri":
				b = appendName(b, c.Term)
			case "count":
				b = appendUint(b, c.Count)
			default:
				b = append(b, `"TermCount"`...)
			}
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// predicates writes the outgoing predicates with their counts.
func (l *loader) predicates(id kg.ID, fields []countField, b []byte) ([]byte, error) {
	counts := map[kg.ID]uint64{}
	if id != (kg.ID{}) {
		for row, err := range l.snapshot.MatchIDs(kg.IDPattern{Subject: id}, nil) {
			if err != nil {
				return b, err
			}
			counts[row.Predicate]++
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
