package operation

import "context"

type askedKey struct{}

// WithAsked marks the context of an operation about which the operator's rules
// were asked. Without it the store asks about each read by itself, knowing no more
// than who reads: so no door is forgotten, and none is asked about twice.
func WithAsked(ctx context.Context) context.Context {
	return context.WithValue(ctx, askedKey{}, true)
}

// Asked tells whether the context is one of WithAsked.
func Asked(ctx context.Context) bool { return ctx.Value(askedKey{}) != nil }
