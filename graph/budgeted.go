package graph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/kg"
)

// execBudgeted runs a query whose answer is bounded, wholly or in part, by a
// budget. It first answers all root fields with empty lists and then fills the
// lists one after the other with the elements that fit. So the answer is
// complete except for the lists that were cut.
func (e *Engine) execBudgeted(ctx context.Context) *graphql.Response {
	r, opCtx := runOf(ctx), graphql.GetOperationContext(ctx)
	defer r.closeCutters()
	if n := r.allowed.reads; n != math.MaxInt64 {
		r.meter.Limit(n)
	}
	a := &budgetedAnswer{run: r}
	for _, f := range graphql.CollectFields(opCtx, opCtx.Operation.SelectionSet, queryImplementors) {
		r.cutter = nil
		field := r.ec._Query(ctx, ast.SelectionSet{standaloneField(f)})
		a.fields = append(a.fields, rootField{alias: f.Alias, text: field, cutter: r.cutter})
		if r.cutter != nil {
			r.cutter.leaveField()
		}
	}
	errs := graphql.GetErrors(ctx)
	if over := a.byteSize() + a.totalSlack() - r.allowed.bytes; over > 0 {
		return &graphql.Response{Errors: append(errs, e.presentError(ctx, needsBytes(r.allowed, r.allowed.bytes+over)))}
	}
	for _, f := range a.fields {
		if f.cutter == nil || f.cutter.write == nil {
			continue
		}
		if err := a.fillLists(ctx, f.cutter); err != nil {
			f.cutter.answer.json = []byte("null")
			errs = append(errs, e.presentError(ctx, atPath(ast.Path{ast.PathName(f.alias)}, err)))
		}
	}
	return &graphql.Response{Data: a.joinFields(), Errors: errs}
}

// standaloneField returns the field with its fragments merged and without directives.
func standaloneField(f graphql.CollectedField) *ast.Field {
	field := *f.Field
	field.SelectionSet, field.Directives = f.Selections, nil
	return &field
}

// budgetedAnswer is the answer made of all root fields.
type budgetedAnswer struct {
	run    *run
	fields []rootField
}

type rootField struct {
	alias  string
	text   graphql.Marshaler // an object with that one field
	cutter *cutter           // nil for a field that the engine does not write
}

func (a *budgetedAnswer) joinFields() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range a.fields {
		if i > 0 {
			b.WriteByte(',')
		}
		from := b.Len()
		f.text.MarshalGQL(&b)
		text := b.Bytes()[from:]
		copy(text, text[1:len(text)-1]) // without its braces
		b.Truncate(b.Len() - 2)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (a *budgetedAnswer) byteSize() int { return len(a.joinFields()) }

// totalSlack is by how many bytes the unfilled lists may grow without getting an
// element.
func (a *budgetedAnswer) totalSlack() (n int) {
	for _, f := range a.fields {
		if f.cutter != nil {
			for _, g := range f.cutter.pages {
				n += g.slackBytes()
			}
		}
	}
	return n
}

// fillLists fills the lists of one root field.
func (a *budgetedAnswer) fillLists(ctx context.Context, c *cutter) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = a.run.engine.recoverPanic(ctx, p)
		}
	}()
	room := a.run.allowed.bytes - a.byteSize() - a.totalSlack()
	c.bound, c.ownBytes = a.run.allowed, false
	if own := c.fieldBound.bytes - len(c.answer.json) - c.pageSlack(); own < room {
		c.bound, c.ownBytes, room = c.fieldBound, true, own
	}
	c.enterField()
	defer c.leaveField()
	pages := c.pages
	c.pages = nil
	if _, err := c.fillPages(pages, room); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.answer.json = c.write(nil)
	return nil
}

func (c *cutter) pageSlack() (n int) {
	for _, g := range c.pages {
		n += g.slackBytes()
	}
	return n
}

// newCutter begins a root field of an operation with budgets. It returns nil
// if no budget bounds the field.
func (r *run) newCutter(args map[string]any) (*cutter, error) {
	if !r.budgeted {
		return nil, nil
	}
	b, err := budgetOf(argumentOf[*BudgetInput](args, "budget"))
	if err != nil {
		return nil, err
	}
	own := allowance{bytes: math.MaxInt, reads: math.MaxInt64}.narrowBy(b)
	if r.allowed == r.defaultAllowance() && b == (operation.Budget{}) {
		return nil, nil
	}
	c := &cutter{run: r, fieldBound: own}
	r.cutters = append(r.cutters, c)
	c.enterField()
	return c, nil
}

// leaveOpen writes an answer whose lists are still empty.
func (c *cutter) leaveOpen(ctx context.Context, write func(b []byte) []byte) error {
	c.answer = answerOf(ctx)
	c.answer.json = write(nil)
	if over := len(c.answer.json) + c.pageSlack() - c.fieldBound.bytes; over > 0 {
		return needsBytes(c.fieldBound, c.fieldBound.bytes+over)
	}
	c.write = write
	return nil
}

func (r *run) closeCutters() {
	for _, c := range r.cutters {
		c.close()
	}
}

func (r *run) noteCut(c operation.Cut) {
	if len(r.cuts) < operation.MaxCuts {
		r.cuts = append(r.cuts, c)
	}
}

// budgetError reports that a budget is too small for content that cannot be
// cut.
type budgetError struct {
	message string
	member  string // member of the budget; "" if the required amount is unknown
	needs   int
}

func (e *budgetError) Error() string { return e.message }

func needsBytes(most allowance, bytes int) error {
	if most.tokens {
		n := (bytes + BytesPerToken - 1) / BytesPerToken
		return &budgetError{fmt.Sprintf("the answer does not fit into %d tokens", most.bytes/BytesPerToken), "maxTokens", n}
	}
	return &budgetError{fmt.Sprintf("the answer does not fit into %d bytes", most.bytes), "maxBytes", bytes}
}

func (e *Engine) presentBudget(out *gqlerror.Error, err *budgetError) {
	out.Message = err.message
	setExtension(out, "code", string(kg.CodeBudgetExceeded))
	if err.member == "" {
		setExtension(out, "hint", "Increase the budget, or leave out orderBy, totalCount and groups, which need all elements.")
		return
	}
	setExtension(out, "hint", fmt.Sprintf("Pass at least %s: %d, or select fewer fields.", err.member, err.needs))
	setExtension(out, "budget", map[string]int{err.member: err.needs})
}

// isSpent reports whether a scan ended because it used up the statements of
// the budget.
func isSpent(err error) bool {
	var whole *budgetError
	return kg.CodeOf(err) == kg.CodeBudgetExceeded && !errors.As(err, &whole)
}
