package graph

import (
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

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

// groupOptions reads the arguments that all fields `groups` have.
func (p *planner) groupOptions(args map[string]any) (o query.GroupOptions, err error) {
	limits := p.run.engine.limits
	o.First, err = limits.pageSize(argumentOf[*int](args, "first"), DefaultPageSize)
	o.Having, o.Order = argumentOf[[]query.GroupCondition](args, "having"), argumentOf[[]query.GroupOrder](args, "orderBy")
	o.Limits = query.GroupLimits{Groups: limits.Groups, Values: limits.GroupedValues}
	return o, err
}

// planGroups plans a field `groups` and returns its index.
func (p *planner) planGroups(c *connection, f graphql.CollectedField) (int, error) {
	parse, compile := p.run.ec.field_StatementConnection_groups_args, compileStatementGroups
	switch {
	case c.otherGroups != nil:
		parse, compile = p.run.ec.field_MatchConnection_groups_args, c.otherGroups
	case c.entityList.Match != nil:
		parse, compile = p.run.ec.field_EntityConnection_groups_args, c.compileEntityGroups
	}
	args, err := p.parseArgs(f, parse)
	if err != nil {
		return 0, err
	}
	o, err := p.groupOptions(args)
	if err != nil {
		return 0, err
	}
	plan := &groupPlan{}
	if err := compile(plan, args, o); err != nil {
		return 0, groupLimit(p.run.tellPrefixed(p.ctx, err))
	}
	c.groups = append(c.groups, plan)
	return len(c.groups) - 1, p.planGroupFields(plan, f.Selections)
}

func (c *connection) compileEntityGroups(plan *groupPlan, args map[string]any, o query.GroupOptions) error {
	g, err := c.entityList.Match.GroupBy(argumentOf[[]query.EntityGroupKey](args, "by"), argumentOf[[]query.EntityAggregate](args, "compute"), o)
	if err == nil {
		plan.entities, plan.shape = g, &g.GroupShape
	}
	return err
}

func compileStatementGroups(plan *groupPlan, args map[string]any, o query.GroupOptions) error {
	g, err := query.GroupStatements(argumentOf[[]query.StatementGroupKey](args, "by"), argumentOf[[]query.StatementAggregate](args, "compute"), o)
	if err == nil {
		plan.statements, plan.shape = g, &g.GroupShape
	}
	return err
}

func (c *matchList) compileGroups(plan *groupPlan, args map[string]any, o query.GroupOptions) error {
	column := func(name string) int { return c.pattern.Column(name) }
	g, err := query.GroupRows(c.shownNames(), column, argumentOf[[]query.MatchGroupKey](args, "by"), argumentOf[[]query.MatchAggregate](args, "compute"), o)
	if err == nil {
		plan.rows, plan.shape = g, &g.GroupShape
	}
	return err
}

func (p *planner) planGroupFields(plan *groupPlan, set ast.SelectionSet) error {
	return p.eachField(set, groupImplementors, func(f graphql.CollectedField, key []byte) (err error) {
		field := groupField{key: key, name: f.Name}
		parse := p.run.ec.field_Group_key_args
		switch f.Name {
		case "__typename", "keys", "values", "count":
			plan.fields = append(plan.fields, field)
			return nil
		case "key":
		case "value":
			parse = p.run.ec.field_Group_value_args
		case "entity":
			parse = p.run.ec.field_Group_entity_args
			if field.entity, err = p.planEntity(f.Selections); err != nil {
				return err
			}
		case "term":
			parse = p.run.ec.field_Group_term_args
			if field.entity, err = p.planEntity(f.Selections); err == nil {
				field.literal, err = p.planLiteral(f.Selections)
			}
			if err != nil {
				return err
			}
		default:
			return unplannedField(f)
		}
		args, err := p.parseArgs(f, parse)
		if err != nil {
			return err
		}
		field.index, err = plan.shape.Index(argumentOf[string](args, "as"))
		plan.fields = append(plan.fields, field)
		return err
	})
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
			return groupLimit(err)
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

func (l *groupList) write(b []byte) []byte {
	k := -1
	return appendList(b, l.groups, func(b []byte, g *query.Group) []byte {
		k++
		return l.writeGroup(b, g, k)
	})
}

func (l *groupList) writeGroup(b []byte, g *query.Group, k int) []byte {
	names, keys := l.plan.shape.Names, l.plan.shape.Keys
	return appendFields(b, l.plan.fields, func(b []byte, i int, f *groupField) []byte {
		b = append(b, f.key...)
		switch f.name {
		case "keys":
			return appendNamed(b, names[:keys], g.Terms)
		case "values":
			return appendNamed(b, names[keys:], g.Terms[keys:])
		case "count":
			return appendUint(b, g.Count)
		case "key", "value":
			return appendNullable(b, g.Term(f.index))
		case "entity", "term":
			return l.writeTerm(b, f, i, k)
		}
		return append(b, `"Group"`...)
	})
}

func (l *groupList) writeTerm(b []byte, f *groupField, i, k int) []byte {
	if n := l.entities[i][k]; n != nil {
		return n.write(b)
	}
	if t := l.groups[k].Term(f.index); f.name == "term" && t.IsLiteral() {
		return appendLiteral(b, t, f.literal)
	}
	return append(b, "null"...)
}

// appendNamed writes terms as an object.
func appendNamed(b []byte, names []string, terms []kg.Term) []byte {
	return appendFields(b, names, func(b []byte, i int, name *string) []byte {
		return appendNullable(append(appendString(b, *name), ':'), terms[i])
	})
}

func appendNullable(b []byte, t kg.Term) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return appendValue(b, t)
}
