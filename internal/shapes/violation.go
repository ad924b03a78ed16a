package shapes

import (
	"fmt"
	"strings"

	"koine/kg"
)

// Finding is a value that violates a shape (a sh:ValidationResult).
type Finding struct {
	// Shape is the one whose target Target is, by which it was found.
	Shape, Target kg.Term
	// Focus is what was looked at: Target, or what a nested shape came to.
	Focus kg.Term
	// Path from Focus to the values, in SPARQL's notation; "" for Focus itself.
	Path string
	// Value is what is wrong; zero where it is all the values together.
	Value kg.Term
	// Source is the shape with the constraint; Component names it, as in
	// sh:MinCountConstraintComponent.
	Source    kg.Term
	Component string
	Severity  kg.Term
	Message   string
}

// Refuses tells whether a finding of this severity refuses an update.
func (f *Finding) Refuses() bool { return f.Severity != Warning && f.Severity != Info }

func (f *finding) public(root *shape, target kg.Term) Finding {
	return Finding{
		Shape: root.id, Target: target, Focus: f.focus, Path: f.path, Value: f.value,
		Source: f.shape.id, Component: sh + f.component, Severity: f.shape.severity, Message: f.message,
	}
}

// String is the finding in one line, for details and logs.
func (f *Finding) String() string {
	var b strings.Builder
	b.WriteString(clip(f.Focus.Name()))
	if f.Path != "" {
		fmt.Fprintf(&b, ", %s", clip(f.Path))
	}
	if !f.Value.IsZero() {
		fmt.Fprintf(&b, ", %s", clip(beginning(f.Value)))
	}
	fmt.Fprintf(&b, ": %s", clip(f.Message))
	if f.Shape.Kind() == kg.KindIRI {
		fmt.Fprintf(&b, " (shape %s)", clip(f.Shape.Value()))
	}
	return b.String()
}

const most = 200 // bytes of what is told of a node, a path, a value or a message

// beginning is how a term is written, or the beginning of that where clip cuts it.
func beginning(t kg.Term) string {
	if t.IsLiteral() && len(t.Value()) > 2*most {
		t = kg.String(strings.ToValidUTF8(t.Value()[:2*most], ""))
	}
	return t.String()
}

// clip shortens what may be long, and keeps it on one line.
func clip(text string) string { return clipTo(text, most) }

func clipTo(text string, most int) string {
	if len(text) > 2*most {
		text = text[:2*most]
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
