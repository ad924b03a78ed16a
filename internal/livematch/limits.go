package livematch

import "koine/kg"

// Limits of a live pattern. A zero member means its default. What a commit would
// need beyond them is CodeResync: the rows have to be read anew.
type Limits struct {
	Triples     int // of the pattern, all its groups together
	Rows        int // that come and go with one commit
	Evaluations int // of the pattern under bindings, for one commit; beyond it is evaluated in full
	Statements  int // read for one commit
	Standing    int // rows that stand, in a snapshot or where all is evaluated
}

// The defaults of Limits.
const (
	DefaultTriples     = 16
	DefaultRows        = 10_000
	DefaultEvaluations = 1_000
	DefaultStatements  = 1_000_000
	DefaultStanding    = 100_000
)

func (l Limits) withDefaults() Limits {
	for _, m := range []struct {
		to    *int
		value int
	}{
		{&l.Triples, DefaultTriples}, {&l.Rows, DefaultRows}, {&l.Evaluations, DefaultEvaluations},
		{&l.Statements, DefaultStatements}, {&l.Standing, DefaultStanding},
	} {
		if *m.to <= 0 {
			*m.to = m.value
		}
	}
	return l
}

// tooMuch says that a commit's rows cannot be told.
func tooMuch(format string, args ...any) error {
	e := kg.Errorf(kg.CodeResync, format, args...)
	e.Hint = "Start from a snapshot."
	return e
}
