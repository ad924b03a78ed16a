package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/operation"
)

// OperationInfo describes an operation to the operator's rules.
type OperationInfo struct {
	Request      *operation.Request
	Subscription bool
	Text         string   // of the document
	Fields       []string // of the root, without aliases
}

// Rules may refuse a query or a subscription, with CodeAlignmentViolation.
type Rules interface {
	CheckOperation(ctx context.Context, a OperationInfo) error
}

// checkRules evaluates the rules for a query or a subscription, and marks the
// context as checked. Mutations are judged by the update that they make.
func (e *Engine) checkRules(ctx context.Context, r *run, op *graphql.OperationContext) (context.Context, error) {
	if e.deps.Rules == nil {
		return ctx, nil
	}
	if op.Operation.Operation == ast.Mutation {
		return operation.WithJudged(ctx), nil
	}
	of := queryImplementors
	if op.Operation.Operation == ast.Subscription {
		of = subscriptionImplementors
	}
	a := OperationInfo{Request: r.request, Subscription: op.Operation.Operation == ast.Subscription, Text: op.RawQuery, Fields: []string{}}
	for _, f := range graphql.CollectFields(op, op.Operation.SelectionSet, of) {
		a.Fields = append(a.Fields, f.Name)
	}
	return operation.WithJudged(ctx), e.deps.Rules.CheckOperation(ctx, a)
}
