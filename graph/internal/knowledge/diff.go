package knowledge

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/executor"
	"koine/graph/internal/scalar"
	"koine/kg"
)

// diffList is the plan of the differences between two moments.
type diffList struct {
	*connection
	plans    []*differencePlan // per selection
	from, to *kg.Moment
}

// differencePlan is the plan of a StatementDifference.
type differencePlan struct {
	fields    []differenceField
	statement []*statementPlan // for each `statement` and `previous`
}

type differenceField struct {
	key  []byte
	name string
	plan int // index in statement
}

var diffConnections = connectionTypes{
	name: "DiffConnection", implementors: DiffConnectionImplementors,
	edgeName: "DiffEdge", edges: DiffEdgeImplementors,
}

func (p *Planner) planDiffList(f graphql.CollectedField, args *QueryDiffArgs) (c *diffList, err error) {
	c = &diffList{connection: &connection{}, from: &args.From, to: args.To}
	if err := p.planPaging(c.connection, f, PageArgs{First: args.First, After: args.After}); err != nil {
		return nil, err
	}
	if err := p.bindPage(c.connection, f); err != nil {
		return nil, err
	}
	if c.statementList.Match, err = p.compiler().Changes(args.Where); err != nil {
		return nil, kg.AsError(err).At("where")
	}
	c.element = func(set ast.SelectionSet) (int, error) {
		plan := &differencePlan{}
		c.plans = append(c.plans, plan)
		return len(c.plans) - 1, p.planDifference(plan, set)
	}
	return c, p.planConnection(c.connection, f.Selections, diffConnections)
}

func (p *Planner) planDifference(plan *differencePlan, set ast.SelectionSet) error {
	return p.EachField(set, StatementDifferenceImplementors, func(f graphql.CollectedField, key []byte) error {
		plan.fields = append(plan.fields, differenceField{key: key, name: f.Name})
		return differenceFieldPlan{p, plan, &plan.fields[len(plan.fields)-1]}.planNamed(f)
	})
}

// differenceFieldPlan plans a field of a StatementDifference.
type differenceFieldPlan struct {
	planner *Planner
	plan    *differencePlan
	field   *differenceField
}

func (b differenceFieldPlan) planStatement(f graphql.CollectedField) error { return b.planShown(f) }
func (b differenceFieldPlan) planPrevious(f graphql.CollectedField) error  { return b.planShown(f) }

func (b differenceFieldPlan) planShown(f graphql.CollectedField) error {
	s, err := b.planner.planStatement(f.Selections)
	b.field.plan = len(b.plan.statement)
	b.plan.statement = append(b.plan.statement, s)
	return err
}

// Diff answers Query.diff.
func (*Query) Diff(ctx context.Context, f *executor.Selected, args *QueryDiffArgs) (executor.Value, error) {
	r, err := beginReading(ctx, f, args.View, args.Budget)
	if err != nil {
		return nil, err
	}
	c, err := r.planDiffList(r.field, args)
	if err != nil {
		return nil, err
	}
	l, err := r.pageLoader(c.connection)
	if err != nil {
		return nil, err
	}
	g, err := l.diffPage(c)
	if err != nil {
		return nil, err
	}
	return r.answer(g), nil
}

func (l *loader) diffPage(c *diffList) (*page, error) {
	l, from, after, err := l.openDifference(c)
	if err != nil {
		return nil, err
	}
	to := l.snapshot.Revision()
	if from > to {
		e := kg.Errorf(kg.CodeInvalid, "from is revision %d, which is newer than to, %d", from, to)
		e.Hint = "Exchange from and to."
		return nil, e.At("from")
	}
	g := &page{connection: c.connection, from: from, to: to}
	p, known, err := l.snapshot.PatternIDs(c.statementList.Match.Pattern)
	if err != nil {
		return nil, err
	}
	if c.total && known {
		if err := l.countInto(g, func() (uint64, error) { return l.countDifferences(c, from, p) }); err != nil {
			return nil, err
		}
	}
	if l.run.cutter != nil {
		return g, l.closeDifferences(c, g, p, known, after)
	}
	var found []kg.Difference
	if known {
		if found, err = l.collectDifferences(c, g, l.snapshot.Diff(from, p, after)); err != nil {
			return nil, err
		}
	}
	return g, l.loadDifferences(c, g, found)
}

// openDifference opens the snapshot of the later moment and returns the earlier
// revision and the statement after which the page begins. A cursor carries
// both revisions, so that a moment in the future keeps the meaning that it had
// for the first page.
func (l *loader) openDifference(c *diffList) (later *loader, from kg.Revision, after *kg.IDQuad, err error) {
	view := c.view
	if c.after != nil {
		at, err := l.reader.unsealCursor(*c.after, c.bound, 8+statementKeyBytes)
		if err != nil {
			return l, 0, nil, err
		}
		s, err := l.run.OpenAt(l.ctx, view, at)
		if err != nil {
			return l, 0, nil, err
		}
		q := parseQuadKey(at.Key[8:])
		if c.to != nil {
			view.At = s.Revision()
		}
		return newLoader(l.ctx, l.run, s, view), kg.Revision(binary.BigEndian.Uint64(at.Key)), &q, nil
	}
	if c.to != nil {
		to, err := l.resolveArgument(*c.to, "to")
		if err == nil && to == 0 {
			err = kg.Errorf(kg.CodeRevisionGone, "%s is before the first commit", c.to).At("to")
		}
		if err != nil {
			return l, 0, nil, err
		}
		view.At = to
		s := l.snapshot
		if to != s.Revision() {
			if s, err = l.run.OpenSnapshot(l.ctx, view); err != nil {
				return l, 0, nil, err
			}
		}
		from, err := l.resolveArgument(*c.from, "from")
		return newLoader(l.ctx, l.run, s, view), from, nil, err
	}
	from, err = l.resolveArgument(*c.from, "from")
	return l, from, nil, err
}

// collectDifferences collects the differences of a page.
func (l *loader) collectDifferences(c *diffList, g *page, all iter.Seq2[kg.Difference, error]) (found []kg.Difference, err error) {
	holds := c.statementList.Match.Tester(l.snapshot)
	for d, err := range all {
		if err != nil {
			return nil, err
		}
		ok, err := holdsEither(holds, &d)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if len(found) == c.first {
			g.more = true
			break
		}
		found = append(found, d)
		if c.cursors {
			g.cursors = append(g.cursors, l.reader.SealCursor(l.snapshot, c.bound, differenceKey(g.from, d.IDQuad)))
		}
	}
	g.size = len(found)
	return found, nil
}

// countDifferences counts the differences of all pages.
func (l *loader) countDifferences(c *diffList, from kg.Revision, p kg.IDPattern) (n uint64, err error) {
	holds := c.statementList.Match.Tester(l.snapshot)
	for d, err := range l.snapshot.Diff(from, p, nil) {
		if err != nil {
			return n, err
		}
		ok, err := holdsEither(holds, &d)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

func differenceKey(from kg.Revision, q kg.IDQuad) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(from)), quadKey(q)...)
}

// holdsEither reports whether the condition holds for the statement at one of the
// two moments.
func holdsEither(holds func(kg.Row) (bool, error), d *kg.Difference) (bool, error) {
	for _, v := range [...]*kg.Version{&d.Before, &d.After} {
		if v.From == 0 {
			continue
		}
		if ok, err := holds(v.Row); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// loadDifferences loads the statements of a page: one batch for each field.
func (l *loader) loadDifferences(c *diffList, g *page, found []kg.Difference) error {
	shown := make([]kg.Row, len(found)) // shown as `statement`
	before := make([]int, len(found))   // index in earlier; -1 if it did not exist
	var earlier []kg.Row
	for i := range found {
		d := &found[i]
		if shown[i], before[i] = d.After.Row, -1; d.After.From == 0 {
			shown[i] = d.Before.Row
		}
		if d.Before.From != 0 {
			before[i] = len(earlier)
			earlier = append(earlier, d.Before.Row)
		}
	}
	nodes := make([][][]statementNode, len(c.plans)) // per selection and field
	for s, plan := range c.plans {
		nodes[s] = make([][]statementNode, len(plan.fields))
		for i, f := range plan.fields {
			rows := shown
			if f.name == "previous" {
				rows = earlier
			} else if f.name != "statement" {
				continue
			}
			var err error
			if nodes[s][i], err = l.loadStatements(plan.statement[f.plan], rows); err != nil {
				return err
			}
			if plan.statement[f.plan].ids {
				if err := l.idsOfEarlier(nodes[s][i], found, f.name == "previous", g.from); err != nil {
					return err
				}
			}
		}
	}
	g.node = func(w *writer, selection, k int) {
		c.plans[selection].write(w, &found[k], nodes[selection], k, before[k])
	}
	return nil
}

// idsOfEarlier replaces the ids of statements shown as of the earlier moment:
// all of `previous`, and those that no longer exist.
func (l *loader) idsOfEarlier(nodes []statementNode, found []kg.Difference, all bool, from kg.Revision) error {
	view := l.view
	view.At = from
	earlier, err := l.idsIn(view)
	for i := range nodes {
		if all || found[i].After.From == 0 {
			nodes[i].ids = earlier
		}
	}
	return err
}

// write writes difference k. before is the index of its earlier statement.
func (plan *differencePlan) write(w *writer, d *kg.Difference, nodes [][]statementNode, k, before int) {
	scalar.WriteFields(w, plan.fields, func(i int, f *differenceField) {
		w.EnterField(f.key)
		switch {
		case f.name == "statement":
			nodes[i][k].write(w)
		case f.name == "previous" && before < 0:
			w.B = append(w.B, "null"...)
		case f.name == "previous":
			nodes[i][before].write(w)
		case f.name == "__typename":
			w.B = append(w.B, `"StatementDifference"`...)
		default:
			w.B = differenceLeaves{d}.appendNamed(w.B, f.name)
		}
		w.LeaveField()
	})
}

// differenceLeaves appends the scalars of a StatementDifference.
type differenceLeaves struct{ of *kg.Difference }

func (v differenceLeaves) appendOp(b []byte) []byte {
	return scalar.AppendString(b, differenceOp(v.of).String())
}

func differenceOp(d *kg.Difference) kg.Op {
	switch {
	case d.Before.From == 0:
		return kg.Add
	case d.After.From == 0:
		return kg.Remove
	}
	return kg.Replace
}
