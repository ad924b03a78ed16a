package kg

import "time"

// AgentID names who says or does something, in its canonical form
// ("agent://x" for a bare id x; see CanonicalAgent).
type AgentID string

// Quad is what a statement says: subject, predicate, object, and the graph
// that holds it. The graph is DefaultGraph, an IRI or a blank node; a zero Graph
// in what is handed in means DefaultGraph.
type Quad struct {
	Subject, Predicate, Object, Graph Term
}

// Assertion is one source's backing of a statement. A statement has at most
// one assertion of each source.
type Assertion struct {
	Source AgentID
	// Certainty is 0…1. Without one (HasCertainty false) the assertion is one
	// of fact and counts as 1.
	Certainty    float64
	HasCertainty bool
	// Time is when it was recorded: the commit's time, in UTC, to the
	// millisecond.
	Time time.Time
	// Validity is the span of time in which what it says holds, to the
	// millisecond. The zero span is always: an end that was not given is open.
	Validity TimeSpan
	// Provenance is free JSON about where it comes from, or nil. Not to be
	// changed.
	Provenance []byte
	// Revision is the commit that made this assertion as it is now.
	Revision Revision
}

// EffectiveCertainty is the certainty, or 1 where none was given.
func (a Assertion) EffectiveCertainty() float64 {
	if !a.HasCertainty {
		return 1
	}
	return a.Certainty
}

// Statement is a quad with the assertions that back it, as far as the view
// admits them: at least one. The slice is not to be changed.
type Statement struct {
	Quad
	Assertions []Assertion
}

// Certainty is the greatest certainty among the assertions, and whether any of
// them has one at all.
func (s Statement) Certainty() (certainty float64, known bool) {
	for _, a := range s.Assertions {
		certainty = max(certainty, a.EffectiveCertainty())
		known = known || a.HasCertainty
	}
	return certainty, known
}

// RecordedAt is the newest time among the assertions.
func (s Statement) RecordedAt() time.Time {
	var t time.Time
	for _, a := range s.Assertions {
		if a.Time.After(t) {
			t = a.Time
		}
	}
	return t
}

// Revision is the newest revision among the assertions.
func (s Statement) Revision() Revision {
	var r Revision
	for _, a := range s.Assertions {
		r = max(r, a.Revision)
	}
	return r
}

// Bounds on what backs one statement.
const (
	MaxAssertions      = 128     // sources of one statement
	MaxProvenanceBytes = 4 << 10 // JSON of one assertion
	MaxAgentIDBytes    = 1 << 10
)
