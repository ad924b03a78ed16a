package graph

import (
	"context"
	"io"

	"github.com/99designs/gqlgen/graphql"
)

// answer holds the JSON that the engine wrote for a field.
type answer struct {
	json     []byte
	failures failures
}

// MarshalGQL writes the JSON.
func (a *answer) MarshalGQL(w io.Writer) { write(w, a.json) }

type answerKey struct{}

// answerFields is the engine's ResolverMiddleware. It gives each field that
// the engine answers an answer to fill, and returns that in place of the
// resolver's value: gqlgen writes a Marshaler as it is.
func answerFields(ctx context.Context, next graphql.Resolver) (any, error) {
	if fc := graphql.GetFieldContext(ctx); !engineAnswers(fc) {
		return next(ctx)
	}
	a := &answer{}
	res, err := next(context.WithValue(ctx, answerKey{}, a))
	if err == nil && a.json != nil {
		var errs []error
		a.json, errs, err = a.failures.placeErrors(a.json, graphql.GetPath(ctx))
		for _, failed := range errs {
			graphql.AddError(ctx, failed)
		}
		return a, err
	}
	return res, err
}

func answerOf(ctx context.Context) *answer { return ctx.Value(answerKey{}).(*answer) }
