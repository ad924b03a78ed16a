package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
)

// Ask is an operation about which the operator's rules are asked.
type Ask struct {
	Request      *operation.Request
	Subscription bool
	Text         string   // of the document
	Fields       []string // of the root, without aliases
}

// Rules may refuse a query or a subscription, with CodeAlignmentViolation.
type Rules interface {
	Refuses(ctx context.Context, a Ask) error
}

// refused asks the rules about a query or a subscription. What a mutation does is
// judged where it is done.
func (e *Engine) refused(ctx context.Context, r *run, op *graphql.OperationContext) error {
	if e.deps.Rules == nil || op.Operation.Operation == ast.Mutation {
		return nil
	}
	of := queryImplementors
	if op.Operation.Operation == ast.Subscription {
		of = subscriptionImplementors
	}
	a := Ask{Request: r.request, Subscription: op.Operation.Operation == ast.Subscription, Text: op.RawQuery, Fields: []string{}}
	for _, f := range graphql.CollectFields(op, op.Operation.SelectionSet, of) {
		a.Fields = append(a.Fields, f.Name)
	}
	return e.deps.Rules.Refuses(ctx, a)
}
