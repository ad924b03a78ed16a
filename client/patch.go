package client

import (
	"encoding/json"
	"time"
)

// Patch is a request to add, remove or replace one statement. Add, Remove and Replace make
// a patch; In, Certain, From and the other methods return a modified copy.
type Patch struct {
	Op        string    `json:"op"` // add, remove, replace
	Statement Statement `json:"statement"`

	raw json.RawMessage // if set, sent instead of the fields above
}

// RawPatch returns a patch that is sent as the given JSON (docs/reference/knowledge.md).
// Its fields and methods have no effect.
func RawPatch(patch json.RawMessage) Patch { return Patch{raw: patch} }

// MarshalJSON encodes the patch for the wire.
func (p Patch) MarshalJSON() ([]byte, error) {
	if p.raw != nil {
		return p.raw, nil
	}
	type plain Patch
	return json.Marshal(plain(p))
}

// Statement is a statement with certainty, validity and provenance of an assertion.
type Statement struct {
	Subject    Node           `json:"subject"`
	Predicate  Node           `json:"predicate"`
	Object     Node           `json:"object"`
	Graph      string         `json:"graph,omitempty"`
	Certainty  *float64       `json:"certainty,omitempty"`
	Provenance map[string]any `json:"provenance,omitempty"`
	ValidFrom  *time.Time     `json:"validFrom,omitempty"`
	ValidTo    *time.Time     `json:"validTo,omitempty"`
	// Source is the source of the assertion. Servers send it in ChangeMetadata.Previous.
	// Patches set their source with Patch.From.
	Source string `json:"source,omitempty"`
}

// Node is a resource, which has an ID, or a literal, which has a Value. A value received
// from a server is a string, a bool, or a json.Number with all its digits.
type Node struct {
	ID       string `json:"id,omitempty"`
	Value    any    `json:"value,omitempty"`
	Type     string `json:"type,omitempty"`     // the datatype of a literal ("xsd:date"), or the class of a resource
	Language string `json:"language,omitempty"` // the language tag of a text
}

// Resource returns a resource with the given id: an IRI, prefix:name, or other text.
func Resource(id string) Node { return Node{ID: id} }

// Text returns a string literal.
func Text(text string) Node { return Node{Value: text} }

// TextIn returns a string literal with a language tag.
func TextIn(text, language string) Node { return Node{Value: text, Language: language} }

// Value returns a literal: a string, a number or a boolean.
func Value(value any) Node { return Node{Value: value} }

// Typed returns a literal of a datatype: Typed("2026-01-31", "xsd:date").
func Typed(value any, datatype string) Node { return Node{Value: value, Type: datatype} }

// Add returns a patch that asserts a statement. It updates an earlier assertion of the
// same source.
func Add(subject, predicate string, object Node) Patch {
	return newPatch("add", subject, predicate, object)
}

// Remove returns a patch that removes a statement or, with From, only the assertion of
// that source.
func Remove(subject, predicate string, object Node) Patch {
	return newPatch("remove", subject, predicate, object)
}

// Replace returns a patch that asserts a statement and removes all others with the same
// subject, predicate and graph.
func Replace(subject, predicate string, object Node) Patch {
	return newPatch("replace", subject, predicate, object)
}

func newPatch(op, subject, predicate string, object Node) Patch {
	return Patch{Op: op, Statement: Statement{Subject: Resource(subject), Predicate: Resource(predicate), Object: object}}
}

// In returns the patch for a graph other than the default graph.
func (p Patch) In(graph string) Patch {
	p.Statement.Graph = graph
	return p
}

// Certain returns the patch with a certainty from 0 to 1. Without a certainty the patch
// asserts a fact.
func (p Patch) Certain(certainty float64) Patch {
	p.Statement.Certainty = &certainty
	return p
}

// From returns the patch with a source. The default source is the caller.
func (p Patch) From(agent string) Patch { return p.With("sourceAgentId", agent) }

// With returns the patch with a member added to its provenance, which the server stores
// as it is.
func (p Patch) With(name string, value any) Patch {
	provenance := map[string]any{name: value}
	for n, v := range p.Statement.Provenance {
		if n != name {
			provenance[n] = v
		}
	}
	p.Statement.Provenance = provenance
	return p
}

// Valid returns the patch with a period of validity, from inclusive and to exclusive. A
// zero time leaves that end open.
func (p Patch) Valid(from, to time.Time) Patch {
	p.Statement.ValidFrom, p.Statement.ValidTo = nil, nil
	if !from.IsZero() {
		p.Statement.ValidFrom = &from
	}
	if !to.IsZero() {
		p.Statement.ValidTo = &to
	}
	return p
}

// OfClass returns the patch with a class for its subject.
func (p Patch) OfClass(class string) Patch {
	p.Statement.Subject.Type = class
	return p
}
