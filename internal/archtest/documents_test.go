package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Documents for contributors name places in the code. The test fails when one of them is
// gone: rename it in the document too.
//
// What is written as code in them is checked as follows; anything else is free text:
//
//   - `kg/commit.go: Store.Update` is a file with a function, method, type, constant or
//     variable that it declares;
//   - `kg/internal/keys/keys.go`, `docs/` are a file or folder of the repository;
//   - `kg.Governor.Admit` is an exported name of the package with that last element, and
//     one of its fields or methods.
var (
	places      = []string{"docs/architecture.md", "CONTRIBUTING.md"}
	inBackticks = regexp.MustCompile("`([^`\n]+)`")
	fileAndName = regexp.MustCompile(`^([\w./-]+\.go): ([\w.]+)$`)
	// Methods of JSON-RPC, such as channels/publish, are no paths.
	filePath     = regexp.MustCompile(`^(cmd|docs|examples|graph|internal|kg|scripts|web)/[\w./-]*$|^[\w./-]+\.(go|md|graphqls|yml|sh)$`)
	exportedName = regexp.MustCompile(`^([a-z]\w*)\.([A-Z]\w*)(?:\.(\w+))?$`)
)

func TestPlacesInDocuments(t *testing.T) {
	t.Chdir("../..")
	known := map[string][]string{}
	declared := func(file string) []string {
		if known[file] == nil {
			known[file] = declarations(t, file)
		}
		return known[file]
	}
	for _, document := range places {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range inBackticks.FindAllStringSubmatch(withoutBlocks(string(text)), -1) {
			code := m[1]
			switch {
			case fileAndName.MatchString(code):
				place := fileAndName.FindStringSubmatch(code)
				found++
				if _, err := os.Stat(place[1]); err != nil {
					t.Errorf("%s names the file %s, which does not exist", document, place[1])
				} else if !slices.Contains(declared(place[1]), place[2]) {
					t.Errorf("%s names %s, which %s does not declare", document, place[2], place[1])
				}
			case filePath.MatchString(code):
				found++
				if _, err := os.Stat(code); err != nil {
					t.Errorf("%s names %s, which does not exist", document, code)
				}
			case exportedName.MatchString(code):
				name := exportedName.FindStringSubmatch(code)
				found++
				if !isPackage(name[1]) {
					continue // a variable, as in server.Handle
				}
				if !exports(declared, name[1], strings.TrimPrefix(code, name[1]+".")) {
					t.Errorf("%s names %s, which no package %s declares", document, code, name[1])
				}
			}
		}
		if found < 10 {
			t.Errorf("%s names %d places, at least 10 expected: the notation may have changed", document, found)
		}
	}
}

// withoutBlocks removes fenced code blocks.
func withoutBlocks(text string) string {
	parts := strings.Split(text, "\n```")
	var kept strings.Builder
	for i := 0; i < len(parts); i += 2 {
		kept.WriteString(parts[i])
	}
	return kept.String()
}

// parents are the folders that packages named in documents stand in.
var parents = []string{"", "internal/", "kg/internal/", "graph/", "a2a/", "internal/dialect/"}

// isPackage reports whether koine has a package with this last element.
func isPackage(name string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool {
		_, err := os.Stat(parent + name)
		return err == nil
	})
}

// exports reports whether a package whose path ends in pkg declares name.
func exports(declared func(file string) []string, pkg, name string) bool {
	for _, parent := range parents {
		files, _ := filepath.Glob(parent + pkg + "/*.go")
		for _, file := range files {
			if slices.Contains(declared(file), name) {
				return true
			}
		}
	}
	return false
}

// declarations lists what a file declares at package level: names, and Type.Name for
// methods and fields.
func declarations(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names = append(names, n.Name)
					}
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
					var members *ast.FieldList
					switch typ := spec.Type.(type) {
					case *ast.StructType:
						members = typ.Fields
					case *ast.InterfaceType:
						members = typ.Methods
					default:
						continue
					}
					for _, m := range members.List {
						for _, n := range m.Names {
							names = append(names, spec.Name.Name+"."+n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// receiver is the name of a method's type.
func receiver(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return receiver(typ.X)
	case *ast.IndexExpr:
		return receiver(typ.X)
	case *ast.Ident:
		return typ.Name
	}
	return ""
}

// The glossary is short enough to be read, and gives each term one meaning.
func TestGlossary(t *testing.T) {
	const maxTerms = 70
	text, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || strings.Trim(cells[1], "- ") == "" || strings.TrimSpace(cells[1]) == "term" {
			continue
		}
		term, meaning := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		if seen[term] {
			t.Errorf("%q has two meanings", term)
		}
		seen[term] = true
		if n := strings.Count(meaning, ". ") + 1; n > 3 || !strings.HasSuffix(meaning, ".") {
			t.Errorf("%q has a meaning of %d sentences, at most 3 wanted: %s", term, n, meaning)
		}
	}
	if n := len(seen); n == 0 || n > maxTerms {
		t.Errorf("the glossary has %d terms, 1 to %d wanted", n, maxTerms)
	}
}
