package assertions

import "koine/kg"

// join yields each statement with the assertions that follow it.
func (d *Document) join(yield func(Statement, error) bool) {
	j := joining{document: d, yield: yield}
	for row, err := range d.statements.Sorted() {
		if err == nil {
			err = j.row(row)
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

// joining is the state of the current statement.
type joining struct {
	document *Document
	yield    func(Statement, error) bool
	ended    bool

	at      Statement // current statement, zero for none
	present bool      // the document contains it

	// loose is the current statement of a format without graphs, zero for none.
	// placed reports that an assertion determines its graph.
	loose  kg.Quad
	placed bool
}

func (j *joining) row(row []byte) error {
	r := record{rest: row}
	q := kg.Quad{Subject: r.term(), Predicate: r.term(), Object: r.term()}
	loose := r.byte() == inAnyGraph
	q.Graph = r.term()
	if loose || q != j.at.Quad {
		j.endStatement()
	}
	if !sameTriple(&q, &j.loose) {
		j.endLoose()
	}
	if loose {
		j.loose = q
		return r.err
	}
	j.at.Quad = q
	if r.byte() == isStatement {
		j.present = true
		return r.err
	}
	a := r.assertion()
	if r.err != nil {
		return r.err
	}
	return j.claim(a)
}

// claim adds an assertion to the current statement. Assertions of one source are adjacent.
func (j *joining) claim(a Assertion) error {
	if n := len(j.at.Assertions); n > 0 && j.at.Assertions[n-1].Source == a.Source {
		if j.at.Assertions[n-1].Equal(&a) {
			return nil
		}
		return kg.Errorf(kg.CodeInvalid, "two descriptions of the assertion by %s of %s differ", a.Source, told(&j.at.Quad))
	}
	if len(j.at.Assertions) == kg.MaxAssertions {
		return kg.Errorf(kg.CodeLimitExceeded, "a statement can have at most %d sources: %s", kg.MaxAssertions, told(&j.at.Quad))
	}
	j.at.Assertions = append(j.at.Assertions, a)
	return nil
}

// endStatement yields the current statement if the document contains it.
func (j *joining) endStatement() {
	if j.at.Subject.IsZero() || j.ended {
		return
	}
	switch loose := sameTriple(&j.at.Quad, &j.loose); {
	case loose || j.present:
		j.placed = j.placed || loose
		j.ended = !j.yield(j.at, nil)
	default:
		j.document.unasserted += uint64(len(j.at.Assertions))
	}
	j.at, j.present = Statement{}, false
}

// endLoose yields the statement of a format without graphs if no assertion determines its
// graph: it then has the graph that the reader assigned.
func (j *joining) endLoose() {
	if !j.loose.Subject.IsZero() && !j.placed && !j.ended {
		j.ended = !j.yield(Statement{Quad: j.loose}, nil)
	}
	j.loose, j.placed = kg.Quad{}, false
}

func sameTriple(a, b *kg.Quad) bool {
	return a.Subject == b.Subject && a.Predicate == b.Predicate && a.Object == b.Object
}

// maxTold is the largest length in bytes of a statement in an error.
const maxTold = 256

func told(q *kg.Quad) string {
	text := q.Subject.String() + " " + q.Predicate.String() + " " + q.Object.String()
	return clip(text)
}
