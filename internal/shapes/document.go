package shapes

import (
	"maps"
	"slices"

	"koine/kg"
)

// document has the statements of the shapes graph by subject and predicate.
type document map[kg.Term]map[kg.Term][]kg.Term

func (d document) add(q kg.Quad) {
	properties := d[q.Subject]
	if properties == nil {
		properties = map[kg.Term][]kg.Term{}
		d[q.Subject] = properties
	}
	if !slices.Contains(properties[q.Predicate], q.Object) {
		properties[q.Predicate] = append(properties[q.Predicate], q.Object)
	}
}

func documentOf(quads []kg.Quad) document {
	d := document{}
	for _, q := range quads {
		d.add(q)
	}
	return d
}

// sortedSubjects returns the subjects sorted by term, so that the order of shapes and errors
// does not depend on the order of statements.
func (d document) sortedSubjects() []kg.Term {
	return slices.SortedFunc(maps.Keys(d), kg.Term.Compare)
}

func (d document) sortedProperties(subject kg.Term) []kg.Term {
	return slices.SortedFunc(maps.Keys(d[subject]), kg.Term.Compare)
}

func (d document) sortedObjects(subject, predicate kg.Term) []kg.Term {
	return slices.SortedFunc(slices.Values(d[subject][predicate]), kg.Term.Compare)
}

func (d document) has(subject, predicate, object kg.Term) bool {
	return slices.Contains(d[subject][predicate], object)
}

// readList reads an rdf:List.
func (d document) readList(head kg.Term) ([]kg.Term, error) {
	var out []kg.Term
	for at, seen := head, map[kg.Term]bool{}; at != rdfNil; {
		first, rest := d[at][rdfFirst], d[at][rdfRest]
		if seen[at] || len(first) != 1 || len(rest) != 1 {
			return nil, invalid("%s is not a list", head)
		}
		seen[at] = true
		out = append(out, first[0])
		at = rest[0]
	}
	return out, nil
}

func invalid(format string, args ...any) *kg.Error {
	return kg.Errorf(kg.CodeInvalid, format, args...)
}
