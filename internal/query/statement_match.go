package query

import (
	"context"
	"iter"

	"koine/kg"
)

type statementTest = test[*testedStatement]

// StatementMatch is a compiled StatementFilter: an index lookup and the test
// for its results.
type StatementMatch struct {
	Pattern kg.Pattern
	objects *kg.Objects   // set: only these objects match
	text    *string       // set: the object is a literal with this text
	test    statementTest // nil always holds
	ages    bool          // the test depends on an age, so its result changes with time
	// asserted reports that the test reads the assertions.
	asserted bool
}

// Statements compiles a condition on statements. f may be nil.
func (c Compiler) Statements(f *StatementFilter) (m StatementMatch, err error) {
	if f == nil {
		return m, nil
	}
	bindPattern(&m.Pattern, f)
	if f.Object != nil {
		m.text = f.Object.onlyText()
		m.objects = f.Object.objects()
	}
	compiler := statementCompiler{ctx: c.Ctx}
	m.test, err = compiler.compile(f)
	m.ages, m.asserted = compiler.ages, compiler.asserted
	if f.isBound() {
		m.test = nil // the pattern covers the whole condition
	}
	return m, err
}

// MatchesAll reports whether every statement of the pattern matches.
func (m *StatementMatch) MatchesAll() bool { return m.test == nil }

// IsPattern reports whether the match consists of its pattern.
func (m *StatementMatch) IsPattern() bool {
	return m.test == nil && m.objects == nil && m.text == nil && !m.ages && !m.asserted
}

// scanRows scans the statements that match the pattern, with their assertions if
// the test reads them.
func (m *StatementMatch) scanRows(s *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad) iter.Seq2[kg.Row, error] {
	if m.objects != nil && kg.HasObjectOrder(p) {
		return m.scanObjects(s, p, after)
	}
	if m.asserted && p == (kg.IDPattern{Subject: p.Subject}) {
		return s.MatchAsserted(p, after)
	}
	return s.MatchIDs(p, after)
}

// scanObjects is scanRows for a condition on the object that selects some.
func (m *StatementMatch) scanObjects(s *kg.Snapshot, p kg.IDPattern, after *kg.IDQuad) iter.Seq2[kg.Row, error] {
	return func(yield func(kg.Row, error) bool) {
		w := s.Sweep()
		defer w.Close()
		for w.SeekObjects(p, m.objects, after); w.Next(); {
			if !yield(*w.Row(), nil) {
				return
			}
		}
		if err := w.Err(); err != nil {
			yield(kg.Row{}, err)
		}
	}
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
		bind(&p.Object, onlyIRI(f.Object.IRI))
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
	return f.And == nil && f.Or == nil && f.Not == nil && f.Object == nil && f.AssertionFilter == (AssertionFilter{}) &&
		f.Subject.isEquality() && f.Predicate.isEquality() && f.Graph.isEquality()
}

// Changes compiles a condition on changed statements. Ages are refused: a
// condition on an age becomes true or false without any change.
func (c Compiler) Changes(f *StatementFilter) (StatementMatch, error) {
	m, err := c.Statements(f)
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

// compile compiles the whole condition. Cheap
// parts come first: those cached by id, then those that need the object, at
// last those that need the assertions.
func (c *statementCompiler) compile(f *StatementFilter) (statementTest, error) {
	c.ages = c.ages || f.AgeSeconds != nil
	c.asserted = c.asserted || f.AssertionFilter != (AssertionFilter{})
	return compileParts(
		part[*testedStatement]{"predicate", func() (statementTest, error) { return c.compilePart(partPredicate, f.Predicate) }},
		part[*testedStatement]{"graph", func() (statementTest, error) { return c.compileGraph(f.Graph) }},
		part[*testedStatement]{"subject", func() (statementTest, error) { return c.compilePart(partSubject, f.Subject) }},
		part[*testedStatement]{"object", func() (statementTest, error) { return c.compileObject(f.Object) }},
		part[*testedStatement]{"", func() (statementTest, error) { return f.AssertionFilter.compile(c.ctx) }},
		part[*testedStatement]{"", func() (statementTest, error) { return compileLogic(f.And, f.Or, f.Not, c.compile) }},
	)
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
