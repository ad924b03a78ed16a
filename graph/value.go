package graph

import (
	"koine/internal/valuespace"
	"koine/kg"
)

// value is what a term means.
type value = valuespace.Value

func valueOf(t kg.Term) value { return valuespace.Of(t) }
