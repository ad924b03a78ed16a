package pattern

import "koine/kg"

// Limits bounds a pattern and one evaluation. A zero field means its default.
type Limits struct {
	Triples   int // in all groups
	Texts     int // in all groups
	Steps     int // triples in all groups after path expansion
	Variables int
	Groups    int
	Depth     int // of nested groups
	Terms     int // in one OneOf

	Statements   int64 // statements read
	Rows         int64 // rows that all steps pass on
	Nodes        int   // nodes that one path reaches; 0 is path.DefaultNodes
	BufferedRows int   // rows in memory, for Distinct and Order
}

// The default limits.
const (
	DefaultTriples   = 64
	DefaultTexts     = 4
	DefaultSteps     = 500
	DefaultVariables = 64
	DefaultGroups    = 64
	DefaultDepth     = 8
	DefaultTerms     = 1_000

	DefaultStatements   = 5_000_000
	DefaultRows         = 5_000_000
	DefaultBufferedRows = 500_000
)

func (l Limits) withDefaults() Limits {
	for _, m := range []struct {
		to    *int
		value int
	}{
		{&l.Triples, DefaultTriples}, {&l.Texts, DefaultTexts}, {&l.Steps, DefaultSteps}, {&l.Variables, DefaultVariables}, {&l.Groups, DefaultGroups},
		{&l.Depth, DefaultDepth}, {&l.Terms, DefaultTerms}, {&l.BufferedRows, DefaultBufferedRows},
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

func tooMany(parts string, most int) *kg.Error {
	e := kg.Errorf(kg.CodeLimitExceeded, "a pattern has at most %d %s", most, parts)
	e.Limit = "pattern"
	e.Hint = "Split the pattern into several."
	return e
}

func tooMuchRead(limit, unit string, most int64) *kg.Error {
	e := kg.Errorf(kg.CodeLimitExceeded, "the pattern needs more than %d %s", most, unit)
	e.Limit = limit
	e.Hint = "Add terms to the pattern, or start from a rare predicate; explain shows which step reads most."
	return e
}

func tooManyBuffered(most int) *kg.Error {
	e := kg.Errorf(kg.CodeLimitExceeded, "more than %d rows would have to be held in memory", most)
	e.Limit = "keptRows"
	e.Hint = "Drop distinct and orderBy, or add terms to the pattern."
	return e
}
