package documents

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// keepArgumentTexts gives lists and objects in arguments their text. The
// library's rule for fields with one response name compares the texts of their
// arguments, and parses lists and objects without one: it would let two fields
// with different arguments be merged, and one of them would be lost.
func keepArgumentTexts(doc *ast.QueryDocument) {
	for _, op := range doc.Operations {
		keepTextsOf(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		keepTextsOf(f.SelectionSet)
	}
}

func keepTextsOf(set ast.SelectionSet) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			for _, a := range sel.Arguments {
				if a.Value.Kind == ast.ListValue || a.Value.Kind == ast.ObjectValue {
					a.Value.Raw = argumentText(a.Value)
				}
			}
			keepTextsOf(sel.SelectionSet)
		case *ast.InlineFragment:
			keepTextsOf(sel.SelectionSet)
		}
	}
}

// argumentText returns the text of a value, with the members of objects sorted.
func argumentText(v *ast.Value) string {
	if v.Kind != ast.ListValue && v.Kind != ast.ObjectValue {
		return v.String()
	}
	parts := make([]string, len(v.Children))
	for i, c := range v.Children {
		parts[i] = argumentText(c.Value)
		if v.Kind == ast.ObjectValue {
			parts[i] = c.Name + ":" + parts[i]
		}
	}
	if v.Kind == ast.ListValue {
		return "[" + strings.Join(parts, ",") + "]"
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}
