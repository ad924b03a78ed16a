package knowledge

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/fault"
	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/internal/query"
	"koine/internal/query/pattern"
	"koine/kg"
)

// matchList is the plan of the solutions of a pattern.
type matchList struct {
	*connection
	input    *query.PatternInput
	compiler query.Compiler
	limits   pattern.Limits
	distinct bool
	order    []pattern.Order
	columns  []string
	names    []string // of all variables that rows can show
	rows     []*rowPlan
	pattern  *pattern.Pattern // set once there is a snapshot
	explain  bool
	extras   []matchExtra
}

// matchExtra is a field that only this connection has.
type matchExtra struct {
	columns     bool
	explanation *explanationPlan
}

// solution is a row of a pattern: an id for each of its variables.
type solution []kg.ID

var matchConnections = connectionTypes{
	name: "MatchConnection", implementors: MatchConnectionImplementors,
	edgeName: "MatchEdge", edges: MatchEdgeImplementors,
}

func (p *Planner) planMatchList(f graphql.CollectedField, args *QueryMatchArgs) (c *matchList, err error) {
	c = &matchList{
		connection: &connection{}, input: &args.Pattern, compiler: p.compiler(), limits: p.run.Reader.Limits.PatternLimits(),
		distinct: args.Distinct, explain: args.Explain,
	}
	if err := p.planPaging(c.connection, f, PageArgs{First: args.First, After: args.After}); err != nil {
		return nil, err
	}
	if err := p.bindPage(c.connection, f); err != nil {
		return nil, err
	}
	compiled, err := c.compile(nil)
	if err = p.run.TellPrefixed(p.ctx, err); err != nil {
		return nil, err
	}
	c.names = query.Variables(compiled)
	if err := c.checkVariables(args.Select, args.OrderBy); err != nil {
		return nil, err
	}
	c.element = func(set ast.SelectionSet) (int, error) {
		plan, err := p.planRow(c, set)
		c.rows = append(c.rows, plan)
		return len(c.rows) - 1, err
	}
	c.connection.match = c
	c.otherGroups = c.compileGroups
	return c, p.planConnection(c.connection, f.Selections, matchConnections)
}

// compile compiles the pattern. With a snapshot it looks texts up in it.
func (c *matchList) compile(s *kg.Snapshot) (*pattern.Pattern, error) {
	g, err := c.compiler.Pattern(c.input, s)
	if err != nil {
		return nil, err
	}
	compiled, err := pattern.Compile(g, c.limits)
	if err != nil {
		return nil, kg.AsError(err).At("pattern")
	}
	return compiled, nil
}

// shownNames are the variables by which rows can be ordered and grouped.
func (c *matchList) shownNames() []string {
	if c.distinct {
		return c.columns
	}
	return c.names
}

// checkVariables checks the variables named in the arguments.
func (c *matchList) checkVariables(selected []string, order []query.MatchOrder) error {
	c.columns = c.names
	if selected != nil {
		c.columns = selected
	}
	for i, name := range selected {
		field := "select[" + strconv.Itoa(i) + "]"
		if !slices.Contains(c.names, name) {
			return query.UnknownVariable(name, c.names).At(field)
		}
		if slices.Contains(selected[:i], name) {
			return kg.Errorf(kg.CodeInvalid, "the variable %s is selected twice", name).At(field)
		}
	}
	for i, by := range order {
		if among := c.shownNames(); !slices.Contains(among, by.Var) {
			return query.UnknownVariable(by.Var, among).At("orderBy[" + strconv.Itoa(i) + "].var")
		}
		c.order = append(c.order, by.SortKey())
	}
	return nil
}

// Match answers Query.match.
func (*Query) Match(ctx context.Context, f *executor.Selected, args *QueryMatchArgs) (executor.Value, error) {
	r, err := beginReading(ctx, f, args.View, args.Budget)
	if err != nil {
		return nil, err
	}
	c, err := r.planMatchList(r.field, args)
	if err != nil {
		return nil, err
	}
	l, err := r.pageLoader(c.connection)
	if err != nil {
		return nil, err
	}
	g, err := l.matchPage(c)
	if cutter := l.run.cutter; cutter != nil && fault.IsSpent(err) { // before the first row
		err = cutter.measureReads(func() error {
			g, err := l.matchPage(c)
			if err != nil {
				return err
			}
			return g.cut.readOne()
		})
	}
	if err != nil {
		return nil, err
	}
	return r.answer(g), nil
}

// patternQuery returns the query for the rows after a place.
func (c *matchList) patternQuery(after []byte) pattern.Query {
	return pattern.Query{Select: c.columns, Distinct: c.distinct, Order: c.order, First: c.first + 1, After: after}
}

func (l *loader) matchPage(c *matchList) (*page, error) {
	var after []byte
	if c.after != nil {
		at, err := l.reader.UnsealAnyCursor(*c.after, c.bound)
		if err != nil {
			return nil, err
		}
		s, err := l.run.OpenAt(l.ctx, c.view, at)
		if err != nil {
			return nil, err
		}
		l, after = newLoader(l.ctx, l.run, s, l.view), at.Key
	}
	if len(after) == 0 {
		after = nil
	}
	p, err := c.compile(l.snapshot)
	if err != nil {
		return nil, err
	}
	c.pattern = p
	g := &page{connection: c.connection}
	if c.total && len(c.groups) == 0 && l.run.cutter != nil {
		err = l.countInto(g, func() (uint64, error) { err := l.allSolutions(c, p, g); return g.total, err })
	} else {
		err = unsplitIn(l, l.allSolutions(c, p, g))
	}
	if err != nil {
		return nil, err
	}
	if l.run.cutter != nil {
		return g, l.closeSolutions(c, p, g, after)
	}
	return g, l.loadSolutionPage(c, p, g, after)
}

func unsplitIn(l *loader, err error) error {
	if err == nil || l.run.cutter == nil {
		return err
	}
	return unsplittableError(err)
}

// allSolutions counts and groups the solutions of all pages.
func (l *loader) allSolutions(c *matchList, p *pattern.Pattern, g *page) error {
	if !c.total && len(c.groups) == 0 {
		return nil
	}
	if done, err := l.countSolutions(c, p, g); done || err != nil {
		return err
	}
	tables := map[*groupPlan]*query.GroupTable[[]kg.ID]{}
	for _, plan := range c.groups {
		tables[plan] = query.NewGroupTable(l.snapshot, plan.rows)
	}
	q := c.patternQuery(nil)
	q.Order, q.AnyOrder = nil, true
	for _, plan := range c.groups {
		q.AnyOrder = q.AnyOrder && !plan.rows.AddsNumbers()
	}
	e, err := p.Evaluate(l.ctx, l.snapshot, q)
	if err != nil {
		return err
	}
	for row, err := range e.Rows() {
		if err != nil {
			return err
		}
		g.total++
		for _, t := range tables {
			if err := t.Add(row); err != nil {
				return limit.GroupLimit(err)
			}
		}
	}
	if e.Leaps() {
		g.counted, g.countedReads = e.Explain(), e.StatementsRead()
	}
	return l.loadGroups(c.connection, g, func(plan *groupPlan) ([]query.Group, error) { return tables[plan].Groups() })
}

// countSolutions is allSolutions for a pattern and groups that the index counts. done is
// false if it cannot.
func (l *loader) countSolutions(c *matchList, p *pattern.Pattern, g *page) (done bool, err error) {
	if len(c.groups) == 0 || c.distinct {
		return false, nil
	}
	found := map[*groupPlan][]query.Group{}
	for _, plan := range c.groups {
		groups, rows, counted, err := query.GroupStar(l.snapshot, p, plan.rows, min(c.limits.Rows, c.limits.Statements))
		if !counted || err != nil {
			return false, err
		}
		found[plan], g.total = groups, rows
	}
	return true, l.loadGroups(c.connection, g, func(plan *groupPlan) ([]query.Group, error) { return found[plan], nil })
}

// loadSolutionPage loads a page of rows.
func (l *loader) loadSolutionPage(c *matchList, p *pattern.Pattern, g *page, after []byte) error {
	e, err := p.Evaluate(l.ctx, l.snapshot, c.patternQuery(after))
	if err != nil {
		return err
	}
	var found []solution
	for row, err := range e.Rows() {
		if err != nil {
			return err
		}
		if len(found) == c.first {
			g.more = true
			break
		}
		found = append(found, slices.Clone(solution(row)))
		if c.cursors {
			g.cursors = append(g.cursors, l.reader.SealCursor(l.snapshot, c.bound, e.Cursor()))
		}
	}
	g.size = len(found)
	c.setExtras(g, e)
	l.run.notePlan(e)
	return l.loadSolutions(c, g, found)
}

// matchedRow is a row with its place.
type matchedRow struct {
	row   solution
	place []byte
}

// closeSolutions prepares the page to be filled by a cutter.
func (l *loader) closeSolutions(c *matchList, p *pattern.Pattern, g *page, after []byte) error {
	planned, err := p.Evaluate(l.ctx, l.snapshot, c.patternQuery(after))
	if err != nil {
		return err
	}
	f := &scanFeed[matchedRow]{
		scan: func(behind []byte, _ func(matchedRow) bool) iter.Seq2[matchedRow, error] {
			if behind == nil {
				behind = after
			}
			return func(yield func(matchedRow, error) bool) {
				e := planned
				if planned = nil; e == nil {
					var err error
					if e, err = p.Evaluate(l.ctx, l.snapshot, c.patternQuery(behind)); err != nil {
						yield(matchedRow{}, err)
						return
					}
				}
				for row, err := range e.Rows() {
					if err != nil {
						yield(matchedRow{}, l.sortedError(c, err))
						return
					}
					if !yield(matchedRow{slices.Clone(solution(row)), e.Cursor()}, nil) {
						return
					}
				}
			}
		},
		key: func(m matchedRow) []byte { return m.place },
		read: func(m matchedRow) (func(*writer, int), error) {
			one := &page{}
			err := l.loadSolutions(c, one, []solution{m.row})
			return func(w *writer, selection int) { one.node(w, selection, 0) }, err
		},
	}
	c.setExtras(g, planned)
	l.run.notePlan(planned)
	return l.closePage(g, f, false, planned.MaxCursorBytes(), l.cursorSealer(c.bound, after))
}

// sortedError reports a spent budget of sorted rows, which cannot be cut.
func (l *loader) sortedError(c *matchList, err error) error {
	if len(c.order) > 0 {
		return unsplittableError(err)
	}
	return err
}

// setExtras sets the page's fields that only this connection has.
func (c *matchList) setExtras(g *page, e *pattern.Evaluation) {
	steps, read := append(g.counted, e.Explain()...), g.countedReads+e.StatementsRead()
	g.extra = func(w *writer, i int) {
		x := c.extras[i]
		switch {
		case x.columns:
			w.B = appendStrings(w.B, c.columns)
		case !c.explain:
			w.B = append(w.B, "null"...)
		default:
			w.B = x.explanation.appendTo(w.B, steps, read)
		}
	}
}

func appendStrings(b []byte, list []string) []byte {
	return scalar.AppendList(b, list, func(b []byte, s *string) []byte { return scalar.AppendString(b, *s) })
}
