package pattern

import (
	"bytes"
	"context"
	"iter"
	"math"
	"slices"

	"koine/kg"
)

// Row is a solution: the id of each variable in the order of Pattern.Names, zero
// for an unbound one. It is valid until the next row is read.
type Row []kg.ID

// Query selects solutions of a pattern. The zero Query selects all.
type Query struct {
	// Bound gives variables a value beforehand, as a join with VALUES does: only
	// solutions that agree with it are returned, and one that leaves the variable
	// unbound gets the value.
	Bound map[string]kg.ID
	// Select are the variables that Distinct compares and returns; nil means all.
	// It has no effect without Distinct.
	Select   []string
	Distinct bool
	Order    []Order
	// First is the largest number of rows that the caller reads, 0 for no limit.
	// With Order, it bounds the rows held in memory.
	First int
	// AnyOrder allows rows in any order and no cursors, for callers that read all of them.
	AnyOrder bool
	// After is the cursor to resume from, from an evaluation of the same query.
	After []byte
}

// Order sorts rows by a variable. Compare gets two of its terms, the zero Term for
// unbound. Rows that are equal in all keys are in the order of their ids.
type Order struct {
	Var     string
	Compare func(a, b kg.Term) int
	// ByValue says that Compare orders terms by valuespace.Value.Order, in the direction of
	// Descending, so that the index may have their order.
	ByValue, Descending bool
}

// Evaluation is a planned query on a snapshot. Its rows can be read once, by one
// goroutine, before the snapshot is closed.
type Evaluation struct {
	pattern  *Pattern
	query    Query
	planner  *planner
	machine  *execution
	plan     *plan
	columns  []int // compared by Distinct
	keys     []int // columns of Order
	skip     uint64
	returned uint64       // rows returned, with Distinct or Order
	outer    bool         // cursors have an outermost row
	state    []byte       // of the texts' hits; nil without texts
	ordered  *orderedScan // nil if all rows are found and sorted
}

// Evaluate plans the query; planning reads a few statements.
func (p *Pattern) Evaluate(ctx context.Context, s *kg.Snapshot, q Query) (*Evaluation, error) {
	guess := newEstimator(s)
	return p.planQuery(ctx, q, &planner{builder: &builder{snapshot: s, limits: p.limits, next: p.slotCount()}, estimator: guess, choose: guess.joinOrder})
}

// slotCount returns the number of slots for the variables of the pattern's solutions.
func (p *Pattern) slotCount() int { return len(p.names) + len(p.hidden) }

func (p *Pattern) planQuery(ctx context.Context, q Query, by *planner) (*Evaluation, error) {
	defer by.estimator.close()
	e := &Evaluation{pattern: p, query: q, planner: by, machine: &execution{ctx: ctx, snapshot: by.builder.snapshot, limits: p.limits}}
	var err error
	if e.state, err = by.builder.openTexts(ctx, &p.root, q.After != nil); err != nil {
		return nil, err
	}
	if err := e.applyCursor(); err != nil {
		return nil, err
	}
	if err := e.resolveColumns(); err != nil {
		return nil, err
	}
	outer := make(map[string]int, p.slotCount())
	for i, name := range slices.Concat(p.names, p.hidden) {
		outer[name] = i
	}
	var bound slots
	for name := range q.Bound {
		bound.add(outer[name])
	}
	root, err := e.planner.bindGroup(&p.root, bindContext{outer: outer, shared: func(name string) bool { return !q.Bound[name].IsZero() }})
	if err != nil {
		return nil, err
	}
	e.planner.anyOrder = q.AnyOrder && bound == slots{}
	if e.plan, err = e.planner.planGroup(root, bound); err != nil {
		return nil, err
	}
	if e.planner.foreign || len(e.planner.forced) > 0 {
		return nil, errForeign
	}
	if e.ordered, err = e.planOrderedScan(root); err != nil {
		return nil, err
	}
	e.machine.row = make([]kg.ID, e.planner.next)
	for name, id := range q.Bound {
		e.machine.row[outer[name]] = id
	}
	e.machine.read = e.planner.estimator.read
	e.outer = !e.isSorted() && e.plan.outerStep() != nil
	if e.machine.outer.from != nil && !e.outer {
		return nil, errForeign
	}
	return e, nil
}

// outerStep returns the first step if it is a scan that runs once, so that its
// rows have the order of an index. It returns nil if there is none.
func (p *plan) outerStep() *step {
	for _, s := range p.steps {
		switch s.kind {
		case filterStep, absentStep:
		case scanStep, textStep:
			return s
		default:
			return nil
		}
	}
	return nil
}

// markOutermost makes the rows of a linked step those of cursors.
func (s *step) markOutermost() {
	if s.kind == textStep {
		s.find.outermost = true
	} else {
		s.scan.outermost = true
	}
}

// isSorted reports whether cursors count rows only.
func (e *Evaluation) isSorted() bool { return e.query.Distinct || len(e.query.Order) > 0 }

func (e *Evaluation) applyCursor() error {
	if e.query.After == nil {
		return nil
	}
	at, err := parseCursor(e.query.After)
	if err != nil {
		return err
	}
	if len(at.state) != len(e.state) {
		return errForeign
	}
	if !bytes.Equal(at.state, e.state) {
		return errTextsChanged()
	}
	ordered := len(e.query.Order) > 0
	if at.sorted != ordered {
		return errForeign
	}
	if !ordered {
		e.planner.forced = at.orders
	}
	e.returned = at.count
	e.machine.outer = outerScan{from: at.outer, skip: at.count}
	if e.isSorted() {
		if at.outer != nil {
			return errForeign
		}
		e.skip, e.machine.outer.skip = at.count, 0
	}
	return nil
}

// resolveColumns finds the columns of the query's variables.
func (e *Evaluation) resolveColumns() error {
	column := func(name, field string) (int, error) {
		i := e.pattern.Column(name)
		if i < 0 {
			return i, kg.Errorf(kg.CodeInvalid, "the pattern does not bind the variable %s", name).At(field)
		}
		return i, nil
	}
	for name, id := range e.query.Bound {
		if _, err := column(name, "bound"); err != nil {
			return err
		}
		if id.IsZero() {
			return kg.Errorf(kg.CodeInvalid, "the variable %s has no value", name).At("bound")
		}
	}
	for i := range e.pattern.names {
		e.columns = append(e.columns, i)
	}
	if e.query.Select != nil {
		e.columns = e.columns[:0]
		for _, name := range e.query.Select {
			i, err := column(name, "select")
			if err != nil {
				return err
			}
			e.columns = append(e.columns, i)
		}
	}
	for _, o := range e.query.Order {
		i, err := column(o.Var, "order")
		if err != nil {
			return err
		}
		if e.query.Distinct && !slices.Contains(e.columns, i) {
			return kg.Errorf(kg.CodeInvalid, "distinct rows can only be ordered by selected variables; select %s", o.Var).At("order")
		}
		e.keys = append(e.keys, i)
	}
	return nil
}

// Rows returns the solutions. An error ends the sequence.
func (e *Evaluation) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		m := e.machine
		defer m.close()
		defer e.planner.estimator.close() // NotExists groups are planned while rows are read
		if len(e.query.Order) > 0 {
			e.yieldOrdered(yield)
			return
		}
		end := &rowOp{evaluation: e, yield: func(r Row) bool { return yield(r, nil) }}
		if e.query.Distinct {
			end.seen = newRowSet(e.columns, m.limits.BufferedRows)
		}
		e.run(end)
		if m.err != nil {
			yield(nil, m.err)
		}
	}
}

func (e *Evaluation) run(end op) {
	first := e.machine.linkPlan(e.plan, end, e.planner)
	if e.outer {
		e.plan.outerStep().markOutermost()
	}
	first.processRow()
}

// Cursor returns the cursor behind the row that was returned last.
func (e *Evaluation) Cursor() []byte {
	at := cursor{orders: e.planner.orders, count: e.returned, state: e.state}
	switch {
	case len(e.query.Order) > 0:
		at.orders, at.sorted = nil, true
	case e.isSorted():
	case e.outer && e.machine.outer.any:
		at.outer, at.count = &e.machine.outer.at, e.machine.outer.rows
	default:
		at.count = e.machine.outer.rows
	}
	return at.appendTo(nil)
}

// MaxCursorBytes returns the largest length of a cursor of this evaluation.
func (e *Evaluation) MaxCursorBytes() int {
	at := cursor{orders: e.planner.orders, count: math.MaxUint64, state: e.state}
	if e.outer {
		at.outer = &kg.IDQuad{}
	}
	return len(at.appendTo(nil))
}

// rowOp is the last op of a pattern: it returns rows to the caller.
type rowOp struct {
	evaluation *Evaluation
	yield      func(Row) bool
	seen       *rowSet
	all        bool // include the rows before the cursor; the caller skips them
}

func (o *rowOp) processRow() bool {
	m := o.evaluation.machine
	row := Row(m.row[:len(o.evaluation.pattern.names)])
	if o.seen != nil {
		var isNew bool
		if row, isNew, m.err = o.seen.add(row); m.err != nil {
			return false
		} else if !isNew {
			return true
		}
	}
	switch {
	case o.all:
	case o.evaluation.isSorted():
		if o.evaluation.skip > 0 {
			o.evaluation.skip--
			return true
		}
		o.evaluation.returned++
	default:
		m.outer.rows++
		if m.outer.skip > 0 {
			m.outer.skip--
			return true
		}
	}
	return o.yield(row)
}
