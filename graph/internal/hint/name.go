package hint

import (
	"errors"
	"regexp"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/graph/internal/fault"
	"koine/internal/suggest"
)

// unknownName finds the unknown name in a validation message.
var unknownName = regexp.MustCompile(`^(?:Variable "\$|Unknown fragment "|Unknown type ")(\w+)`)

// AddNames adds similar names to validation errors about unknown variables,
// fragments and types. For fields, arguments and enums the library does it.
func AddNames(schema *ast.Schema, doc *ast.QueryDocument, err *gqlerror.Error) {
	found := unknownName.FindStringSubmatch(err.Message)
	if found == nil {
		return
	}
	var names []string
	prefix := ""
	switch err.Rule {
	case "NoUndefinedVariables":
		prefix = "$"
		for _, op := range doc.Operations {
			for _, v := range op.VariableDefinitions {
				names = append(names, v.Variable)
			}
		}
	case "KnownFragmentNames":
		for _, f := range doc.Fragments {
			names = append(names, f.Name)
		}
	case "KnownTypeNames":
		for name := range schema.Types {
			names = append(names, name)
		}
	}
	if near := suggest.Name(found[1], names); near != "" {
		fault.SetExtension(err, "hint", "Did you mean "+prefix+near+"?")
	}
}

// hintMember adds a similar name to an error about an unknown member of a
// variable. path begins with the variable.
func hintMember(schema *ast.Schema, op *ast.OperationDefinition, path ast.Path, err *gqlerror.Error) {
	first, _ := path[0].(ast.PathName)
	v := op.VariableDefinitions.ForName(string(first))
	if v == nil || len(path) < 2 {
		return
	}
	kind := schema.Types[v.Type.Name()]
	for _, step := range path[1 : len(path)-1] {
		name, ok := step.(ast.PathName)
		if !ok || kind == nil {
			continue // an element of a list
		}
		f := kind.Fields.ForName(string(name))
		if f == nil {
			return
		}
		kind = schema.Types[f.Type.Name()]
	}
	name, ok := path[len(path)-1].(ast.PathName)
	if !ok || kind == nil {
		return
	}
	var names []string
	for _, f := range kind.Fields {
		names = append(names, f.Name)
	}
	if near := suggest.Name(string(name), names); near != "" {
		fault.SetExtension(err, "hint", "Did you mean "+near+"?")
		return
	}
	h := &formHinter{schema: schema}
	if text := h.formOfMember(kind, string(name), nil); text != "" {
		fault.SetExtension(err, "hint", text)
	}
}

// VariableError names the variable that could not be coerced. The library puts
// it into the path, which is meant for fields of the answer.
func VariableError(schema *ast.Schema, op *ast.OperationDefinition, err error) error {
	var g *gqlerror.Error
	if !errors.As(err, &g) || len(g.Path) < 2 {
		return err
	}
	field := "$" + g.Path[1:].String()
	out := &gqlerror.Error{Message: "variable " + field + " " + g.Message, Err: g.Err}
	fault.SetExtension(out, "code", errcode.ValidationFailed)
	fault.SetExtension(out, "field", field)
	if g.Message == "unknown field" {
		hintMember(schema, op, g.Path[1:], out)
	}
	return out
}
