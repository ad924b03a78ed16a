package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/views"
	"koine/internal/changefeed"
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
	r.life = ctx
	s, err := e.startStream(r, opCtx)
	if err == nil {
		if hints := r.findHints(ctx, opCtx); hints != nil {
			s.hints.Store(&hints)
		}
		return s, nil
	}
	var known *kg.Error
	if errors.As(err, &known) && (known.Code != kg.CodeInvalid || known.Field != "" && known.Field == req.Resume.SetBy) { // the operation is valid
		return nil, known
	}
	return nil, &operation.InvalidError{Errors: e.faults.PresentAlone(err)}
}

// startStream calls the function of the subscription's field.
func (e *Engine) startStream(r *run, opCtx *graphql.OperationContext) (s *Stream, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Recover(r.life, p)
		}
	}()
	ctx := r.withRun(r.life, opCtx)
	op := &executor.Operation{Context: opCtx, Coercer: executor.Coercer{Ctx: ctx}}
	root := op.Root(r.schema.tables.Subscription, nil)
	// The library's validation counts two aliases of a field as one.
	if len(root.Fields) != 1 {
		return nil, kg.Errorf(kg.CodeInvalid, "a subscription must have exactly one root field")
	}
	if err := r.awaitRevision(ctx, subscriptionImplementors); err != nil {
		return nil, err
	}
	stream, err := root.Fields[0].Subscribe(ctx)
	if err != nil {
		return nil, fault.AtPath(ast.Path{ast.PathName(root.Fields[0].Alias)}, err)
	}
	return stream.(*Stream), nil
}

// subscribeTo establishes the subscription of a field. of makes its content and
// its subject.
func subscribeTo(ctx context.Context, f *executor.Selected, resume *Position, view *views.ViewInput, of func(*planner, ast.SelectionSet) (eventContent, changefeed.Subject, error)) (*Stream, error) {
	r := runOf(ctx)
	v, err := r.fieldView(view)
	if err != nil {
		return nil, err
	}
	p := newPlanner(ctx, f, v)
	content, subject, err := of(p, f.Selections)
	if err != nil {
		return nil, err
	}
	plan, err := p.planEvent(f.CollectedField, content)
	if err != nil {
		return nil, err
	}
	start, err := r.startPosition(resume)
	if err != nil {
		return nil, err
	}
	s := &Stream{ctx: r.life, engine: r.engine, request: r.request, plan: plan, view: v}
	return s, s.startFollowing(subject, start)
}

// startPosition returns the start of the subscription. The request's own start takes
// precedence over the argument: a client that reconnects sends the same
// operation.
func (r *run) startPosition(argument *Position) (operation.Resume, error) {
	if r.request.Resume.Start != operation.DefaultStart || argument == nil {
		return r.request.Resume, nil
	}
	switch *argument {
	case "latest":
		return operation.Resume{Start: operation.Latest}, nil
	case "earliest":
		return operation.Resume{Start: operation.Earliest}, nil
	case "snapshot":
		return operation.Resume{Start: operation.Snapshot}, nil
	}
	after, err := r.engine.deps.Store.ParsePosition(string(*argument))
	if err != nil {
		return operation.Resume{}, kg.AsError(err).At("resume")
	}
	return operation.Resume{Start: operation.After, After: after}, nil
}
