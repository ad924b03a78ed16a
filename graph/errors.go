package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/executor"
	"koine/kg"
)

// presentError is the one place where an error gets its public form: message,
// path, and extensions with code and hints. An internal error becomes
// "internal error" and is logged here, once.
func (e *Engine) presentError(ctx context.Context, err error) *gqlerror.Error {
	return e.presentAt(ctx, nil, nil, err)
}

// presentAt is presentError for the error of a field. The path of an error
// inside of its selection begins below the field.
func (e *Engine) presentAt(ctx context.Context, path ast.Path, at *ast.Position, err error) *gqlerror.Error {
	out := &gqlerror.Error{Message: err.Error()}
	var g *gqlerror.Error
	if errors.As(err, &g) {
		out = &gqlerror.Error{Message: g.Message, Path: g.Path, Locations: g.Locations, Extensions: g.Extensions}
	}
	if path != nil {
		out.Path = slices.Concat(path, out.Path)
	}
	if at != nil && out.Locations == nil {
		out.Locations = []gqlerror.Location{{Line: at.Line, Column: at.Column}}
	}
	var argument *executor.ArgumentError
	if errors.As(err, &argument) {
		setExtension(out, "field", argument.Path.String())
	}
	var limit *LimitError
	var budget *budgetError
	var known *kg.Error
	switch {
	case errors.As(err, &budget):
		e.presentBudget(out, budget)
	case isSpent(err):
		e.presentBudget(out, &budgetError{message: kg.AsError(err).Message})
	case errors.As(err, &limit):
		e.presentLimit(out, limit)
	case errors.Is(err, executor.ErrTooManyErrors):
		e.presentLimit(out, limitError("errors", "more than %d fields have failed", executor.MaxErrors).withHint("Request a smaller page, or leave out the fields that fail."))
	case errors.Is(err, context.DeadlineExceeded):
		e.presentLimit(out, e.limits.tooSlow())
	case errors.Is(err, context.Canceled):
		out.Message = "the request was canceled"
		setExtension(out, "code", string(kg.CodeClosed))
	case errors.As(err, &known) && known.Code != kg.CodeInternal:
		e.presentKnown(out, known)
	case argument != nil, g != nil && (g.Err == nil || errors.Unwrap(g.Err) == nil && out.Extensions["code"] != nil):
		// Errors of the libraries' parser, validator and argument coercion:
		// their messages are meant for the caller.
		if out.Extensions["code"] == nil {
			setExtension(out, "code", string(kg.CodeInvalid))
		}
	default:
		e.presentInternal(ctx, out, err)
	}
	return out
}

func (e *Engine) presentAll(errs gqlerror.List) gqlerror.List {
	out := make(gqlerror.List, len(errs))
	for i, err := range errs {
		out[i] = e.presentError(context.Background(), err)
	}
	return out
}

func (e *Engine) presentLimit(out *gqlerror.Error, err *LimitError) {
	out.Message = err.Message
	code := kg.CodeLimitExceeded
	if err.Limit == "duration" {
		code = kg.CodeTimeout
	}
	setExtension(out, "code", string(code))
	setExtension(out, "limit", err.Limit)
	if err.Hint != "" {
		setExtension(out, "hint", err.Hint)
	}
}

func (e *Engine) presentKnown(out *gqlerror.Error, err *kg.Error) {
	out.Message = err.Message
	setExtension(out, "code", string(err.Code))
	if err.Field != "" {
		setExtension(out, "field", err.Field)
	}
	if err.Limit != "" {
		setExtension(out, "limit", err.Limit)
	}
	if err.Hint != "" {
		setExtension(out, "hint", err.Hint)
	}
	if err.RetryAfter > 0 {
		setExtension(out, "retryAfterMs", err.RetryAfter.Milliseconds())
	}
	if err.Oldest != nil {
		setExtension(out, "oldest", e.deps.Store.FormatPosition(*err.Oldest))
	}
	if err.OldestSequence > 0 {
		setExtension(out, "oldestSequence", err.OldestSequence)
	}
}

func (e *Engine) presentInternal(ctx context.Context, out *gqlerror.Error, err error) {
	var p *panicError
	if errors.As(err, &p) && p.logged {
		// It was logged where it happened.
	} else if p != nil {
		e.deps.Logger.ErrorContext(ctx, "a GraphQL field panicked", "path", out.Path.String(), "panic", fmt.Sprint(p.value), "stack", string(p.stack))
	} else {
		var known *kg.Error
		if errors.As(err, &known) && known.Err != nil { // its message is public
			err = known.Err
		}
		e.deps.Logger.ErrorContext(ctx, "a GraphQL operation failed", "path", out.Path.String(), "err", err)
	}
	out.Message = "internal error"
	out.Extensions = map[string]any{"code": string(kg.CodeInternal)}
}

func isInternal(err *gqlerror.Error) bool { return err.Extensions["code"] == string(kg.CodeInternal) }

// variableError names the variable that could not be coerced. The library puts
// it into the path, which is meant for fields of the answer.
func variableError(schema *ast.Schema, op *ast.OperationDefinition, err error) error {
	var g *gqlerror.Error
	if !errors.As(err, &g) || len(g.Path) < 2 {
		return err
	}
	field := "$" + g.Path[1:].String()
	out := &gqlerror.Error{Message: "variable " + field + " " + g.Message, Err: g.Err}
	setExtension(out, "code", errcode.ValidationFailed)
	setExtension(out, "field", field)
	if g.Message == "unknown field" {
		hintMember(schema, op, g.Path[1:], out)
	}
	return out
}

// atPath adds the path of a field to an error that has none.
func atPath(path ast.Path, err error) error {
	var g *gqlerror.Error
	if errors.As(err, &g) && g.Path != nil && len(g.Path) >= len(path) {
		return err
	}
	return &gqlerror.Error{Message: err.Error(), Path: slices.Clone(path), Err: err}
}

// atField is atPath with the field's place in the document.
func atField(path ast.Path, f graphql.CollectedField, err error) error {
	err = atPath(path, err)
	if g, ok := err.(*gqlerror.Error); ok && g.Locations == nil {
		g.Locations = []gqlerror.Location{{Line: f.Position.Line, Column: f.Position.Column}}
	}
	return err
}

func setExtension(g *gqlerror.Error, key string, value any) {
	// The map may belong to a cached or shared error, so it is copied.
	m := make(map[string]any, len(g.Extensions)+1)
	for k, v := range g.Extensions {
		m[k] = v
	}
	m[key] = value
	g.Extensions = m
}

// panicError carries a recovered panic to the log.
type panicError struct {
	value  any
	stack  []byte
	logged bool
}

func (p *panicError) Error() string { return "panic" }

// recoverPanic is the graphql.RecoverFunc. The panic is logged when it is
// presented.
func (e *Engine) recoverPanic(_ context.Context, value any) error {
	return &panicError{value: value, stack: debug.Stack()}
}
