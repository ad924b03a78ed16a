package path

import "koine/kg"

// Limits of a path.
const (
	MaxBytes      = 4096 // of the text
	MaxNesting    = 32   // of parentheses
	MaxRepetition = 100  // of m and n in {m,n}
	MaxSteps      = 255  // with all repetitions expanded
)

// Limits of an evaluation. A zero field of Options means its default.
const (
	DefaultNodes      = 200_000   // held by one call: pairs of a node and a state
	DefaultStatements = 2_000_000 // read or looked up by all calls on one Bound
)

func tooManyNodes(most int) error {
	e := kg.Errorf(kg.CodeLimitExceeded, "the path leads to more than %d nodes", most)
	e.Limit = "pathNodes"
	e.Hint = "Bound the repetition ({1,3} in place of + or *), start from fewer entities, or name the predicates."
	return e
}

func tooManyStatements(most int) error {
	e := kg.Errorf(kg.CodeLimitExceeded, "following the path reads more than %d statements", most)
	e.Limit = "reads"
	e.Hint = "Bound the repetition ({1,3} in place of + or *), start from fewer entities, or name the predicates."
	return e
}
