package graph

import (
	"iter"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"koine/kg"
)

// planEntityGroups plans the field `groups` of a list of entities. Predicates that
// it needs are added to wanted of the list's match.
func (p *planner) planEntityGroups(c *connection, f graphql.CollectedField) error {
	args, err := p.parseArgs(f, p.run.ec.field_EntityConnection_groups_args)
	if err != nil {
		return err
	}
	g := &grouping[*subject]{}
	var keys, computed []string
	for i, by := range argumentOf[[]EntityGroupKey](args, "by") {
		of, err := valuesOf(c.entityMatch, by.Property, by.Path)
		if err == nil && of == nil {
			err = kg.Errorf(kg.CodeInvalid, "a key requires property or path")
		}
		if err != nil {
			return kg.AsError(p.run.tellPrefixed(p.ctx, err)).At("by[" + strconv.Itoa(i) + "]")
		}
		g.keys, keys = append(g.keys, of), append(keys, by.As)
	}
	for i, what := range argumentOf[[]EntityAggregate](args, "compute") {
		of, err := valuesOf(c.entityMatch, what.Property, what.Path)
		if err == nil {
			err = checkComputable(what.Fn, of == nil)
		}
		if err != nil {
			return kg.AsError(p.run.tellPrefixed(p.ctx, err)).At("compute[" + strconv.Itoa(i) + "]")
		}
		g.compute, computed = append(g.compute, computation[*subject]{what.Fn, of}), append(computed, what.As)
	}
	g.groupShape, err = p.planGrouping(f, args, keys, computed)
	c.entityGroups = append(c.entityGroups, g)
	return err
}

// checkComputable refuses functions that need a value if there is none.
func checkComputable(fn AggregateFunction, things bool) error {
	if things && fn != AggregateFunctionCount {
		return kg.Errorf(kg.CodeInvalid, "%s requires values: only COUNT works without", fn)
	}
	return nil
}

// valuesOf extracts the values of a property or at the ends of a path. It
// returns nil if neither is given.
func valuesOf(m *entityMatch, property *kg.Term, path *string) (extract[*subject], error) {
	switch {
	case property != nil && path != nil:
		return nil, kg.Errorf(kg.CodeInvalid, "property and path are mutually exclusive")
	case property == nil && path == nil:
		return nil, nil
	}
	of, err := m.compileEnds(property, path)
	if err != nil {
		return nil, kg.AsError(err).At("path")
	}
	return func(all *termTable, s *subject, to []termNumber) ([]termNumber, error) {
		for id, err := range of(s) {
			if err != nil {
				return to, err
			}
			n, err := all.indexOfID(id)
			if err != nil {
				return to, err
			}
			to = append(to, n)
		}
		return to, nil
	}, nil
}

// groupEntities groups the entities that match.
func (l *loader) groupEntities(c *connection, of iter.Seq2[*subject, error], page *page) error {
	for _, g := range c.entityGroups {
		t := newGroupTable(l.snapshot, g)
		for e, err := range of {
			if err != nil {
				return err
			}
			ok, err := c.entityMatch.matchesEntity(e)
			if err == nil && ok {
				err = t.add(e)
			}
			if err != nil {
				return err
			}
		}
		if err := showGroups(l, t, page); err != nil {
			return err
		}
	}
	return nil
}

// showGroups loads the groups and adds them to the page.
func showGroups[T any](l *loader, t *groupTable[T], page *page) error {
	groups, err := t.listGroups()
	if err != nil {
		return err
	}
	list, err := l.groupList(&t.plan.groupShape, groups)
	page.groups = append(page.groups, list)
	return err
}

// planStatementGroups plans the field `groups` of a list of statements.
func (p *planner) planStatementGroups(c *connection, f graphql.CollectedField) error {
	args, err := p.parseArgs(f, p.run.ec.field_StatementConnection_groups_args)
	if err != nil {
		return err
	}
	g := &grouping[*testedStatement]{}
	var keys, computed []string
	for _, by := range argumentOf[[]StatementGroupKey](args, "by") {
		g.assertions = g.assertions || by.By == StatementGroupBySource
		g.keys, keys = append(g.keys, statementGroupKey(by.By)), append(keys, by.As)
	}
	for i, what := range argumentOf[[]StatementAggregate](args, "compute") {
		var of extract[*testedStatement]
		if what.Of != nil {
			of = statementValue(*what.Of)
		}
		if err := checkComputable(what.Fn, of == nil); err != nil {
			return kg.AsError(err).At("compute[" + strconv.Itoa(i) + "]")
		}
		g.compute, computed = append(g.compute, computation[*testedStatement]{what.Fn, of}), append(computed, what.As)
	}
	g.groupShape, err = p.planGrouping(f, args, keys, computed)
	c.statementGroups = append(c.statementGroups, g)
	return err
}

func statementGroupKey(by StatementGroupBy) extract[*testedStatement] {
	switch by {
	case StatementGroupBySubject:
		return statementValue(StatementOrderKeySubject)
	case StatementGroupByPredicate:
		return statementValue(StatementOrderKeyPredicate)
	case StatementGroupByObject:
		return statementValue(StatementOrderKeyObject)
	case StatementGroupByGraph:
		return statementValue(StatementOrderKeyGraph)
	case StatementGroupByCertainty:
		return statementValue(StatementOrderKeyCertainty)
	case StatementGroupByDay:
		return assertionValue(func(s kg.Statement) kg.Term {
			return kg.Typed(s.RecordedAt().UTC().Format("2006-01-02"), kg.XSDDate)
		})
	}
	return func(all *termTable, f *testedStatement, to []termNumber) ([]termNumber, error) {
		s, err := f.loadStatement()
		for _, a := range s.Assertions {
			if err != nil {
				break
			}
			var n termNumber
			n, err = all.indexOfTerm(kg.String(string(a.Source)))
			to = append(to, n)
		}
		return to, err
	}
}

// statementValue extracts a part of a statement.
func statementValue(of StatementOrderKey) extract[*testedStatement] {
	part := func(id func(kg.Row) kg.ID) extract[*testedStatement] {
		return func(all *termTable, f *testedStatement, to []termNumber) ([]termNumber, error) {
			n, err := all.indexOfID(id(f.row))
			if err == nil && all.values[n].term == kg.DefaultGraph {
				return to, nil
			}
			return append(to, n), err
		}
	}
	switch of {
	case StatementOrderKeySubject:
		return part(func(r kg.Row) kg.ID { return r.Subject })
	case StatementOrderKeyPredicate:
		return part(func(r kg.Row) kg.ID { return r.Predicate })
	case StatementOrderKeyObject:
		return part(func(r kg.Row) kg.ID { return r.Object })
	case StatementOrderKeyGraph:
		return part(func(r kg.Row) kg.ID { return r.Graph })
	case StatementOrderKeyRecordedAt:
		return assertionValue(func(s kg.Statement) kg.Term { return kg.DateTime(s.RecordedAt()) })
	case StatementOrderKeyRevision:
		return assertionValue(func(s kg.Statement) kg.Term { return kg.Integer(int64(s.Revision())) })
	}
	return assertionValue(func(s kg.Statement) kg.Term {
		certainty, _ := s.Certainty()
		return kg.Typed(strconv.FormatFloat(certainty, 'g', -1, 64), kg.XSDDecimal)
	})
}

// assertionValue extracts a value from the assertions of a statement.
func assertionValue(of func(kg.Statement) kg.Term) extract[*testedStatement] {
	return func(all *termTable, f *testedStatement, to []termNumber) ([]termNumber, error) {
		s, err := f.loadStatement()
		if err != nil {
			return to, err
		}
		n, err := all.indexOfTerm(of(s))
		return append(to, n), err
	}
}

// groupStatements groups the statements that match the pattern and the
// connection's test.
func (l *loader) groupStatements(c *connection, p kg.IDPattern, known bool, page *page) error {
	for _, g := range c.statementGroups {
		t := newGroupTable(l.snapshot, g)
		if known {
			if err := l.addStatements(t, c, p); err != nil {
				return err
			}
		}
		if err := showGroups(l, t, page); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) addStatements(t *groupTable[*testedStatement], c *connection, p kg.IDPattern) error {
	f := &testedStatement{snapshot: l.snapshot}
	for row, err := range c.statementMatch.scanRows(l.snapshot, p, nil) {
		if err != nil {
			return err
		}
		ok, err := c.matchesRow(f, row)
		if err == nil && ok {
			err = addToGroups(t, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addToGroups adds a statement. If sources are a key, it adds each of the
// statement's assertions on its own.
func addToGroups(t *groupTable[*testedStatement], f *testedStatement) error {
	if !t.plan.assertions {
		return t.add(f)
	}
	s, err := f.loadStatement()
	if err != nil {
		return err
	}
	for i := range s.Assertions {
		one := *f
		one.assertions = s.Assertions[i : i+1]
		if err := t.add(&one); err != nil {
			return err
		}
	}
	return nil
}
