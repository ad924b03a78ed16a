package assertions

import (
	"bytes"

	"koine/kg"
)

// Assertion is an assertion with the justification of its commit.
type Assertion struct {
	kg.Assertion
	Justification string
}

// Equal reports whether two assertions are equal except for the revision, which is specific
// to a store.
func (a *Assertion) Equal(b *Assertion) bool {
	return a.Source == b.Source && a.HasCertainty == b.HasCertainty && a.Certainty == b.Certainty && a.Time.Equal(b.Time) &&
		a.Validity.Equal(b.Validity) && bytes.Equal(a.Provenance, b.Provenance) && a.Justification == b.Justification
}

// Statement is a quad with its assertions. A document may have a statement without
// assertions.
type Statement struct {
	kg.Quad
	Assertions []Assertion
}
