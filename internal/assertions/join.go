package assertions

import "koine/kg"

// joinStatements yields each statement with the assertions that follow it.
func (d *Document) joinStatements(yield func(Statement, error) bool) {
	j := joinState{document: d, yield: yield}
	for row, err := range d.statements.Sorted() {
		if err == nil {
			err = j.addRow(row)
		}
		if err != nil {
			yield(Statement{}, err)
			return
		}
		if j.ended {
			return
		}
	}
	j.endStatement()
	j.endLoose()
}

// joinState is the state of the current statement.
type joinState struct {
	document *Document
	yield    func(Statement, error) bool
	ended    bool

	at      Statement // current statement, zero for none
	present bool      // the document contains it

	// graphless is the current statement of a format without graphs, zero for none.
	// placed reports that an assertion determines its graph.
	graphless kg.Quad
	hasGraph  bool
}

func (j *joinState) addRow(row []byte) error {
	r := record{rest: row}
	q := kg.Quad{Subject: r.readTerm(), Predicate: r.readTerm(), Object: r.readTerm()}
	loose := r.readByte() == inAnyGraph
	q.Graph = r.readTerm()
	if loose || q != j.at.Quad {
		j.endStatement()
	}
	if !sameTriple(&q, &j.graphless) {
		j.endLoose()
	}
	if loose {
		j.graphless = q
		return r.err
	}
	j.at.Quad = q
	if r.readByte() == isStatement {
		j.present = true
		return r.err
	}
	a := r.readAssertion()
	if r.err != nil {
		return r.err
	}
	return j.addAssertion(a)
}

// addAssertion adds an assertion to the current statement. Assertions of one source are adjacent.
func (j *joinState) addAssertion(a Assertion) error {
	if n := len(j.at.Assertions); n > 0 && j.at.Assertions[n-1].Source == a.Source {
		if j.at.Assertions[n-1].Equal(&a) {
			return nil
		}
		return kg.Errorf(kg.CodeInvalid, "two descriptions of the assertion by %s of %s differ", a.Source, clippedTriple(&j.at.Quad))
	}
	if len(j.at.Assertions) == kg.MaxAssertions {
		return kg.Errorf(kg.CodeLimitExceeded, "a statement can have at most %d sources: %s", kg.MaxAssertions, clippedTriple(&j.at.Quad))
	}
	j.at.Assertions = append(j.at.Assertions, a)
	return nil
}

// endStatement yields the current statement if the document contains it.
func (j *joinState) endStatement() {
	if j.at.Subject.IsZero() || j.ended {
		return
	}
	switch loose := sameTriple(&j.at.Quad, &j.graphless); {
	case len(j.at.Assertions) == 0 && statesVersion(&j.at.Quad): // the document's own, beside one that is data
	case loose || j.present:
		j.hasGraph = j.hasGraph || loose
		j.ended = !j.yield(j.at, nil)
	default:
		j.document.unasserted += uint64(len(j.at.Assertions))
	}
	j.at, j.present = Statement{}, false
}

// endLoose yields the statement of a format without graphs if no assertion determines its
// graph: it then has the graph that the reader assigned.
func (j *joinState) endLoose() {
	if !j.graphless.Subject.IsZero() && !j.hasGraph && !j.ended && !statesVersion(&j.graphless) {
		j.ended = !j.yield(Statement{Quad: j.graphless}, nil)
	}
	j.graphless, j.hasGraph = kg.Quad{}, false
}

func sameTriple(a, b *kg.Quad) bool {
	return a.Subject == b.Subject && a.Predicate == b.Predicate && a.Object == b.Object
}

// maxErrorBytes is the largest length in bytes of a statement in an error.
const maxErrorBytes = 256

func clippedTriple(q *kg.Quad) string {
	text := q.Subject.String() + " " + q.Predicate.String() + " " + q.Object.String()
	return clipText(text)
}
