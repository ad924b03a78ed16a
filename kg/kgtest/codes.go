package kgtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"koine/kg"
)

// Codes returns the error codes of package kg, parsed from its source, so that the test of a
// protocol's error table notices a new code. dir is the directory of package kg relative to the
// test.
func Codes(t testing.TB, dir string) (out []kg.Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), dir+"/base/errors.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) != 1 {
			return true
		}
		if text, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, kg.Code(code))
		}
		return true
	})
	if len(out) < 40 {
		t.Fatalf("only %d codes were found", len(out))
	}
	return out
}
