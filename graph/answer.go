package graph

import (
	"context"
	"io"

	"github.com/99designs/gqlgen/graphql"
)

// answer is where the resolver of a field leaves the JSON that the engine wrote.
type answer struct {
	json     []byte
	failures failures
}

// MarshalGQL writes it.
func (a *answer) MarshalGQL(w io.Writer) { write(w, a.json) }

type answerKey struct{}

// answerFields is the engine's ResolverMiddleware. It gives each field that the
// engine answers its answer, and puts what the resolver left there in the place of the value that
// the resolver returned: gqlgen takes a Marshaler for a result as it is.
func answerFields(ctx context.Context, next graphql.Resolver) (any, error) {
	if fc := graphql.GetFieldContext(ctx); !engineAnswers(fc) {
		return next(ctx)
	}
	a := &answer{}
	res, err := next(context.WithValue(ctx, answerKey{}, a))
	if err == nil && a.json != nil {
		var errs []error
		a.json, errs, err = a.failures.place(a.json, graphql.GetPath(ctx))
		for _, failed := range errs {
			graphql.AddError(ctx, failed)
		}
		return a, err
	}
	return res, err
}

func answerOf(ctx context.Context) *answer { return ctx.Value(answerKey{}).(*answer) }
