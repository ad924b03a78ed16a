package query

import (
	"time"

	"koine/kg"
)

// testedStatement is a statement under test. Its parts are decoded on demand,
// once. The statement of a scan moves from row to row and caches the results of
// tests.
type testedStatement struct {
	snapshot     *kg.Snapshot
	row          kg.Row
	decodedParts uint8
	quad         kg.Quad
	assertions   []kg.Assertion
	decided      []decisionCache // for each test that caches its results
	now          time.Time
}

const (
	haveSubject = 1 << iota
	havePredicate
	haveObject
	haveGraph
	haveAssertions
	haveAll = haveSubject | havePredicate | haveObject | haveGraph | haveAssertions
)

func newTestedStatement(s kg.Statement) *testedStatement {
	return &testedStatement{quad: s.Quad, assertions: s.Assertions, decodedParts: haveAll}
}

func (f *testedStatement) moveTo(row *kg.Row) { f.row, f.decodedParts, f.assertions = *row, 0, nil }

func (f *testedStatement) decodeTerm(part uint8, id kg.ID, to *kg.Term) (kg.Term, error) {
	if f.decodedParts&part == 0 {
		t, err := f.snapshot.Term(id)
		if err != nil {
			return t, err
		}
		*to = t
		f.decodedParts |= part
	}
	return *to, nil
}

func (f *testedStatement) subjectTerm() (kg.Term, error) {
	return f.decodeTerm(haveSubject, f.row.Subject, &f.quad.Subject)
}
func (f *testedStatement) predicateTerm() (kg.Term, error) {
	return f.decodeTerm(havePredicate, f.row.Predicate, &f.quad.Predicate)
}
func (f *testedStatement) objectTerm() (kg.Term, error) {
	return f.decodeTerm(haveObject, f.row.Object, &f.quad.Object)
}
func (f *testedStatement) graphTerm() (kg.Term, error) {
	return f.decodeTerm(haveGraph, f.row.Graph, &f.quad.Graph)
}

func (f *testedStatement) loadStatement() (kg.Statement, error) {
	if f.decodedParts&haveAssertions == 0 {
		list, err := f.snapshot.Assertions(f.row)
		if err != nil {
			return kg.Statement{}, err
		}
		f.assertions = list
		f.decodedParts |= haveAssertions
	}
	return kg.Statement{Quad: f.quad, Assertions: f.assertions}, nil
}

// evaluationTime is the evaluation time of the read, from which ages are counted.
func (f *testedStatement) evaluationTime() (time.Time, error) {
	if f.snapshot == nil {
		return f.now, errTimeless
	}
	if f.now.IsZero() {
		f.now = f.snapshot.View().Now
	}
	return f.now, nil
}

// WatchFilter returns the test as a filter of a watch, which tests one
// assertion at a time.
func (m StatementMatch) WatchFilter() func(kg.Statement) bool {
	if m.test == nil {
		return nil
	}
	return func(s kg.Statement) bool {
		ok, err := m.test(newTestedStatement(s))
		return ok && err == nil
	}
}
