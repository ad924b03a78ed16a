package graph

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"koine/kg"
)

// statementTest reports whether a condition holds for a statement.
type statementTest func(*testedStatement) (bool, error)

// statementMatch is a compiled StatementFilter: an index lookup and the test
// for its results.
type statementMatch struct {
	pattern kg.Pattern
	text    *string       // set: the object is a literal with this text
	test    statementTest // nil always holds
	ages    bool          // the test depends on an age, so its result changes with time
	// asserted reports that the test reads the assertions.
	asserted bool
}

// matchStatement compiles a condition on statements. f may be nil.
func matchStatement(ctx context.Context, f *StatementFilter) (m statementMatch, err error) {
	if f == nil {
		return m, nil
	}
	bindPattern(&m.pattern, f)
	if f.Object != nil {
		m.text = onlyText(f.Object.Eq)
	}
	c := statementCompiler{ctx: ctx}
	m.test, err = c.compile(f)
	m.ages, m.asserted = c.ages, c.asserted
	if f.isBound() {
		m.test = nil // the pattern covers the whole condition
	}
	return m, err
}

// scanRows scans the statements that match the pattern, with their assertions if
// the test reads them.
func (m *statementMatch) scanRows(s *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad) iter.Seq2[kg.Row, error] {
	if m.asserted && p == (kg.IDPattern{Subject: p.Subject}) {
		return s.MatchAsserted(p, after)
	}
	return s.MatchIDs(p, after)
}

// bindPattern sets the terms that the condition fixes.
func bindPattern(p *kg.Pattern, f *StatementFilter) {
	bind := func(part *kg.Term, t *kg.Term) {
		if part.IsZero() && t != nil {
			*part = *t
		}
	}
	bind(&p.Subject, onlyIRI(f.Subject))
	bind(&p.Predicate, onlyIRI(f.Predicate))
	if f.Object != nil {
		bind(&p.Object, onlyIRI(f.Object.Iri))
	}
	bind(&p.Graph, onlyGraph(f.Graph))
	for i := range f.And {
		bindPattern(p, &f.And[i])
	}
}

// onlyIRI returns the only IRI that meets the condition, or nil.
func onlyIRI(f *IRIFilter) *kg.Term {
	switch {
	case f == nil:
		return nil
	case f.Eq != nil:
		return f.Eq
	case len(f.In) == 1:
		return &f.In[0]
	}
	return nil
}

func onlyGraph(f *GraphFilter) *kg.Term {
	switch {
	case f == nil:
		return nil
	case f.Eq != nil:
		return f.Eq
	case f.Default != nil && *f.Default:
		return &kg.DefaultGraph
	case len(f.In) == 1:
		return &graphNames(f.In)[0]
	}
	return nil
}

// isBound reports whether the condition consists of equalities only, so that the
// pattern covers all of it.
func (f *StatementFilter) isBound() bool {
	return f.And == nil && f.Or == nil && f.Not == nil && f.Object == nil && f.assertionFilter() == (assertionFilter{}) &&
		f.Subject.isEquality() && f.Predicate.isEquality() && f.Graph.isEquality()
}

// matchChanges compiles a condition on changed statements. Ages are refused: a
// condition on an age becomes true or false without any change.
func matchChanges(ctx context.Context, f *StatementFilter) (statementMatch, error) {
	m, err := matchStatement(ctx, f)
	if err == nil && m.ages {
		err = errTimeless
	}
	return m, err
}

var errTimeless = func() error {
	e := kg.Errorf(kg.CodeInvalid, "ageSeconds cannot be used in lists and subscriptions of changes")
	e.Hint = "Use a condition on recordedAt or revision instead."
	return e.At("ageSeconds")
}()

// statementCompiler compiles conditions on statements into tests.
type statementCompiler struct {
	ctx            context.Context
	slots          int // number of tests that cache results
	ages, asserted bool
}

// compile combines the whole condition into one test. nil always holds. Cheap
// parts come first: those cached by id, then those that need the object, at
// last those that need the assertions.
func (c *statementCompiler) compile(f *StatementFilter) (statementTest, error) {
	c.ages = c.ages || f.AgeSeconds != nil
	c.asserted = c.asserted || f.assertionFilter() != (assertionFilter{})
	var tests []statementTest
	for _, part := range []struct {
		name    string
		compile func() (statementTest, error)
	}{
		{"predicate", func() (statementTest, error) { return c.compilePart(partPredicate, f.Predicate) }},
		{"graph", func() (statementTest, error) { return c.compileGraph(f.Graph) }},
		{"subject", func() (statementTest, error) { return c.compilePart(partSubject, f.Subject) }},
		{"object", func() (statementTest, error) { return c.compileObject(f.Object) }},
		{"", func() (statementTest, error) { return f.assertionFilter().compile(c.ctx) }},
		{"and", func() (statementTest, error) { return c.compileAnd(f.And) }},
		{"or", func() (statementTest, error) { return c.compileOr(f.Or) }},
		{"not", func() (statementTest, error) { return c.compileNot(f.Not) }},
	} {
		test, err := part.compile()
		if err != nil && part.name != "" {
			err = kg.AsError(err).At(part.name)
		}
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	return allStatementTests(tests), nil
}

func (c *statementCompiler) compilePart(part statementPart, f *IRIFilter) (statementTest, error) {
	test, err := matchIRI(c.ctx, f)
	return c.cachedTest(part, test), err
}

func (c *statementCompiler) compileGraph(f *GraphFilter) (statementTest, error) {
	test, err := matchGraph(c.ctx, f)
	return c.cachedTest(partGraph, test), err
}

func (c *statementCompiler) compileObject(f *ValueFilter) (statementTest, error) {
	test, err := matchValue(c.ctx, f)
	return c.cachedTest(partObject, test), err
}

// cachedTest makes a test of one part of a statement whose result is cached by
// id.
func (c *statementCompiler) cachedTest(part statementPart, test termTest) statementTest {
	if test == nil {
		return nil
	}
	slot := c.slots
	c.slots++
	return func(f *testedStatement) (bool, error) { return f.decideCached(slot, part, test) }
}

func (c *statementCompiler) compileEach(list []StatementFilter) ([]statementTest, error) {
	out := make([]statementTest, len(list))
	for i := range list {
		test, err := c.compile(&list[i])
		if err != nil {
			return nil, kg.AsError(err).At("[" + strconv.Itoa(i) + "]")
		}
		if test == nil {
			test = func(*testedStatement) (bool, error) { return true, nil }
		}
		out[i] = test
	}
	return out, nil
}

func (c *statementCompiler) compileAnd(list []StatementFilter) (statementTest, error) {
	tests, err := c.compileEach(list)
	return allStatementTests(tests), err
}

func (c *statementCompiler) compileOr(list []StatementFilter) (statementTest, error) {
	if list == nil {
		return nil, nil
	}
	tests, err := c.compileEach(list)
	return anyStatementTest(tests), err
}

func (c *statementCompiler) compileNot(f *StatementFilter) (statementTest, error) {
	if f == nil {
		return nil, nil
	}
	test, err := c.compile(f)
	return notStatementTest(test), err
}

func allStatementTests(tests []statementTest) statementTest {
	tests = slices.DeleteFunc(tests, func(t statementTest) bool { return t == nil })
	if len(tests) == 0 {
		return nil
	}
	return func(f *testedStatement) (bool, error) {
		for _, test := range tests {
			if ok, err := test(f); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
}

func anyStatementTest(tests []statementTest) statementTest {
	return func(f *testedStatement) (bool, error) {
		for _, test := range tests {
			if ok, err := test(f); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
}

func notStatementTest(test statementTest) statementTest {
	return func(f *testedStatement) (bool, error) {
		if test == nil {
			return false, nil
		}
		ok, err := test(f)
		return err == nil && !ok, err
	}
}
