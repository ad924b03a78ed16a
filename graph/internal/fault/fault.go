// Package fault gives errors of operations their public form (Presenter): the
// message, the path, and extensions with a code and hints. Errors that must not be
// told are logged. It knows the kinds of errors of an operation: exceeded limits and
// budgets, panics, errors at a field, and those of the store.
package fault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/executor"
	"koine/graph/limit"
	"koine/kg"
)

// Presenter gives errors their public form.
type Presenter struct {
	logger *slog.Logger
	limits limit.Limits
	// formatPosition returns the token of a place in the log.
	formatPosition func(kg.Position) string
}

// NewPresenter returns a presenter that logs internal errors.
func NewPresenter(logger *slog.Logger, limits limit.Limits, formatPosition func(kg.Position) string) *Presenter {
	return &Presenter{logger, limits, formatPosition}
}

// Present is the one place where an error gets its public form: message,
// path, and extensions with code and hints. An internal error becomes
// "internal error" and is logged here, once.
func (f *Presenter) Present(ctx context.Context, err error) *gqlerror.Error {
	return f.PresentAt(ctx, nil, nil, err)
}

// PresentAlone returns the public form of an error that belongs to no field, as a
// list of one.
func (f *Presenter) PresentAlone(err error) gqlerror.List {
	return gqlerror.List{f.Present(context.Background(), err)}
}

// PresentAt is present for the error of a field. The path of an error
// inside of its selection begins below the field.
func (f *Presenter) PresentAt(ctx context.Context, path ast.Path, at *ast.Position, err error) *gqlerror.Error {
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
		SetExtension(out, "field", argument.Path.String())
	}
	var over *limit.Error
	var budget *BudgetError
	var known *kg.Error
	switch {
	case errors.As(err, &budget):
		presentBudget(out, budget)
	case IsSpent(err):
		presentBudget(out, &BudgetError{Message: kg.AsError(err).Message})
	case errors.As(err, &over):
		presentLimit(out, over)
	case errors.Is(err, executor.ErrTooManyErrors):
		presentLimit(out, limit.Exceeded("errors", "more than %d fields have failed", executor.MaxErrors).WithHint("Request a smaller page, or leave out the fields that fail."))
	case errors.Is(err, context.DeadlineExceeded):
		presentLimit(out, f.limits.TooSlow())
	case errors.Is(err, context.Canceled):
		out.Message = "the request was canceled"
		SetExtension(out, "code", string(kg.CodeClosed))
	case errors.As(err, &known) && known.Code != kg.CodeInternal:
		f.presentKnown(out, known)
	case argument != nil, g != nil && (g.Err == nil || errors.Unwrap(g.Err) == nil && out.Extensions["code"] != nil):
		// Errors of the libraries' parser, validator and argument coercion:
		// their messages are meant for the caller.
		if out.Extensions["code"] == nil {
			SetExtension(out, "code", string(kg.CodeInvalid))
		}
	default:
		f.presentInternal(ctx, out, err)
	}
	return out
}

// PresentAll returns the public forms of errors that belong to no field.
func (f *Presenter) PresentAll(errs gqlerror.List) gqlerror.List {
	out := make(gqlerror.List, len(errs))
	for i, err := range errs {
		out[i] = f.Present(context.Background(), err)
	}
	return out
}

func presentLimit(out *gqlerror.Error, err *limit.Error) {
	out.Message = err.Message
	code := kg.CodeLimitExceeded
	if err.Limit == "duration" {
		code = kg.CodeTimeout
	}
	SetExtension(out, "code", string(code))
	SetExtension(out, "limit", err.Limit)
	if err.Hint != "" {
		SetExtension(out, "hint", err.Hint)
	}
}

func (f *Presenter) presentKnown(out *gqlerror.Error, err *kg.Error) {
	out.Message = err.Message
	SetExtension(out, "code", string(err.Code))
	if err.Field != "" {
		SetExtension(out, "field", err.Field)
	}
	if err.Limit != "" {
		SetExtension(out, "limit", err.Limit)
	}
	if err.Hint != "" {
		SetExtension(out, "hint", err.Hint)
	}
	if err.RetryAfter > 0 {
		SetExtension(out, "retryAfterMs", err.RetryAfter.Milliseconds())
	}
	if err.Oldest != nil {
		SetExtension(out, "oldest", f.formatPosition(*err.Oldest))
	}
	if err.OldestSequence > 0 {
		SetExtension(out, "oldestSequence", err.OldestSequence)
	}
}

func (f *Presenter) presentInternal(ctx context.Context, out *gqlerror.Error, err error) {
	var p *Panic
	if errors.As(err, &p) && p.Logged {
		// It was logged where it happened.
	} else if p != nil {
		f.logger.ErrorContext(ctx, "a GraphQL field panicked", "path", out.Path.String(), "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
	} else {
		var known *kg.Error
		if errors.As(err, &known) && known.Err != nil { // its message is public
			err = known.Err
		}
		f.logger.ErrorContext(ctx, "a GraphQL operation failed", "path", out.Path.String(), "err", err)
	}
	out.Message = "internal error"
	out.Extensions = map[string]any{"code": string(kg.CodeInternal)}
}

// IsInternal reports whether an error was presented as an internal one.
func IsInternal(err *gqlerror.Error) bool { return err.Extensions["code"] == string(kg.CodeInternal) }

// AtPath adds the path of a field to an error that has none.
func AtPath(path ast.Path, err error) error {
	var g *gqlerror.Error
	if errors.As(err, &g) && g.Path != nil && len(g.Path) >= len(path) {
		return err
	}
	return &gqlerror.Error{Message: err.Error(), Path: slices.Clone(path), Err: err}
}

// AtField is atPath with the field's place in the document.
func AtField(path ast.Path, f graphql.CollectedField, err error) error {
	err = AtPath(path, err)
	if g, ok := err.(*gqlerror.Error); ok && g.Locations == nil {
		g.Locations = []gqlerror.Location{{Line: f.Position.Line, Column: f.Position.Column}}
	}
	return err
}

// SetExtension sets an extension of an error.
func SetExtension(g *gqlerror.Error, key string, value any) {
	// The map may belong to a cached or shared error, so it is copied.
	m := make(map[string]any, len(g.Extensions)+1)
	for k, v := range g.Extensions {
		m[k] = v
	}
	m[key] = value
	g.Extensions = m
}

// Panic carries a recovered panic to the log.
type Panic struct {
	Value  any
	Stack  []byte
	Logged bool
}

func (p *Panic) Error() string { return "panic" }

// Recover is the graphql.RecoverFunc. The panic is logged when it is
// presented.
func Recover(_ context.Context, value any) error {
	return &Panic{Value: value, Stack: debug.Stack()}
}

// BudgetError reports that a budget is too small for content that cannot be
// cut.
type BudgetError struct {
	Message string
	Member  string // member of the budget; "" if the required amount is unknown
	Needs   int
}

func (e *BudgetError) Error() string { return e.Message }

// NeedsBytes is the error of an answer that needs so many bytes.
func NeedsBytes(most limit.Allowance, bytes int) error {
	if most.Tokens {
		n := (bytes + limit.BytesPerToken - 1) / limit.BytesPerToken
		return &BudgetError{fmt.Sprintf("the answer does not fit into %d tokens", most.Bytes/limit.BytesPerToken), "maxTokens", n}
	}
	return &BudgetError{fmt.Sprintf("the answer does not fit into %d bytes", most.Bytes), "maxBytes", bytes}
}

func presentBudget(out *gqlerror.Error, err *BudgetError) {
	out.Message = err.Message
	SetExtension(out, "code", string(kg.CodeBudgetExceeded))
	if err.Member == "" {
		SetExtension(out, "hint", "Increase the budget, or leave out orderBy, totalCount and groups, which need all elements.")
		return
	}
	SetExtension(out, "hint", fmt.Sprintf("Pass at least %s: %d, or select fewer fields.", err.Member, err.Needs))
	SetExtension(out, "budget", map[string]int{err.Member: err.Needs})
}

// IsSpent reports whether a scan ended because it used up the statements of
// the budget.
func IsSpent(err error) bool {
	var whole *BudgetError
	return kg.CodeOf(err) == kg.CodeBudgetExceeded && !errors.As(err, &whole)
}

// WithFieldNames translates the field name of an error, also where its message
// begins with it.
func WithFieldNames(err error, names map[string]string) error {
	e := kg.AsError(err)
	name, ok := names[e.Field]
	if !ok {
		return err
	}
	out := *e
	out.Field = name
	if rest, named := strings.CutPrefix(e.Message, e.Field+" "); named {
		out.Message = name + " " + rest
	}
	return &out
}
