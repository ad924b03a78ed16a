package shapes_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"koine/internal/rdf"
	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

// suiteDir is the directory of the tests in a checkout of github.com/w3c/data-shapes
// (data-shapes-test-suite/tests), which is not part of this repository.
const suiteDir = "KOINE_SHACL_SUITE"

// TestSuiteOfW3C proves that all of core gives the expected report, and that the SPARQL
// part, which is not supported, is rejected or reported.
func TestSuiteOfW3C(t *testing.T) {
	dir := os.Getenv(suiteDir)
	if dir == "" {
		t.Skipf("%s is not set: no suite to run", suiteDir)
	}
	passed := map[string]int{}
	for _, part := range []string{"core", "sparql"} {
		files, err := filepath.Glob(filepath.Join(dir, part, "*", "*.ttl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", dir, err)
		}
		for _, name := range files {
			if all := suiteQuads(t, name); len(subjectsOf(all, kg.RDFType, suiteTerm("test", "Validate"))) > 0 {
				t.Run(part+"/"+filepath.Base(name), func(t *testing.T) {
					if judgeSuite(t, name, all, part == "sparql") {
						passed[part]++
					}
				})
			}
		}
	}
	t.Logf("passed: %v", passed)
	if passed["core"] != 98 {
		t.Errorf("%d of 98 tests of core pass", passed["core"])
	}
}

func suiteTerm(space, name string) kg.Term {
	return kg.IRI(map[string]string{
		"test": "http://www.w3.org/ns/shacl-test#", "mf": "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#",
	}[space] + name)
}

func suiteQuads(t *testing.T, name string) (out []kg.Quad) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tag := rdf.DocumentTag([32]byte{byte(len(name))})
	for q, err := range rdf.Read(f, rdf.Turtle, rdf.Options{Base: "http://suite.example" + name, Tag: tag, Graph: kg.DefaultGraph}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, q)
	}
	return out
}

func subjectsOf(quads []kg.Quad, predicate string, object kg.Term) []kg.Term {
	return triplesOf(quads).subjects(kg.IRI(predicate), object)
}

// judgeSuite runs the test of a file. If mayRefuse is set, a rejection is allowed.
func judgeSuite(t *testing.T, name string, all []kg.Quad, mayRefuse bool) bool {
	g := triplesOf(all)
	test := g.subjects(kg.IRI(kg.RDFType), suiteTerm("test", "Validate"))[0]
	action := g.objects(test, suiteTerm("mf", "action"))[0]
	graph := func(which string) []kg.Quad {
		iri := g.objects(action, suiteTerm("test", which))[0].Value()
		return suiteQuads(t, strings.TrimPrefix(iri, "http://suite.example"))
	}
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if _, err := write(t, store, kg.Meta{Principal: admin}, graph("dataGraph"), nil); err != nil {
		t.Fatal(err)
	}
	snapshot, err := store.View(slowtest.Context(t), kg.View{Principal: admin})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	result := g.objects(test, suiteTerm("mf", "result"))[0]
	r, err := shapes.Validate(slowtest.Context(t), snapshot, graph("shapesGraph"), shapes.ReportOptions{Limit: shapes.MaxReported})
	if err != nil {
		if !mayRefuse || kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("%v", err)
			return false
		}
		t.Logf("refused: %v", err)
		return true
	}
	var want, got []string
	for _, x := range g.objects(result, sh("result")) {
		line := ""
		for _, p := range []string{"focusNode", "value", "sourceConstraintComponent", "resultSeverity", "sourceShape"} {
			for _, v := range g.objects(x, sh(p)) {
				line += " " + v.String()
			}
		}
		want = append(want, line)
	}
	for _, f := range r.Findings {
		line := " " + f.Focus.String()
		if !f.Value.IsZero() {
			line += " " + f.Value.String()
		}
		got = append(got, line+" "+kg.IRI(f.Component).String()+" "+f.Severity.String()+" "+f.Source.String())
	}
	slices.Sort(want)
	slices.Sort(got)
	if result == suiteTerm("test", "Failure") || !r.Complete || r.Conforms != (len(want) == 0) || !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		return false
	}
	return true
}
