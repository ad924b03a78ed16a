package base

import (
	"fmt"
	"time"

	"koine/kg/internal/keys"
)

// AgentID names an agent in canonical form ("agent://x" for a bare id x; see CanonicalAgent).
type AgentID string

// Quad is the content of a statement: subject, predicate, object, and graph. The graph is
// DefaultGraph, an IRI or a blank node; a zero Graph in arguments means DefaultGraph.
type Quad struct {
	Subject, Predicate, Object, Graph Term
}

// Assertion is the claim of one source that a statement holds. A statement has at most one
// assertion of each source.
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

// Statement is a quad with its visible assertions, at least one. The slice is read-only.
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

// Op is the operation of a patch or a change.
type Op uint8

// The operations (knowledge graph extension, section 3, PatchOperationType).
const (
	// Add asserts the statement for its source, or updates that source's assertion.
	Add Op = iota + 1
	// Remove takes the statement away with all its assertions, or, where the
	// patch names a source, that source's assertion only: the statement lives
	// while another source backs it.
	Remove
	// Replace removes every statement with the same subject, predicate and
	// graph and adds this one.
	Replace
)

func (o Op) String() string {
	switch o {
	case Add:
		return "add"
	case Remove:
		return "remove"
	case Replace:
		return "replace"
	}
	return "none"
}

// Valid reports which part of a quad cannot be stored.
func (q Quad) Valid(check func(Term) error) error {
	switch {
	case !q.Subject.IsResource():
		return Errorf(CodeInvalid, "a subject is an IRI or a blank node").At("subject")
	case !q.Graph.NamesGraph():
		return ErrNamesNoGraph()
	}
	if err := check(q.Subject); err != nil {
		return AsError(err).At("subject")
	}
	if err := q.ValidPredicateObject(check); err != nil {
		return err
	}
	return ValidGraph(q.Graph, check)
}

// ValidGraph refuses a term that names no graph, or that check refuses.
func ValidGraph(graph Term, check func(Term) error) error {
	if !graph.NamesGraph() {
		return ErrNamesNoGraph()
	}
	if err := check(graph); err != nil {
		return AsError(err).At("graph")
	}
	return nil
}

func ErrNamesNoGraph() *Error {
	return Errorf(CodeInvalid, "a graph is named by an IRI or a blank node").At("graph")
}

// ValidPredicateObject is valid of what is said of the subject.
func (q *Quad) ValidPredicateObject(check func(Term) error) error {
	switch {
	case q.Predicate.kind != KindIRI:
		return Errorf(CodeInvalid, "a predicate is an IRI").At("predicate")
	case !q.Object.IsResource() && !q.Object.IsLiteral():
		return Errorf(CodeInvalid, "an object is an IRI, a blank node or a literal").At("object")
	}
	if err := check(q.Predicate); err != nil {
		return AsError(err).At("predicate")
	}
	if err := check(q.Object); err != nil {
		return AsError(err).At("object")
	}
	return nil
}

// OrderedSeek is a quad that all with a lower number come before, and those with this number
// whose subjects are not behind the given one.
func OrderedSeek(p IDPattern, number int64, subject ID) *IDQuad {
	return &IDQuad{Graph: p.Graph, Predicate: p.Predicate, Object: keys.FromInt(keys.TagInteger, number), Subject: subject}
}

func (q Quad) ClippedString() string {
	return Clip(fmt.Sprintf("%s %s %s %s", q.Subject, q.Predicate, q.Object, q.Graph))
}
