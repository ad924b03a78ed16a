package livematch

import "koine/kg"

// Limits bounds a live pattern. A zero field means its default. A commit that needs
// more fails with CodeResync: the client has to read the rows again.
type Limits struct {
	Triples      int // of the pattern, in all its groups
	Rows         int // added and removed by one commit
	Evaluations  int // per commit; beyond it, the pattern is evaluated in full
	Statements   int // read per commit
	SnapshotRows int // in a snapshot, or in a full evaluation
}

// The default limits.
const (
	DefaultTriples      = 16
	DefaultRows         = 10_000
	DefaultEvaluations  = 1_000
	DefaultStatements   = 1_000_000
	DefaultSnapshotRows = 100_000
)

func (l Limits) withDefaults() Limits {
	for _, m := range []struct {
		to    *int
		value int
	}{
		{&l.Triples, DefaultTriples}, {&l.Rows, DefaultRows}, {&l.Evaluations, DefaultEvaluations},
		{&l.Statements, DefaultStatements}, {&l.SnapshotRows, DefaultSnapshotRows},
	} {
		if *m.to <= 0 {
			*m.to = m.value
		}
	}
	return l
}

// tooMuch returns the error for a commit that exceeds the limits.
func tooMuch(format string, args ...any) error {
	e := kg.Errorf(kg.CodeResync, format, args...)
	e.Hint = "Subscribe again from a snapshot."
	return e
}
