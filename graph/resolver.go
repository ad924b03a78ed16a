package graph

// Resolver is the root of the generated resolvers.
type Resolver struct{ engine *Engine }
