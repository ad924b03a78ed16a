package graph

import (
	"koine/graph/internal/scalar"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// scalarField is a field of an object that has only scalars.
type scalarField struct {
	key  []byte
	name string
}

// planScalars plans an object with scalar fields of these names.
func (p *planner) planScalars(set ast.SelectionSet, implementors []string, names ...string) (fields []scalarField, err error) {
	err = p.eachField(set, implementors, func(f graphql.CollectedField, key []byte) error {
		fields = append(fields, scalarField{key, f.Name})
		if f.Name != "__typename" && !slices.Contains(names, f.Name) {
			return unplannedField(f)
		}
		return nil
	})
	return fields, err
}

// appendObject writes an object of scalars.
func appendObject(b []byte, fields []scalarField, typename string, value func(b []byte, name string) []byte) []byte {
	return scalar.AppendFields(b, fields, func(b []byte, _ int, f *scalarField) []byte {
		if b = append(b, f.key...); f.name == "__typename" {
			return scalar.AppendString(b, typename)
		}
		return value(b, f.name)
	})
}

// appendObjects writes a list of objects.
func appendObjects[T any](
	b []byte, list []T, fields []scalarField, typename string, value func(b []byte, v T, name string) []byte,
) []byte {
	return scalar.AppendList(b, list, func(b []byte, v *T) []byte {
		return appendObject(b, fields, typename, func(b []byte, name string) []byte { return value(b, *v, name) })
	})
}
