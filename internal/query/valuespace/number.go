package valuespace

import (
	"cmp"
	"math"
	"math/big"

	"koine/kg"
)

// compareNumbers compares as SPARQL does: two exact numbers digit by digit, others as
// doubles.
func compareNumbers(v, w Value) int {
	if c := cmp.Compare(v.Number, w.Number); c != 0 || !v.Exact || !w.Exact {
		return c
	}
	return kg.CompareDecimals(v.Text, w.Text)
}

// orderNumbers is a total order: NaN first; among equal doubles, exact numbers last.
func orderNumbers(v, w Value) int {
	return cmp.Or(cmp.Compare(v.Number, w.Number), compareBooleans(v.Exact, w.Exact), compareNumbers(v, w))
}

// maxFractionDigits is the largest number of digits for exact sums. Longer numbers are
// summed as float64.
const maxFractionDigits = 400

// Fraction returns the number as a fraction, for sums.
func (v Value) Fraction() *big.Rat {
	if v.Exact && len(v.Text) <= maxFractionDigits {
		if r, ok := new(big.Rat).SetString(v.Text); ok {
			return r
		}
	}
	if math.IsInf(v.Number, 0) || math.IsNaN(v.Number) {
		return new(big.Rat)
	}
	return new(big.Rat).SetFloat64(v.Number)
}
