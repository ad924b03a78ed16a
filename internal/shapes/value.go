package shapes

import (
	"koine/internal/query/valuespace"
	"koine/kg"
)

// compareLiterals orders two literals as SPARQL's < does (SPARQL 1.1, section 17.3). ok is false if
// they are not ordered, as language-tagged strings are not.
func compareLiterals(a, b kg.Term) (c int, ok bool) {
	if !a.IsLiteral() || !b.IsLiteral() || a.Lang() != "" || b.Lang() != "" {
		return 0, false
	}
	c, ok, _ = valuespace.CompareTerms(a, b)
	return c, ok
}
