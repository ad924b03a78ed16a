package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql/introspection"
)

// introspectSchema answers Query.__schema.
func introspectSchema(ctx context.Context) (*introspection.Schema, error) {
	return introspection.WrapSchema(runOf(ctx).engine.schema.Schema()), nil
}

// introspectType answers Query.__type, nil for an unknown name.
func introspectType(ctx context.Context, name string) (*introspection.Type, error) {
	schema := runOf(ctx).engine.schema.Schema()
	def := schema.Types[name]
	if def == nil {
		return nil, nil
	}
	return introspection.WrapTypeFromDef(schema, def), nil
}
