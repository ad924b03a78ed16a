package query

import (
	"time"

	"koine/kg"
)

// testedStatement is a statement under test. Its parts are decoded on demand,
// once. The statement of a scan moves from row to row and caches the results of
// tests.
type testedStatement struct {
	snapshot   *kg.Snapshot
	row        kg.Row
	decoded    [4]bool // for each part
	asserted   bool    // the assertions are decoded
	quad       kg.Quad
	assertions []kg.Assertion
	decided    []decisionCache // for each test that caches its results
	now        time.Time
}

// statementPart is one of the terms of a statement.
type statementPart uint8

const (
	partSubject statementPart = iota
	partPredicate
	partObject
	partGraph
)

var partOf = map[StatementAttribute]statementPart{BySubject: partSubject, ByPredicate: partPredicate, ByObject: partObject, ByGraph: partGraph}

// of returns the part's id and the place of its term.
func (p statementPart) of(row *kg.Row, quad *kg.Quad) (kg.ID, *kg.Term) {
	switch p {
	case partSubject:
		return row.Subject, &quad.Subject
	case partPredicate:
		return row.Predicate, &quad.Predicate
	case partObject:
		return row.Object, &quad.Object
	}
	return row.Graph, &quad.Graph
}

func newTestedStatement(s kg.Statement) *testedStatement {
	return &testedStatement{quad: s.Quad, assertions: s.Assertions, decoded: [4]bool{true, true, true, true}, asserted: true}
}

func (f *testedStatement) moveTo(row *kg.Row) {
	f.row, f.decoded, f.asserted, f.assertions = *row, [4]bool{}, false, nil
}

func (f *testedStatement) term(p statementPart) (kg.Term, error) {
	id, term := p.of(&f.row, &f.quad)
	if !f.decoded[p] {
		t, err := f.snapshot.Term(id)
		if err != nil {
			return t, err
		}
		*term, f.decoded[p] = t, true
	}
	return *term, nil
}

// loadStatement returns the statement with its assertions and the terms decoded
// so far.
func (f *testedStatement) loadStatement() (kg.Statement, error) {
	if !f.asserted {
		list, err := f.snapshot.Assertions(f.row)
		if err != nil {
			return kg.Statement{}, err
		}
		f.assertions, f.asserted = list, true
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
