package pattern

import "koine/kg"

// Limits of a pattern and of one evaluation. A zero member means its default.
type Limits struct {
	Triples   int // of all groups together
	Steps     int // triples of all groups together when paths are written out
	Variables int
	Groups    int
	Depth     int // of groups in groups
	Terms     int // of one OneOf

	Statements int64 // that are read
	Rows       int64 // that joins make on the way, and at the end
	Nodes      int   // that one path leads to; 0 is path.DefaultNodes
	Kept       int   // rows in memory, for Distinct and Order
}

// The defaults of Limits.
const (
	DefaultTriples   = 64
	DefaultSteps     = 500
	DefaultVariables = 64
	DefaultGroups    = 64
	DefaultDepth     = 8
	DefaultTerms     = 1_000

	DefaultStatements = 5_000_000
	DefaultRows       = 5_000_000
	DefaultKept       = 500_000
)

func (l Limits) withDefaults() Limits {
	for _, m := range []struct {
		to    *int
		value int
	}{
		{&l.Triples, DefaultTriples}, {&l.Steps, DefaultSteps}, {&l.Variables, DefaultVariables}, {&l.Groups, DefaultGroups},
		{&l.Depth, DefaultDepth}, {&l.Terms, DefaultTerms}, {&l.Kept, DefaultKept},
	} {
		if *m.to <= 0 {
			*m.to = m.value
		}
	}
	if l.Statements <= 0 {
		l.Statements = DefaultStatements
	}
	if l.Rows <= 0 {
		l.Rows = DefaultRows
	}
	return l
}

func tooMany(what string, most int) *kg.Error {
	e := kg.Errorf(kg.CodeLimitExceeded, "a pattern has at most %d %s", most, what)
	e.Limit = "pattern"
	e.Hint = "Ask in several patterns."
	return e
}

func tooMuchRead(limit, what string, most int64) *kg.Error {
	e := kg.Errorf(kg.CodeLimitExceeded, "the pattern needs more than %d %s", most, what)
	e.Limit = limit
	e.Hint = "Name more terms, or begin with what is rare; explain shows which step reads so much."
	return e
}

func tooManyKept(most int) *kg.Error {
	e := kg.Errorf(kg.CodeLimitExceeded, "more than %d rows would have to be held in memory", most)
	e.Limit = "keptRows"
	e.Hint = "Leave distinct and the order out, or name more terms."
	return e
}
