package query

import (
	"slices"
	"strconv"

	"koine/kg"
	"koine/kg/base"
)

// EntityGroupKey is a key of groups of entities: Property or Path.
type EntityGroupKey struct {
	As       string
	Property *base.Term
	Path     *string
}

// EntityAggregate is an aggregate over the values of Property, the ends of
// Path, or the entities.
type EntityAggregate struct {
	As       string
	Fn       AggregateFunction
	Property *base.Term
	Path     *string
}

// StatementGroupKey is a key of groups of statements.
type StatementGroupKey struct {
	As string
	By StatementAttribute
}

// StatementAggregate is an aggregate over an attribute, or the statements.
type StatementAggregate struct {
	As string
	Fn AggregateFunction
	Of *StatementAttribute
}

// MatchGroupKey is a key of groups of rows. As is Var by default.
type MatchGroupKey struct {
	As  *string
	Var string
}

// MatchAggregate is an aggregate over a variable, or the rows.
type MatchAggregate struct {
	As  string
	Fn  AggregateFunction
	Var *string
}

// The groupings of entities, of statements and of the rows of a pattern.
type (
	EntityGrouping    = Grouping[*subject]
	StatementGrouping = Grouping[*testedStatement]
	RowGrouping       = Grouping[[]kg.ID]
)

// GroupBy compiles a grouping of the entities. Predicates that it needs are
// added to wanted.
func (m *EntityMatch) GroupBy(by []EntityGroupKey, compute []EntityAggregate, o GroupOptions) (*EntityGrouping, error) {
	g := &EntityGrouping{}
	for i, key := range by {
		of, err := m.extractValues(key.Property, key.Path)
		if err == nil && of == nil {
			err = kg.Errorf(kg.CodeInvalid, "a key requires property or path")
		}
		if err != nil {
			return nil, kg.AsError(err).At("by[" + strconv.Itoa(i) + "]")
		}
		name := ""
		if key.Property != nil {
			name = key.Property.Value()
		}
		g.addKey(key.As, name, of)
	}
	for i, what := range compute {
		of, err := m.extractValues(what.Property, what.Path)
		if err == nil {
			err = g.addValue(what.As, what.Fn, of)
		}
		if err != nil {
			return nil, kg.AsError(err).At("compute[" + strconv.Itoa(i) + "]")
		}
	}
	return g, g.finish(o)
}

// GroupStatements compiles a grouping of statements.
func GroupStatements(by []StatementGroupKey, compute []StatementAggregate, o GroupOptions) (*StatementGrouping, error) {
	g := &StatementGrouping{}
	for _, key := range by {
		g.assertions = g.assertions || key.By == BySource
		g.addKey(key.As, string(key.By), statementValue(key.By))
	}
	for i, what := range compute {
		var of extract[*testedStatement]
		if what.Of != nil {
			of = statementValue(*what.Of)
		}
		if err := g.addValue(what.As, what.Fn, of); err != nil {
			return nil, kg.AsError(err).At("compute[" + strconv.Itoa(i) + "]")
		}
	}
	return g, g.finish(o)
}

// GroupRows compiles a grouping of the rows of a pattern. column returns the
// index of a variable in a row; it is called for each row.
func GroupRows(variables []string, column func(name string) int, by []MatchGroupKey, compute []MatchAggregate, o GroupOptions) (*RowGrouping, error) {
	g := &RowGrouping{}
	extractColumn := func(name string) (extract[[]kg.ID], error) {
		if !slices.Contains(variables, name) {
			return nil, UnknownVariable(name, variables).At("var")
		}
		return func(all *termTable, row []kg.ID, to []termNumber) ([]termNumber, error) {
			id := row[column(name)]
			if id == (kg.ID{}) {
				return to, nil
			}
			n, err := all.indexOfID(id)
			return append(to, n), err
		}, nil
	}
	for i, key := range by {
		of, err := extractColumn(key.Var)
		if err != nil {
			return nil, kg.AsError(err).At("by[" + strconv.Itoa(i) + "]")
		}
		name := key.Var
		if key.As != nil {
			name = *key.As
		}
		g.addKey(name, key.Var, of)
	}
	for i, what := range compute {
		var of extract[[]kg.ID]
		var err error
		if what.Var != nil {
			of, err = extractColumn(*what.Var)
		}
		if err == nil {
			err = g.addValue(what.As, what.Fn, of)
		}
		if err != nil {
			return nil, kg.AsError(err).At("compute[" + strconv.Itoa(i) + "]")
		}
	}
	return g, g.finish(o)
}

// extractValues extracts the values of a property or at the ends of a path. It
// returns nil if neither is given.
func (m *EntityMatch) extractValues(property *kg.Term, path *string) (extract[*subject], error) {
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

// sources extracts the sources of a statement.
func sources(all *termTable, f *testedStatement, to []termNumber) ([]termNumber, error) {
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

// statementValue extracts an attribute of a statement.
func statementValue(of StatementAttribute) extract[*testedStatement] {
	if part, ok := partOf[of]; ok {
		return func(all *termTable, f *testedStatement, to []termNumber) ([]termNumber, error) {
			id, _ := part.of(&f.row, &f.quad)
			n, err := all.indexOfID(id)
			if err == nil && of == ByGraph {
				err = all.loadTerm(n)
			}
			if err == nil && of == ByGraph && all.values[n].term == kg.DefaultGraph {
				return to, nil
			}
			return append(to, n), err
		}
	}
	switch of {
	case ByDay:
		return assertionValue(func(s kg.Statement) kg.Term {
			return kg.Typed(s.RecordedAt().UTC().Format("2006-01-02"), kg.XSDDate)
		})
	case BySource:
		return sources
	case ByRecordedAt:
		return assertionValue(func(s kg.Statement) kg.Term { return kg.DateTime(s.RecordedAt()) })
	case ByRevision:
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

// addStatement adds a statement. If sources are a key, it adds each of the
// statement's assertions on its own.
func addStatement(t *GroupTable[*testedStatement], f *testedStatement) error {
	if !t.plan.assertions {
		return t.Add(f)
	}
	s, err := f.loadStatement()
	if err != nil {
		return err
	}
	for i := range s.Assertions {
		one := *f
		one.assertions = s.Assertions[i : i+1]
		if err := t.Add(&one); err != nil {
			return err
		}
	}
	return nil
}
