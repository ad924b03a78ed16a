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

func (f *finding) export(root *shape, target kg.Term) Finding {
	return Finding{
		Shape: root.id, Target: target, Focus: f.focus, Path: f.path, Value: f.value,
		Source: f.shape.id, Component: sh + f.component, Severity: f.shape.severity, Message: f.message,
	}
}

// String returns the finding in one line, for details and logs.
func (f *Finding) String() string {
	var b strings.Builder
	b.WriteString(clipText(f.Focus.Name()))
	if f.Path != "" {
		fmt.Fprintf(&b, ", %s", clipText(f.Path))
	}
	if !f.Value.IsZero() {
		fmt.Fprintf(&b, ", %s", clipText(formatPrefix(f.Value)))
	}
	fmt.Fprintf(&b, ": %s", clipText(f.Message))
	if f.Shape.Kind() == kg.KindIRI {
		fmt.Fprintf(&b, " (shape %s)", clipText(f.Shape.Value()))
	}
	return b.String()
}

const maxDetailBytes = 200 // largest length in bytes of a node, path, value or message

// formatPrefix returns the term in Turtle syntax, or a prefix that is long enough for clip.
func formatPrefix(t kg.Term) string {
	if t.IsLiteral() && len(t.Value()) > 2*maxDetailBytes {
		t = kg.String(strings.ToValidUTF8(t.Value()[:2*maxDetailBytes], ""))
	}
	return t.String()
}

// clipText truncates a text and puts it on one line.
func clipText(text string) string { return truncateText(text, maxDetailBytes) }

func truncateText(text string, limit int) string {
	if len(text) > 2*limit {
		text = text[:2*limit]
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	return kg.Excerpt(text, limit)
}
