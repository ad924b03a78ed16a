package shapes

import (
	"fmt"
	"strings"

	"koine/kg"
)

// Finding is a violation of a shape (a sh:ValidationResult).
type Finding struct {
	// Shape is the validated shape, Target its target.
	Shape, Target kg.Term
	// Focus is the focus node: Target, or a node that a nested shape validated.
	Focus kg.Term
	// Path is the path from Focus to the values in SPARQL syntax; "" for Focus itself.
	Path string
	// Value is the violating value; zero if all values together violate the shape.
	Value kg.Term
	// Source is the shape with the constraint. Component is the constraint component,
	// such as sh:MinCountConstraintComponent.
	Source    kg.Term
	Component string
	Severity  kg.Term
	Message   string
}

// Refuses reports whether a finding of this severity rejects an update.
func (f *Finding) Refuses() bool { return f.Severity != Warning && f.Severity != Info }

func (f *finding) public(root *shape, target kg.Term) Finding {
	return Finding{
		Shape: root.id, Target: target, Focus: f.focus, Path: f.path, Value: f.value,
		Source: f.shape.id, Component: sh + f.component, Severity: f.shape.severity, Message: f.message,
	}
}

// String returns the finding in one line, for details and logs.
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

const most = 200 // largest length in bytes of a node, path, value or message

// beginning returns the term in Turtle syntax, or a prefix that is long enough for clip.
func beginning(t kg.Term) string {
	if t.IsLiteral() && len(t.Value()) > 2*most {
		t = kg.String(strings.ToValidUTF8(t.Value()[:2*most], ""))
	}
	return t.String()
}

// clip truncates a text and puts it on one line.
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
