package knowledge

import (
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"koine/graph/internal/scalar"
	"koine/graph/limit"
	"koine/internal/query"
	"koine/kg"
)

// groupPlan is the plan of a field `groups`. It has a grouping of the list's
// elements.
type groupPlan struct {
	shape      *query.GroupShape
	fields     []groupField
	entities   *query.EntityGrouping
	statements *query.StatementGrouping
	rows       *query.RowGrouping
}

// groupField is a selected field of a group.
type groupField struct {
	key     []byte
	name    string
	index   int           // index of the key or value, for fields with a name
	entity  *entityPlan   // for `entity`, and for a `term` that is an entity
	literal []scalarField // for a `term` that is a literal
}

// planGroups plans a field `groups` and returns its index.
func (p *Planner) planGroups(c *connection, f graphql.CollectedField) (int, error) {
	plan := &groupPlan{}
	compile := compileStatementGroups
	switch {
	case c.otherGroups != nil:
		compile = c.otherGroups
	case c.entityList.Match != nil:
		compile = c.compileEntityGroups
	}
	if err := compile(p, plan, f); err != nil {
		return 0, limit.GroupLimit(p.run.TellPrefixed(p.ctx, err))
	}
	if err := p.planGroupFields(plan, f.Selections); err != nil {
		return 0, err
	}
	c.groups = append(c.groups, plan)
	return len(c.groups) - 1, nil
}

// groupOptions returns the options that the arguments of all fields `groups` give.
func (p *Planner) groupOptions(first *int, having []query.GroupCondition, order []query.GroupOrder) (o query.GroupOptions, err error) {
	limits := p.run.Reader.Limits
	o.First, err = limits.CheckFirst(first, limit.DefaultPageSize)
	o.Having, o.Order = having, order
	o.Limits = query.GroupLimits{Groups: limits.Groups, Values: limits.GroupedValues}
	return o, err
}

func (c *connection) compileEntityGroups(p *Planner, plan *groupPlan, f graphql.CollectedField) error {
	args, err := coerceArgs(p, f, CoerceEntityConnectionGroupsArgs)
	if err != nil {
		return err
	}
	o, err := p.groupOptions(args.First, args.Having, args.OrderBy)
	if err != nil {
		return err
	}
	g, err := c.entityList.Match.GroupBy(args.By, args.Compute, o)
	if err == nil {
		plan.entities, plan.shape = g, &g.GroupShape
	}
	return err
}

func compileStatementGroups(p *Planner, plan *groupPlan, f graphql.CollectedField) error {
	args, err := coerceArgs(p, f, CoerceStatementConnectionGroupsArgs)
	if err != nil {
		return err
	}
	o, err := p.groupOptions(args.First, args.Having, args.OrderBy)
	if err != nil {
		return err
	}
	g, err := query.GroupStatements(args.By, args.Compute, o)
	if err == nil {
		plan.statements, plan.shape = g, &g.GroupShape
	}
	return err
}

func (c *matchList) compileGroups(p *Planner, plan *groupPlan, f graphql.CollectedField) error {
	args, err := coerceArgs(p, f, CoerceMatchConnectionGroupsArgs)
	if err != nil {
		return err
	}
	o, err := p.groupOptions(args.First, args.Having, args.OrderBy)
	if err != nil {
		return err
	}
	column := func(name string) int { return c.pattern.Column(name) }
	g, err := query.GroupRows(c.shownNames(), column, args.By, args.Compute, o)
	if err == nil {
		plan.rows, plan.shape = g, &g.GroupShape
	}
	return err
}

func (p *Planner) planGroupFields(plan *groupPlan, set ast.SelectionSet) error {
	return p.EachField(set, GroupImplementors, func(f graphql.CollectedField, key []byte) error {
		plan.fields = append(plan.fields, groupField{key: key, name: f.Name})
		return groupFieldPlan{p, plan, &plan.fields[len(plan.fields)-1]}.planNamed(f)
	})
}

// groupFieldPlan plans a field of a group.
type groupFieldPlan struct {
	planner *Planner
	plan    *groupPlan
	field   *groupField
}

func (b groupFieldPlan) planKey(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceGroupKeyArgs)
	if err != nil {
		return err
	}
	return b.planIndex(args.As)
}

func (b groupFieldPlan) planValue(f graphql.CollectedField) error {
	args, err := coerceArgs(b.planner, f, CoerceGroupValueArgs)
	if err != nil {
		return err
	}
	return b.planIndex(args.As)
}

func (b groupFieldPlan) planEntity(f graphql.CollectedField) (err error) {
	if b.field.entity, err = b.planner.planEntity(f.Selections); err != nil {
		return err
	}
	args, err := coerceArgs(b.planner, f, CoerceGroupEntityArgs)
	if err != nil {
		return err
	}
	return b.planIndex(args.As)
}

func (b groupFieldPlan) planTerm(f graphql.CollectedField) (err error) {
	if b.field.entity, b.field.literal, err = b.planner.planTerm(f); err != nil {
		return err
	}
	args, err := coerceArgs(b.planner, f, CoerceGroupTermArgs)
	if err != nil {
		return err
	}
	return b.planIndex(args.As)
}

func (b groupFieldPlan) planIndex(name string) (err error) {
	b.field.index, err = b.plan.shape.Index(name)
	return err
}

// groupList is a loaded field `groups`.
type groupList struct {
	plan     *groupPlan
	groups   []query.Group
	entities [][]*entityNode // for each field that shows entities, for each group; nil for none
}

// loadGroups loads the fields `groups` of a list. find groups its elements.
func (l *loader) loadGroups(c *connection, to *page, find func(*groupPlan) ([]query.Group, error)) error {
	for _, plan := range c.groups {
		groups, err := find(plan)
		if err == nil {
			err = l.showGroups(plan, groups, to)
		}
		if err != nil {
			return limit.GroupLimit(err)
		}
	}
	return nil
}

// showGroups adds the groups to the page and loads the entities that the fields
// show.
func (l *loader) showGroups(plan *groupPlan, groups []query.Group, to *page) (err error) {
	out := &groupList{plan: plan, groups: groups, entities: make([][]*entityNode, len(plan.fields))}
	to.groups = append(to.groups, out)
	for i := range plan.fields {
		f := &plan.fields[i]
		if f.entity == nil {
			continue
		}
		out.entities[i], err = l.loadSome(f.entity, len(groups), func(k int) (entityRef, bool, error) {
			t := groups[k].Term(f.index)
			if !t.IsResource() {
				return entityRef{}, false, nil
			}
			ref, err := l.newEntityRef(t)
			return ref, true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// groupEntities groups the entities of the list.
func (l *loader) groupEntities(c *connection, to *page) error {
	return l.loadGroups(c, to, func(plan *groupPlan) ([]query.Group, error) { return c.entityList.Group(l.snapshot, plan.entities) })
}

// groupStatements groups the statements that match the pattern. known is false
// if nothing can match.
func (l *loader) groupStatements(c *connection, p kg.IDPattern, known bool, to *page) error {
	return l.loadGroups(c, to, func(plan *groupPlan) ([]query.Group, error) {
		if !known {
			return query.NewGroupTable(l.snapshot, plan.statements).Groups()
		}
		return c.statementList.Group(l.snapshot, p, plan.statements)
	})
}

func (l *groupList) write(w *writer) {
	scalar.WriteList(w, len(l.groups), func(k int) { l.writeGroup(w, k) })
}

func (l *groupList) writeGroup(w *writer, k int) {
	v := groupLeaves{&l.groups[k], l.plan.shape}
	scalar.WriteFields(w, l.plan.fields, func(i int, f *groupField) {
		w.EnterField(f.key)
		switch f.name {
		case "__typename":
			w.B = append(w.B, `"Group"`...)
		case "key", "value":
			w.B = appendNullable(w.B, v.group.Term(f.index))
		case "entity", "term":
			l.writeTerm(w, f, i, k)
		default:
			w.B = v.appendNamed(w.B, f.name)
		}
		w.LeaveField()
	})
}

// groupLeaves appends the scalars of a Group.
type groupLeaves struct {
	group *query.Group
	shape *query.GroupShape
}

func (v groupLeaves) appendKeys(b []byte) []byte {
	return appendNamed(b, v.shape.Names[:v.shape.Keys], v.group.Terms)
}

func (v groupLeaves) appendValues(b []byte) []byte {
	return appendNamed(b, v.shape.Names[v.shape.Keys:], v.group.Terms[v.shape.Keys:])
}

func (v groupLeaves) appendCount(b []byte) []byte { return scalar.AppendUint(b, v.group.Count) }

func (l *groupList) writeTerm(w *writer, f *groupField, i, k int) {
	if n := l.entities[i][k]; n != nil {
		n.write(w)
		return
	}
	if t := l.groups[k].Term(f.index); f.name == "term" && t.IsLiteral() {
		w.B = appendLiteral(w.B, t, f.literal)
		return
	}
	w.B = append(w.B, "null"...)
}

// appendNamed writes terms as an object.
func appendNamed(b []byte, names []string, terms []kg.Term) []byte {
	return scalar.AppendFields(b, names, func(b []byte, i int, name *string) []byte {
		return appendNullable(append(scalar.AppendString(b, *name), ':'), terms[i])
	})
}

func appendNullable(b []byte, t kg.Term) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return scalar.AppendValue(b, t)
}
