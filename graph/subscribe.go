package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

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
		errs = e.presentErrors(kg.Errorf(kg.CodeInvalid, "the operation is a %s, not a subscription", opCtx.Operation.Operation))
	}
	if len(errs) > 0 {
		return nil, &operation.InvalidError{Errors: errs}
	}
	ctx, err := e.checkRules(ctx, r, opCtx)
	if err != nil {
		return nil, err
	}
	// The resolver of the field does the work: see newStream.
	f := &subscriptionResult{ctx: ctx}
	ctx = context.WithValue(r.withRun(ctx, opCtx), subscriptionResultKey{}, f)
	errs = e.runResolver(ctx)
	switch known := (*kg.Error)(nil); {
	case len(errs) == 0 && f.subscription == nil:
		return nil, kg.Errorf(kg.CodeInternal, "internal error")
	case len(errs) == 0:
		if hints := r.findHints(ctx, opCtx); hints != nil {
			f.subscription.hints.Store(&hints)
		}
		return f.subscription, nil
	case errors.As(f.err, &known) && (known.Code != kg.CodeInvalid || known.Field != "" && known.Field == req.Resume.SetBy): // the operation is valid
		return nil, f.err
	}
	return nil, &operation.InvalidError{Errors: errs}
}

// runResolver lets the generated code parse the arguments and call the resolver.
// The generated code's writing of events is not used: each event is written by
// the stream's own plan.
func (e *Engine) runResolver(ctx context.Context) (errs gqlerror.List) {
	defer func() {
		if p := recover(); p != nil {
			errs = e.presentErrors(e.recoverPanic(ctx, p))
		}
	}()
	op := graphql.GetOperationContext(ctx)
	// The library's validation counts two aliases of a field as one.
	if len(graphql.CollectFields(op, op.Operation.SelectionSet, subscriptionImplementors)) != 1 {
		return e.presentErrors(kg.Errorf(kg.CodeInvalid, "a subscription must have exactly one root field"))
	}
	if err := runOf(ctx).awaitRevision(ctx, subscriptionImplementors); err != nil {
		ctx.Value(subscriptionResultKey{}).(*subscriptionResult).err = err
		return e.presentErrors(err)
	}
	ctx = graphql.WithResponseContext(ctx, e.presentError, e.recoverPanic)
	e.schema.Exec(ctx)
	return graphql.GetErrors(ctx)
}

// subscriptionResult is where the resolver of a subscription stores the stream or the
// error.
type subscriptionResult struct {
	// ctx is the stream's context. Unlike the resolver's, it does not retain
	// the parsed operation.
	ctx          context.Context
	subscription *Stream
	err          error
}

type subscriptionResultKey struct{}

// subscribeTo establishes the subscription of the resolver's field. of makes
// its content and its subject.
func subscribeTo(ctx context.Context, resume *Position, view *ViewInput, of func(*planner, ast.SelectionSet) (eventContent, changefeed.Subject, error)) error {
	f, _ := ctx.Value(subscriptionResultKey{}).(*subscriptionResult)
	f.subscription, f.err = newStream(ctx, f.ctx, resume, view, of)
	return f.err
}

func newStream(ctx, life context.Context, resume *Position, view *ViewInput, of func(*planner, ast.SelectionSet) (eventContent, changefeed.Subject, error)) (*Stream, error) {
	r, fc := runOf(ctx), graphql.GetFieldContext(ctx)
	v, err := r.fieldView(view)
	if err != nil {
		return nil, err
	}
	p := newPlanner(ctx, v)
	content, subject, err := of(p, fc.Field.Selections)
	if err != nil {
		return nil, err
	}
	plan, err := p.planEvent(fc.Field, content)
	if err != nil {
		return nil, err
	}
	start, err := r.startPosition(resume)
	if err != nil {
		return nil, err
	}
	s := &Stream{ctx: life, engine: r.engine, request: r.request, plan: plan, view: v}
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
