// Package modelcontext gives language models tools to read and write the graph, by the Model
// Context Protocol.
//
// NewServer returns a server of the official SDK. Its tools run GraphQL operations of a
// Querier, so they have the rights, limits and rules of its caller, and keep nothing between
// two calls. Texts have the form of package compact, which models read and write.
package modelcontext

import "context"

// Querier runs GraphQL operations as one caller. An error says how to go on, and hints name
// those that are near to a name that does not occur.
type Querier interface {
	GraphQL(ctx context.Context, query string, variables map[string]any, into any) error
	Hinted(ctx context.Context, query string, variables map[string]any, into any) (hints []string, err error)
}
