package rdf_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/geoknoesis/rdf-go/rdf" // its module carries the suites, see package w3c

	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/internal/w3c"
	"koine/kg"
)

// mended are tests whose results in the module are wrong: they have namespaces that
// Exclusive XML Canonicalization omits. The suite has been corrected since.
var mended = map[string]bool{"xml-canon-test001": true, "xml-canon-test002": true}

// The readers pass the W3C test suites for RDF 1.1, all of them.
func TestW3CSuites(t *testing.T) {
	slowtest.WithoutRace(t)
	const site = "https://w3c.github.io/rdf-tests/rdf/rdf11/"
	for dir, suite := range map[string]struct {
		format rdf.Format
		tests  int
	}{
		"rdf-n-triples": {rdf.NTriples, 70}, "rdf-n-quads": {rdf.NQuads, 87}, "rdf-turtle": {rdf.Turtle, 313}, "rdf-trig": {rdf.TriG, 356}, "rdf-xml": {rdf.RDFXML, 166},
	} {
		t.Run(suite.format.String(), func(t *testing.T) {
			local := filepath.Join(w3c.RDFTests(t), "rdf", "rdf11", dir)
			var tests []w3cEntry
			if suite.format == rdf.Turtle && w3c.Checkout() == "" {
				tests = turtleEntries(t, local, site+dir+"/")
			} else {
				manifest := readFile(t, filepath.Join(local, "manifest.ttl"))
				tests = entries(collect(t, manifest, rdf.Turtle, rdf.Options{Base: site + dir + "/manifest.ttl"}))
			}
			if len(tests) < suite.tests {
				t.Fatalf("the manifest has %d tests, want at least %d", len(tests), suite.tests)
			}
			for _, c := range tests {
				t.Run(c.name, func(t *testing.T) {
					w3cTest(t, c, suite.format, func(iri string) []byte {
						return readFile(t, filepath.Join(local, strings.TrimPrefix(iri, site+dir+"/")))
					})
				})
			}
			t.Logf("%d tests", len(tests))
		})
	}
}

type w3cEntry struct{ name, kind, action, result string }

// entries are those of the manifest's list.
func entries(manifest []kg.Quad) (out []w3cEntry) {
	const mf = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
	bySubject := map[kg.Term]*w3cEntry{}
	listed := map[kg.Term]bool{}
	for _, q := range manifest {
		e := bySubject[q.Subject]
		if e == nil {
			e = &w3cEntry{}
			bySubject[q.Subject] = e
		}
		switch q.Predicate.Value() {
		case kg.RDFType:
			_, e.kind, _ = strings.Cut(q.Object.Value(), "#")
		case kg.RDF + "first":
			listed[q.Object] = true
		case mf + "name":
			e.name = q.Object.Value()
		case mf + "action":
			e.action = q.Object.Value()
		case mf + "result":
			e.result = q.Object.Value()
		}
	}
	for subject, e := range bySubject {
		if listed[subject] {
			out = append(out, *e)
		}
	}
	return out
}

// unlistedTurtle are files of the Turtle suite that its manifest does not name.
var unlistedTurtle = map[string]bool{
	"localName_with_PN_CHARS_BASE_character_boundaries": true, // it names one that holds assigned characters only
	"test-38":                  true, // it spells a character as two surrogates
	"turtle-syntax-pname-dots": true,
}

// turtleEntries lists the module's tests of Turtle, whose manifest was overwritten with
// another file there: by the manifest of 2013, which is in the suite's archive, and the
// newer tests by the names of their files.
func turtleEntries(t *testing.T, local, site string) (out []w3cEntry) {
	t.Helper()
	named := map[string]w3cEntry{}
	for _, e := range entries(collect(t, archived(t, filepath.Join(local, "TESTS.tar.gz"), "manifest.ttl"), rdf.Turtle, rdf.Options{Base: site + "manifest.ttl"})) {
		named[e.action] = e
	}
	files, err := filepath.Glob(filepath.Join(local, "*.ttl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".ttl")
		e, ok := named[site+name+".ttl"]
		if !ok {
			e = w3cEntry{name: name, kind: "TestTurtlePositiveSyntax", action: site + name + ".ttl"}
			if _, err := os.Stat(filepath.Join(local, name+".nt")); err == nil {
				e.kind, e.result = "TestTurtleEval", site+name+".nt"
			} else if strings.Contains(name, "bad") {
				e.kind = "TestTurtleNegativeSyntax"
			}
		}
		if name != "manifest" && !unlistedTurtle[name] {
			out = append(out, e)
		}
	}
	return out
}

// archived is the file of this name in an archive.
func archived(t *testing.T, archive, name string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(readFile(t, archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(z)
	for {
		f, err := files.Next()
		if err != nil {
			t.Fatalf("%s in %s: %v", name, archive, err)
		}
		if path.Base(f.Name) == name {
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
}

func w3cTest(t *testing.T, c w3cEntry, f rdf.Format, open func(iri string) []byte) {
	t.Helper()
	o := rdf.Options{}
	if !f.HasLines() {
		o.Base = c.action
	}
	got, err := read(open(c.action), f, o)
	var complaint string
	switch {
	case strings.Contains(c.kind, "Negative"):
		if err == nil {
			complaint = "is accepted"
		}
	case err != nil:
		complaint = err.Error()
	case strings.HasSuffix(c.kind, "Eval"):
		want := collect(t, open(c.result), rdf.NQuads, rdf.Options{})
		if !isomorphic(got, want) {
			complaint = "gives another graph"
		}
	}
	if w3c.Checkout() == "" && mended[c.name] {
		if complaint != "gives another graph" {
			t.Errorf("a test with a wrong result: %q", complaint)
		}
		return
	}
	if complaint != "" {
		t.Errorf("%s: %s", c.kind, complaint)
	}
}

// jsonldDeviations are the tests of the suite for JSON-LD to RDF that koine
// answers otherwise, on purpose: a statement that cannot be kept is an error,
// where the specification leaves it out.
var jsonldDeviations = map[string]string{
	"#te003": "nothing of the document is RDF, which is an error rather than an import of nothing",
	"#te060": "the IRI of a type is relative, and @base is null",
	"#te068": "a predicate is a blank node",
	"#te111": "an IRI has two fragments",
	"#te112": "an IRI has two fragments",
	"#tli12": "an IRI holds <>",
	"#tli14": "an IRI is relative, and @base is null",
	"#twf01": "an IRI holds a space",
	"#twf02": "an IRI holds a space",
	"#twf03": "an IRI holds a space",
	"#twf04": "an IRI holds a space",
	"#twf05": "a language tag holds a space",
	"#twf07": "an IRI holds a space",
}

type jsonldEntry struct {
	ID     string   `json:"@id"`
	Type   []string `json:"@type"`
	Input  string   `json:"input"`
	Expect string   `json:"expect"`
	Option struct {
		SpecVersion string `json:"specVersion"`
		Mode        string `json:"processingMode"`
		Base        string `json:"base"`
		Generalized bool   `json:"produceGeneralizedRdf"`
		Direction   string `json:"rdfDirection"`
		Context     string `json:"expandContext"`
	} `json:"option"`
}

// JSON-LD documents give the results of the W3C suite, except for the deviations. With
// ContinueOnError they do, except for those that are more than a statement that cannot be
// stored.
func TestW3CJSONLD(t *testing.T) {
	slowtest.WithoutRace(t)
	local := w3c.JSONLD(t)
	var manifest struct {
		BaseIRI  string        `json:"baseIri"`
		Sequence []jsonldEntry `json:"sequence"`
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(local, "toRdf-manifest.jsonld")), &manifest); err != nil {
		t.Fatal(err)
	}
	contexts := jsonldContexts(t, local, manifest.BaseIRI)
	applicable, passed, skipping := 0, 0, 0
	for _, c := range manifest.Sequence {
		if o := c.Option; o.SpecVersion == "json-ld-1.0" || o.Mode == "json-ld-1.0" || o.Generalized {
			continue // JSON-LD 1.0, and statements that are no RDF
		}
		o := rdf.Options{Base: manifest.BaseIRI + c.Input, JSONLD: rdf.JSONLDOptions{Contexts: contexts, Direction: c.Option.Direction}}
		if c.Option.Base != "" {
			o.Base = c.Option.Base
		}
		if c.Option.Context != "" {
			o.JSONLD.Context = manifest.BaseIRI + c.Option.Context
		}
		applicable++
		complaint := jsonldTest(t, local, c, o)
		if complaint == "" {
			passed++
		}
		if reason := jsonldDeviations[c.ID]; (complaint != "") != (reason != "") {
			t.Errorf("%s %v: %s; known deviation: %q", c.ID, c.Type, complaint, reason)
		}
		o.ContinueOnError = true
		if complaint := jsonldTest(t, local, c, o); complaint == "" {
			skipping++
		}
	}
	t.Logf("%d tests apply, %d pass, %d with ContinueOnError", applicable, passed, skipping)
	if applicable < 440 || passed < applicable-len(jsonldDeviations) {
		t.Errorf("only %d of %d tests pass", passed, applicable)
	}
}

// jsonldContexts are the documents of the suite that others have contexts from.
func jsonldContexts(t *testing.T, local, base string) *rdf.JSONLDContexts {
	t.Helper()
	contexts := &rdf.JSONLDContexts{}
	err := filepath.WalkDir(filepath.Join(local, "toRdf"), func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".jsonld") {
			// Most files are documents, and not all of those can be contexts.
			_ = contexts.Add(base+strings.TrimPrefix(filepath.ToSlash(file), filepath.ToSlash(local)+"/"), readFile(t, file))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return contexts
}

func jsonldTest(t *testing.T, local string, c jsonldEntry, o rdf.Options) (complaint string) {
	t.Helper()
	got, err := read(readFile(t, filepath.Join(local, c.Input)), rdf.JSONLD, o)
	switch {
	case strings.Contains(strings.Join(c.Type, " "), "Negative"):
		if err == nil {
			return "is accepted"
		}
		return ""
	case err != nil:
		return err.Error()
	case c.Expect == "":
		return ""
	}
	want, err := read(readFile(t, filepath.Join(local, c.Expect)), rdf.NQuads, rdf.Options{})
	if err != nil {
		return "the expected statements cannot be read: " + err.Error()
	}
	if !isomorphic(got, want) {
		return "gives another graph"
	}
	return ""
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
