package path

import "koine/kg"

// Bounds of a path's text and of what it asks for.
const (
	MaxBytes      = 4096 // of the text
	MaxNesting    = 32   // of parentheses
	MaxRepetition = 100  // m and n of {m,n}
	MaxSteps      = 255  // with all repetitions written out
)

// Bounds of an evaluation. A zero Options member means its default.
const (
	DefaultNodes      = 200_000   // that one call holds: pairs of a node and a state of the path
	DefaultStatements = 2_000_000 // read or looked for, in all calls on one Bound
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
