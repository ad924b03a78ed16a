package operation

import "context"

type askedKey struct{}

// WithAsked marks the context of an operation that the operator's rules have already
// judged. Without the mark the store judges each read itself, knowing only the reader:
// so no entry point is unjudged, and none is judged twice.
func WithAsked(ctx context.Context) context.Context {
	return context.WithValue(ctx, askedKey{}, true)
}

// Asked reports whether the context has the mark of WithAsked.
func Asked(ctx context.Context) bool { return ctx.Value(askedKey{}) != nil }
