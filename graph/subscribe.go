package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/internal/operation"
	"koine/kg"
)

// Subscribe establishes a subscription. When it returns, the operation is
// valid, its reads are allowed, and no change after its start can be missed.
// The error is an *operation.InvalidError if the operation is invalid,
// otherwise a *kg.Error (CodePositionGone, CodeOverloaded …). The subscription
// does not outlive ctx and must be closed. It is a *Stream.
func (e *Engine) Subscribe(ctx context.Context, req operation.Request) (operation.Subscription, error) {
	s, err := e.establishStream(ctx, req)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (e *Engine) establishStream(ctx context.Context, req operation.Request) (*Stream, error) {
	r := newRun(e, &req)
	opCtx, errs := e.prepareOperation(ctx, r)
	if len(errs) == 0 && opCtx.Operation.Operation != ast.Subscription {
		errs = e.faults.PresentAlone(kg.Errorf(kg.CodeInvalid, "the operation is a %s, not a subscription", opCtx.Operation.Operation))
	}
	if len(errs) > 0 {
		return nil, &operation.InvalidError{Errors: errs}
	}
	ctx, err := e.checkRules(ctx, r, opCtx)
	if err != nil {
		return nil, err
	}
	r.Life = ctx
	s, err := e.startStream(r, opCtx)
	if err == nil {
		if hints := r.findHints(ctx, opCtx); hints != nil {
			s.SetHints(hints)
		}
		forgetDocument(&req)
		return s, nil
	}
	var known *kg.Error
	if errors.As(err, &known) && (known.Code != kg.CodeInvalid || known.Field != "" && known.Field == req.Resume.SetBy) { // the operation is valid
		return nil, known
	}
	return nil, &operation.InvalidError{Errors: e.faults.PresentAlone(err)}
}

// forgetDocument removes the members of any size from a request. A stream keeps its request, and the
// bytes of a request are counted only until it is answered.
func forgetDocument(req *operation.Request) {
	req.Query, req.DocumentID, req.OperationName = "", "", ""
	req.Variables, req.Extensions, req.Metadata = nil, nil, nil
}

// startStream calls the function of the subscription's field.
func (e *Engine) startStream(r *run, opCtx *graphql.OperationContext) (s *Stream, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Recover(r.Life, p)
		}
	}()
	ctx := r.withRun(r.Life, opCtx)
	op := &executor.Operation{Context: opCtx, Coercer: executor.Coercer{Ctx: ctx}}
	root := op.Root(r.schema.tables.Subscription, nil)
	// The library's validation counts two aliases of a field as one.
	if len(root.Fields) != 1 {
		return nil, kg.Errorf(kg.CodeInvalid, "a subscription must have exactly one root field")
	}
	if err := r.AwaitRevision(ctx, subscriptionImplementors); err != nil {
		return nil, err
	}
	stream, err := root.Fields[0].Subscribe(ctx)
	if err != nil {
		return nil, fault.AtPath(ast.Path{ast.PathName(root.Fields[0].Alias)}, err)
	}
	return stream.(*Stream), nil
}
