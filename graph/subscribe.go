package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/kg"
)

// Subscribe establishes a subscription: when it returns, the operation is
// valid, what it reads is allowed, and nothing after its start can be missed.
// The error is an *operation.InvalidError when the operation itself is wrong,
// else a *kg.Error (CodePositionGone, CodeOverloaded …). The subscription lives
// no longer than ctx and must be closed. It is a *Stream.
func (e *Engine) Subscribe(ctx context.Context, req operation.Request) (operation.Subscription, error) {
	s, err := e.subscribe(ctx, req)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (e *Engine) subscribe(ctx context.Context, req operation.Request) (*Stream, error) {
	r := newRun(e, &req)
	opCtx, errs := e.prepare(ctx, r)
	if len(errs) == 0 && opCtx.Operation.Operation != ast.Subscription {
		errs = e.present(kg.Errorf(kg.CodeInvalid, "the operation is a %s, not a subscription", opCtx.Operation.Operation))
	}
	if len(errs) > 0 {
		return nil, &operation.InvalidError{Errors: errs}
	}
	// The resolver of the field does the work; see newStream.
	f := &following{ctx: ctx}
	ctx = context.WithValue(r.context(ctx, opCtx), followingKey{}, f)
	errs = e.establish(ctx)
	switch known := (*kg.Error)(nil); {
	case len(errs) == 0 && f.subscription == nil:
		return nil, kg.Errorf(kg.CodeInternal, "internal error")
	case len(errs) == 0:
		return f.subscription, nil
	case errors.As(f.err, &known) && known.Code != kg.CodeInvalid:
		return nil, f.err
	}
	return nil, &operation.InvalidError{Errors: errs}
}

// establish lets the generated code parse the arguments and call the resolver.
// What it would make of the resolver's channel is not used: an event is written
// by its own plan.
func (e *Engine) establish(ctx context.Context) (errs gqlerror.List) {
	defer func() {
		if p := recover(); p != nil {
			errs = e.present(e.recovered(ctx, p))
		}
	}()
	op := graphql.GetOperationContext(ctx)
	// The library's rule of validation counts two aliases of a field as one.
	if len(graphql.CollectFields(op, op.Operation.SelectionSet, subscriptionImplementors)) != 1 {
		return e.present(kg.Errorf(kg.CodeInvalid, "a subscription has exactly one root field"))
	}
	ctx = graphql.WithResponseContext(ctx, e.presentError, e.recovered)
	e.schema.Exec(ctx)
	return graphql.GetErrors(ctx)
}

// following is where the resolver of a subscription leaves what it
// established, or why it could not.
type following struct {
	// ctx is that of the stream. It does not hold on to the parsed operation,
	// as that of the resolver does.
	ctx          context.Context
	subscription *Stream
	err          error
}

type followingKey struct{}

// followStatements establishes Subscription.statementChanged.
func followStatements(ctx context.Context, where *StatementFilter, ops []kg.Op, resume *Position, view *ViewInput) error {
	f, _ := ctx.Value(followingKey{}).(*following)
	f.subscription, f.err = newStream(ctx, f.ctx, where, ops, resume, view)
	return f.err
}

func newStream(ctx, life context.Context, where *StatementFilter, ops []kg.Op, resume *Position, view *ViewInput) (*Stream, error) {
	r, fc := runOf(ctx), graphql.GetFieldContext(ctx)
	v, err := r.view(view)
	if err != nil {
		return nil, err
	}
	match, err := matchStatement(where)
	if err != nil {
		return nil, kg.AsError(err).At("where")
	}
	plan, err := newPlanner(ctx, v).event(fc.Field)
	if err != nil {
		return nil, err
	}
	start, err := r.start(resume)
	if err != nil {
		return nil, err
	}
	s := &Stream{
		ctx: life, engine: r.engine, request: r.request, plan: plan,
		filter: kg.Filter{Pattern: match.pattern, Ops: ops, View: v, Keep: match.keep()},
	}
	return s, s.register(start)
}

// keep is the test of a match as a watch wants it: of one assertion at a time.
func (m statementMatch) keep() func(kg.Statement) bool {
	if m.test == nil {
		return nil
	}
	return func(s kg.Statement) bool {
		ok, err := m.test(factOf(s))
		return ok && err == nil
	}
}

// start says where the subscription starts. What the request itself says wins:
// it is of a client that comes back with the same operation.
func (r *run) start(argument *Position) (operation.Resume, error) {
	if r.request.Resume.Start != operation.Unsaid || argument == nil {
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
