package assertions

import (
	"bytes"
	"cmp"
	"slices"

	"koine/kg"
)

// Assertion is an assertion with why it was made: the justification of its commit.
type Assertion struct {
	kg.Assertion
	Justification string
}

// Equal tells whether two assertions are the same in all but the revision, which has
// a meaning in their own store only.
func (a *Assertion) Equal(b *Assertion) bool {
	return a.Source == b.Source && a.HasCertainty == b.HasCertainty && a.Certainty == b.Certainty && a.Time.Equal(b.Time) &&
		a.Validity.Equal(b.Validity) && bytes.Equal(a.Provenance, b.Provenance) && a.Justification == b.Justification
}

// Statement is a quad with its assertions. A document may hold one without any: then
// it says no more than a plain document.
type Statement struct {
	kg.Quad
	Assertions []Assertion
}

// bySource puts assertions in the order in which they are compared and shown.
func bySource(list []Assertion) {
	slices.SortFunc(list, func(a, b Assertion) int { return cmp.Compare(a.Source, b.Source) })
}
