package graph

import (
	"time"

	"koine/kg"
)

// fact is a statement under test. Its parts are decoded on demand, once. The
// fact of a scan moves from row to row and caches the results of tests.
type fact struct {
	snapshot   *kg.Snapshot
	row        kg.Row
	have       uint8
	quad       kg.Quad
	assertions []kg.Assertion
	decided    []decided // for each test that caches its results
	now        time.Time
}

const (
	haveSubject = 1 << iota
	havePredicate
	haveObject
	haveGraph
	haveAssertions
	haveAll = haveSubject | havePredicate | haveObject | haveGraph | haveAssertions
)

func factOf(s kg.Statement) *fact {
	return &fact{quad: s.Quad, assertions: s.Assertions, have: haveAll}
}

func (f *fact) moveTo(row kg.Row) { f.row, f.have, f.assertions = row, 0, nil }

func (f *fact) decodeTerm(part uint8, id kg.ID, to *kg.Term) (kg.Term, error) {
	if f.have&part == 0 {
		t, err := f.snapshot.Term(id)
		if err != nil {
			return t, err
		}
		*to = t
		f.have |= part
	}
	return *to, nil
}

func (f *fact) subjectTerm() (kg.Term, error) {
	return f.decodeTerm(haveSubject, f.row.Subject, &f.quad.Subject)
}
func (f *fact) predicateTerm() (kg.Term, error) {
	return f.decodeTerm(havePredicate, f.row.Predicate, &f.quad.Predicate)
}
func (f *fact) objectTerm() (kg.Term, error) {
	return f.decodeTerm(haveObject, f.row.Object, &f.quad.Object)
}
func (f *fact) graphTerm() (kg.Term, error) {
	return f.decodeTerm(haveGraph, f.row.Graph, &f.quad.Graph)
}

func (f *fact) loadStatement() (kg.Statement, error) {
	if f.have&haveAssertions == 0 {
		list, err := f.snapshot.Assertions(f.row)
		if err != nil {
			return kg.Statement{}, err
		}
		f.assertions = list
		f.have |= haveAssertions
	}
	return kg.Statement{Quad: f.quad, Assertions: f.assertions}, nil
}

// evaluationTime is the evaluation time of the read, from which ages are counted.
func (f *fact) evaluationTime() (time.Time, error) {
	if f.snapshot == nil {
		return f.now, errTimeless
	}
	if f.now.IsZero() {
		f.now = f.snapshot.View().Now
	}
	return f.now, nil
}
