package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql/introspection"
)

// Schema answers Query.__schema.
func (*queryRoot) Schema(ctx context.Context) *introspection.Schema {
	return introspection.WrapSchema(runOf(ctx).schema.Schema())
}

// Type answers Query.__type, nil for an unknown name.
func (*queryRoot) Type(ctx context.Context, name string) *introspection.Type {
	schema := runOf(ctx).schema.Schema()
	def := schema.Types[name]
	if def == nil {
		return nil
	}
	return introspection.WrapTypeFromDef(schema, def)
}
