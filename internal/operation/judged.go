package operation

import "context"

type judgedKey struct{}

// WithJudged marks the context of an operation that the operator's rules have already
// judged. Without the mark the store judges each read itself, knowing only the reader:
// so no entry point is unjudged, and none is judged twice.
func WithJudged(ctx context.Context) context.Context {
	return context.WithValue(ctx, judgedKey{}, true)
}

// Judged reports whether the context has the mark of WithJudged.
func Judged(ctx context.Context) bool { return ctx.Value(judgedKey{}) != nil }
