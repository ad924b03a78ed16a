package base

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestEveryCodeHasAClass compares the table of classes with the declared codes.
func TestEveryCodeHasAClass(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		declared++
		value := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)
		if _, ok := classes[Code(value)]; !ok {
			t.Errorf("%s has no class: add it to the table in class.go", spec.Names[0].Name)
		}
		return true
	})
	if declared != len(classes) {
		t.Errorf("%d codes are declared and %d have a class", declared, len(classes))
	}
}
