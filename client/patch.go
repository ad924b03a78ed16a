package client

import (
	"encoding/json"
	"time"
)

// Patch is a change of one statement. Add, Remove and Replace make one; In, Certain,
// From and the other methods give a copy that says more.
type Patch struct {
	Op        string    `json:"op"` // add, remove, replace
	Statement Statement `json:"statement"`

	raw json.RawMessage // in place of all that
}

// RawPatch is a patch that is there as JSON already, as docs/reference/knowledge.md has it. It is
// sent as it is, whatever its fields and methods say.
func RawPatch(patch json.RawMessage) Patch { return Patch{raw: patch} }

// MarshalJSON writes the patch as it is sent.
func (p Patch) MarshalJSON() ([]byte, error) {
	if p.raw != nil {
		return p.raw, nil
	}
	type plain Patch
	return json.Marshal(plain(p))
}

// Statement is a statement with what is said of it.
type Statement struct {
	Subject    Node           `json:"subject"`
	Predicate  Node           `json:"predicate"`
	Object     Node           `json:"object"`
	Graph      string         `json:"graph,omitempty"`
	Certainty  *float64       `json:"certainty,omitempty"`
	Provenance map[string]any `json:"provenance,omitempty"`
	ValidFrom  *time.Time     `json:"validFrom,omitempty"`
	ValidTo    *time.Time     `json:"validTo,omitempty"`
	// Source is who asserts it, of what a server sends in Change.Metadata.Previous.
	// To say whose assertion a patch is there is Patch.From.
	Source string `json:"source,omitempty"`
}

// Node is a resource, which has an ID, or a literal, which has a Value. A value that
// a server sent is a string, a bool, or a json.Number with all its digits.
type Node struct {
	ID       string `json:"id,omitempty"`
	Value    any    `json:"value,omitempty"`
	Type     string `json:"type,omitempty"`     // a datatype ("xsd:date"), or of a resource its class
	Language string `json:"language,omitempty"` // of a text
}

// Resource is a node with an id: an IRI, prefix:name, or any text.
func Resource(id string) Node { return Node{ID: id} }

// Text is a literal text.
func Text(text string) Node { return Node{Value: text} }

// TextIn is a text in a language.
func TextIn(text, language string) Node { return Node{Value: text, Language: language} }

// Value is a literal: a text, a number or a boolean.
func Value(value any) Node { return Node{Value: value} }

// Typed is a literal of a datatype: Typed("2026-01-31", "xsd:date").
func Typed(value any, datatype string) Node { return Node{Value: value, Type: datatype} }

// Add asserts a statement. What the same source said of it before is brought up to
// date.
func Add(subject, predicate string, object Node) Patch {
	return newPatch("add", subject, predicate, object)
}

// Remove removes a statement; with From, only that source's assertion of it.
func Remove(subject, predicate string, object Node) Patch {
	return newPatch("remove", subject, predicate, object)
}

// Replace asserts a statement in the place of all others with its subject, predicate
// and graph.
func Replace(subject, predicate string, object Node) Patch {
	return newPatch("replace", subject, predicate, object)
}

func newPatch(op, subject, predicate string, object Node) Patch {
	return Patch{Op: op, Statement: Statement{Subject: Resource(subject), Predicate: Resource(predicate), Object: object}}
}

// In is the patch in another graph than the default one.
func (p Patch) In(graph string) Patch {
	p.Statement.Graph = graph
	return p
}

// Certain says how certain it is, 0 to 1. Without it is a fact.
func (p Patch) Certain(certainty float64) Patch {
	p.Statement.Certainty = &certainty
	return p
}

// From says whose assertion it is. Without it is the caller's.
func (p Patch) From(agent string) Patch { return p.With("sourceAgentId", agent) }

// With adds a member to the provenance, which is kept as it is sent.
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

// Valid says when it holds: from and until before these times. A zero time leaves
// that end open.
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

// OfClass says what class the subject is of.
func (p Patch) OfClass(class string) Patch {
	p.Statement.Subject.Type = class
	return p
}
