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
	// Certainty is from 0 to 1. Without one (HasCertainty is false) the assertion states a
	// fact and counts as 1.
	Certainty    float64
	HasCertainty bool
	// Time is the commit's time, in UTC and milliseconds.
	Time time.Time
	// Validity is the span of time in which the statement holds, in milliseconds. An end
	// that is zero is open.
	Validity TimeSpan
	// Provenance is any JSON about the origin, or nil. It is read-only.
	Provenance []byte
	// Embedding is a vector that belongs to the assertion, or nil.
	Embedding *Embedding
	// Revision is the commit that last changed the assertion.
	Revision Revision
}

// EffectiveCertainty returns the certainty, or 1 if there is none.
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

// Certainty returns the greatest certainty of the assertions, and whether any of them has
// one.
func (s Statement) Certainty() (certainty float64, known bool) {
	for _, a := range s.Assertions {
		certainty = max(certainty, a.EffectiveCertainty())
		known = known || a.HasCertainty
	}
	return certainty, known
}

// RecordedAt returns the newest time of the assertions.
func (s Statement) RecordedAt() time.Time {
	var t time.Time
	for _, a := range s.Assertions {
		if a.Time.After(t) {
			t = a.Time
		}
	}
	return t
}

// Revision returns the newest revision of the assertions.
func (s Statement) Revision() Revision {
	var r Revision
	for _, a := range s.Assertions {
		r = max(r, a.Revision)
	}
	return r
}

// Bounds on the assertions of a statement.
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

// String returns the name of the operation.
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

// Valid returns an error about the first part of the quad that cannot be stored. check is
// called for each term.
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

// ValidGraph returns an error if the term cannot name a graph or check refuses it.
func ValidGraph(graph Term, check func(Term) error) error {
	if !graph.NamesGraph() {
		return ErrNamesNoGraph()
	}
	if err := check(graph); err != nil {
		return AsError(err).At("graph")
	}
	return nil
}

// ErrNamesNoGraph returns the error about a term that cannot name a graph.
func ErrNamesNoGraph() *Error {
	return Errorf(CodeInvalid, "a graph is named by an IRI or a blank node").At("graph")
}

// ValidPredicateObject is Valid for predicate and object only.
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

// OrderedSeek returns the quad at which a scan in the order of numbers resumes: all quads
// with a lower number sort before it, and so do those with the same number whose subject
// is not after the given one.
func OrderedSeek(p IDPattern, number int64, subject ID) *IDQuad {
	return &IDQuad{Graph: p.Graph, Predicate: p.Predicate, Object: keys.FromInt(keys.TagInteger, number), Subject: subject}
}

// ClippedString returns the quad as text of bounded length, for messages.
func (q Quad) ClippedString() string {
	return Clip(fmt.Sprintf("%s %s %s %s", q.Subject, q.Predicate, q.Object, q.Graph))
}
