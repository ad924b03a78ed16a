package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Bounds of what a reader has to hold in mind at once.
const (
	maxPackageFiles = 50 // files of a package, without tests and generated code
	maxTypeMethods  = 40 // exported methods of a type, promoted ones included
)

// testStore embeds the store and adds calls for tests.
const testStore = "koine/kg/kgtest.Store"

// source is a package as it is written: its files, and its types by name.
type source struct {
	files int
	types map[string]*declaredType
}

type declaredType struct {
	methods  map[string]bool // exported ones
	embedded []string        // "import path.Name" of embedded types, and of the type behind an alias
}

func TestSizeOfPackages(t *testing.T) {
	sources := parseSources(t)
	for name, p := range sources {
		if p.files > maxPackageFiles {
			t.Errorf("%s has %d files, the limit is %d: divide it where its parts know least of each other", name, p.files, maxPackageFiles)
		}
	}
}

func TestMethodsOfTypes(t *testing.T) {
	sources := parseSources(t)
	most, mostType := 0, ""
	for name, p := range sources {
		for typ := range p.types {
			if !ast.IsExported(typ) || name+"."+typ == testStore {
				continue
			}
			methods := map[string]bool{}
			collectMethods(sources, name+"."+typ, methods, map[string]bool{})
			if len(methods) > most {
				most, mostType = len(methods), name+"."+typ
			}
			if len(methods) > maxTypeMethods {
				t.Errorf("%s.%s has %d exported methods, the limit is %d: %s", name, typ, len(methods), maxTypeMethods,
					strings.Join(slices.Sorted(maps.Keys(methods)), " "))
			}
		}
	}
	if most < 20 {
		t.Errorf("the greatest type is %s with %d methods: the count misses methods", mostType, most)
	}
}

// collectMethods adds the exported methods of a type and of the types that it embeds.
func collectMethods(sources map[string]*source, typ string, into, seen map[string]bool) {
	dot := strings.LastIndexByte(typ, '.')
	p := sources[typ[:dot]]
	if seen[typ] || p == nil || p.types[typ[dot+1:]] == nil {
		return
	}
	seen[typ] = true
	d := p.types[typ[dot+1:]]
	maps.Copy(into, d.methods)
	for _, e := range d.embedded {
		collectMethods(sources, e, into, seen)
	}
}

// parseSources parses the hand-written packages of the module, without tests.
func parseSources(t *testing.T) map[string]*source {
	t.Helper()
	sources := map[string]*source{}
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "third_party" || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		name := path.Join("koine", strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../.."))
		if sources[name] == nil {
			sources[name] = &source{types: map[string]*declaredType{}}
		}
		sources[name].addFile(name, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func (p *source) addFile(name string, f *ast.File) {
	p.files++
	imports := map[string]string{}
	for _, i := range f.Imports {
		imported, _ := strconv.Unquote(i.Path.Value)
		if i.Name != nil {
			imports[i.Name.Name] = imported
		} else {
			imports[path.Base(imported)] = imported
		}
	}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv != nil && decl.Name.IsExported() {
				p.typeNamed(typeName("", nil, decl.Recv.List[0].Type)[1:]).methods[decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range decl.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					p.typeNamed(s.Name.Name).addParts(name, imports, s)
				}
			}
		}
	}
}

func (p *source) typeNamed(name string) *declaredType {
	if p.types[name] == nil {
		p.types[name] = &declaredType{methods: map[string]bool{}}
	}
	return p.types[name]
}

func (d *declaredType) addParts(name string, imports map[string]string, s *ast.TypeSpec) {
	switch typ := s.Type.(type) {
	case *ast.StructType:
		for _, field := range typ.Fields.List {
			if field.Names == nil {
				d.embedded = append(d.embedded, typeName(name, imports, field.Type))
			}
		}
	case *ast.InterfaceType:
		for _, m := range typ.Methods.List {
			if m.Names == nil {
				d.embedded = append(d.embedded, typeName(name, imports, m.Type))
			}
			for _, n := range m.Names {
				if n.IsExported() {
					d.methods[n.Name] = true
				}
			}
		}
	default:
		if s.Assign.IsValid() {
			d.embedded = append(d.embedded, typeName(name, imports, typ))
		}
	}
}

// typeName returns "import path.Name" of a type expression, without pointer and type
// arguments, or "." for one without a name.
func typeName(name string, imports map[string]string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(name, imports, e.X)
	case *ast.IndexExpr:
		return typeName(name, imports, e.X)
	case *ast.IndexListExpr:
		return typeName(name, imports, e.X)
	case *ast.Ident:
		return name + "." + e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return imports[x.Name] + "." + e.Sel.Name
		}
	}
	return "."
}
