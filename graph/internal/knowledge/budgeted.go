package knowledge

import (
	"math"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/limit"
	"koine/internal/operation"
)

// ExecuteBudgeted runs a query with a budget for its answer, wholly or in part. It first answers all root fields with empty lists and then fills the
// lists one after the other with the elements that fit. So the answer is
// complete except for the lists that were cut. value is the root value.
func (r *Run) ExecuteBudgeted(w *writer, root *executor.Selection, value any) *graphql.Response {
	defer r.closeCutters()
	if n := r.Allowed.Reads; n != math.MaxInt64 {
		r.Meter.Limit(n)
	}
	a := &budgetedAnswer{run: r}
	for i := range root.Fields {
		r.cutter = nil
		f := rootField{selected: &root.Fields[i], text: w.Fork(nil)}
		if err := f.text.Field(root.Object, f.selected, value); err != nil {
			return &graphql.Response{Data: []byte("null"), Errors: append(a.errors(), f.text.Errors...)}
		}
		if f.cutter = r.cutter; f.cutter != nil {
			f.cutter.leaveField()
		}
		a.fields = append(a.fields, f)
	}
	if over := a.byteSize() + a.totalSlack() - r.Allowed.Bytes; over > 0 {
		return &graphql.Response{Errors: append(a.errors(), r.Reader.Faults.Present(w.Ctx, fault.NeedsBytes(r.Allowed, r.Allowed.Bytes+over)))}
	}
	for i := range a.fields {
		if f := &a.fields[i]; f.cutter != nil && f.cutter.value != nil {
			f.text = w.Fork(nil)
			f.text.FieldOf(f.selected, func(w *writer) error { return a.fillLists(w, f.cutter) })
		}
	}
	return &graphql.Response{Data: a.joinFields(), Errors: a.errors()}
}

// budgetedAnswer is the answer made of all root fields.
type budgetedAnswer struct {
	run    *Run
	fields []rootField
}

type rootField struct {
	selected *executor.Selected
	text     *writer // with its key
	cutter   *cutter // nil for a field that its table writes
}

func (a *budgetedAnswer) joinFields() []byte {
	b := []byte{'{'}
	for i, f := range a.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, f.text.B...)
	}
	return append(b, '}')
}

func (a *budgetedAnswer) errors() (errs gqlerror.List) {
	for _, f := range a.fields {
		errs = append(errs, f.text.Errors...)
	}
	return errs
}

func (a *budgetedAnswer) byteSize() int {
	n := len("{}") + max(0, len(a.fields)-1)
	for _, f := range a.fields {
		n += len(f.text.B)
	}
	return n
}

// totalSlack is by how many bytes the unfilled lists may grow without getting an
// element.
func (a *budgetedAnswer) totalSlack() (n int) {
	for _, f := range a.fields {
		if f.cutter != nil {
			n += f.cutter.pageSlack()
		}
	}
	return n
}

// fillLists fills the lists of one root field, whose text it takes out of the
// answer, and writes its value.
func (a *budgetedAnswer) fillLists(w *writer, c *cutter) error {
	room := a.run.Allowed.Bytes - a.byteSize() - c.size - a.totalSlack()
	c.bound, c.ownBytes = a.run.Allowed, false
	if own := c.fieldBound.Bytes - c.size - c.pageSlack(); own < room {
		c.bound, c.ownBytes, room = c.fieldBound, true, own
	}
	c.enterField()
	defer c.leaveField()
	pages := c.pages
	c.pages = nil
	if _, err := c.fillPages(pages, room); err != nil {
		return err
	}
	if err := w.Ctx.Err(); err != nil {
		return err
	}
	return c.value.Write(w)
}

func (c *cutter) pageSlack() (n int) {
	for _, g := range c.pages {
		n += g.slackBytes()
	}
	return n
}

// newCutter begins a root field of an operation with budgets. It returns nil
// if no budget bounds the field.
func (r *Run) newCutter(budget *limit.BudgetInput) (*cutter, error) {
	if !r.Budgeted {
		return nil, nil
	}
	b, err := limit.BudgetOf(budget)
	if err != nil {
		return nil, err
	}
	own := limit.Allowance{Bytes: math.MaxInt, Reads: math.MaxInt64}.NarrowBy(b)
	if r.Allowed == r.Reader.Limits.DefaultAllowance() && b == (operation.Budget{}) {
		return nil, nil
	}
	c := &cutter{run: r, fieldBound: own}
	r.cutters = append(r.cutters, c)
	c.enterField()
	return c, nil
}

// openValue is a value with lists that are still empty.
type openValue struct {
	executor.Value
	cutter *cutter
}

func (v openValue) Write(w *executor.Writer) error {
	from := len(w.B)
	if err := v.Value.Write(w); err != nil {
		return err
	}
	c := v.cutter
	c.size = len(w.B) - from
	if over := c.size + c.pageSlack() - c.fieldBound.Bytes; over > 0 {
		c.value = nil
		return fault.NeedsBytes(c.fieldBound, c.fieldBound.Bytes+over)
	}
	return nil
}

func (r *Run) closeCutters() {
	for _, c := range r.cutters {
		c.close()
	}
}

func (r *Run) noteCut(c operation.Cut) {
	if len(r.Cuts) < operation.MaxCuts {
		r.Cuts = append(r.Cuts, c)
	}
}
