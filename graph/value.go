package graph

import (
	"koine/internal/query/valuespace"
	"koine/kg"
)

// value is the value that a term denotes.
type value = valuespace.Value

func valueOf(t kg.Term) value { return valuespace.Of(t) }
