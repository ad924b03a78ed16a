package rdf_test

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"koine/internal/rdf"
	"koine/kg"
)

// Input that is not a document is refused, with the place of the fault.
func TestWhatIsRefused(t *testing.T) {
	const ok = "<urn:s> <urn:p> <urn:o> .\n"
	for _, c := range []struct {
		name   string
		f      rdf.Format
		text   string
		line   int
		says   string
		before int // quads before the error
	}{
		{"words", rdf.NQuads, ok + "hello world\n", 2, "expected a subject", 1},
		{"relative IRI", rdf.NQuads, ok + "<s> <urn:p> <urn:o> .\n", 2, "not an absolute IRI", 1},
		{"no dot", rdf.NQuads, ok + ok + "<urn:s> <urn:p> <urn:o>\n", 3, "dot", 2},
		{"after the dot", rdf.NQuads, "<urn:s> <urn:p> <urn:o> . x\n", 1, "expected the end of the line", 0},
		{"open literal", rdf.NTriples, "<urn:s> <urn:p> \"x .\n", 1, "is not terminated", 0},
		{"open escape", rdf.NTriples, `<urn:s> <urn:p> "x\" .` + "\n", 1, "is not terminated", 0},
		{"unknown escape", rdf.NTriples, `<urn:s> <urn:p> "\x" .`, 1, "not an escape", 0},
		{"surrogate", rdf.NTriples, `<urn:s> <urn:p> "\uD800" .`, 1, "not a character", 0},
		{"beyond Unicode", rdf.NTriples, `<urn:s> <urn:p> "\U00110000" .`, 1, "not a character", 0},
		{"not UTF-8", rdf.NQuads, "<urn:s> <urn:p> \"\xff\" .\n", 1, "UTF-8", 0},
		{"IRI not UTF-8", rdf.NQuads, "<urn:\xff> <urn:p> \"\" .\n", 1, "UTF-8", 0},
		{"space in an IRI", rdf.NQuads, "<urn:a b> <urn:p> \"\" .\n", 1, "holds the character", 0},
		{"escaped space in an IRI", rdf.NQuads, `<urn:a\u0020b> <urn:p> "" .`, 1, "holds the character", 0},
		{"literal subject", rdf.NQuads, `"s" <urn:p> "" .`, 1, "a subject", 0},
		{"blank predicate", rdf.NQuads, `<urn:s> _:p "" .`, 1, "a predicate", 0},
		{"literal graph", rdf.NQuads, `<urn:s> <urn:p> "" "g" .`, 1, "a graph's name", 0},
		{"collection as a graph", rdf.TriG, "GRAPH (1) { <urn:s> a <urn:T> }", 1, "the name of a graph", 0},
		{"filled brackets as a graph", rdf.TriG, "GRAPH [ a <urn:T> ] { <urn:s> a <urn:T> }", 1, "that name a graph are empty", 1},
		{"graph in N-Triples", rdf.NTriples, `<urn:s> <urn:p> "" <urn:g> .`, 1, "dot", 0},
		{"language tag", rdf.NQuads, `<urn:s> <urn:p> "x"@ .`, 1, "language tag", 0},
		{"langString without one", rdf.NQuads, `<urn:s> <urn:p> "x"^^<` + kg.RDFLangString + `> .`, 1, "needs a language", 0},
		{"carriage return in a literal", rdf.NQuads, "<urn:s> <urn:p> \"a\rb\" .\n", 1, "line break", 0},
		{"undeclared prefix", rdf.Turtle, "@prefix a: <urn:a:> .\n\na:s a:p b:o .\n", 3, `"b" is not declared`, 0},
		{"relative without base", rdf.Turtle, "\n<s> a <urn:T> .", 2, "no base", 0},
		{"graph block in Turtle", rdf.Turtle, "<urn:g> { <urn:s> a <urn:T> }", 1, "a predicate", 0},
		{"nested graph", rdf.TriG, "<urn:g> {\n <urn:h> { <urn:s> a <urn:T> } }", 2, "a predicate", 0},
		{"open graph", rdf.TriG, "<urn:g> {\n <urn:s> a <urn:T> .\n", 3, "end of the document", 1},
		{"open long literal", rdf.Turtle, "<urn:s> a \"\"\"x\n\n\n", 4, "begins in line 1", 0},
		{"literal over a line", rdf.Turtle, "<urn:s> <urn:p> \"x\ny\" .", 1, "three quotes", 0},
		{"quoted triple", rdf.Turtle, "<< <urn:s> <urn:p> <urn:o> >> <urn:p> 1 .", 1, "not supported", 0},
		{"bad number", rdf.Turtle, "<urn:s> <urn:p> 1x .", 1, "end of a number", 0},
		{"sign alone", rdf.Turtle, "<urn:s> <urn:p> + .", 1, "a number", 0},
		{"deep brackets", rdf.Turtle, "<urn:s> <urn:p> " + strings.Repeat("[ <urn:p> ", rdf.MaxDepth+1), 1, "nested more than", 0},
		{"deep lists", rdf.Turtle, "<urn:s> <urn:p> " + strings.Repeat("(", rdf.MaxDepth+1), 1, "nested more than", 0},
		{"not JSON", rdf.JSONLD, "{\n\"a\": }", 2, "not JSON", 0},
		{"no JSON at all", rdf.JSONLD, "", 1, "not JSON", 0},
		{"two documents", rdf.JSONLD, "{}\n{}", 2, "unexpected text behind", 0},
		{"a JSON string", rdf.JSONLD, `"x"`, 1, "object or an array", 0},
		{"deep JSON", rdf.JSONLD, strings.Repeat("[", rdf.MaxDepth+2) + strings.Repeat("]", rdf.MaxDepth+2), 1, "nested more than", 0},
		{"remote context", rdf.JSONLD, `{"@context":"https://schema.org/","@id":"urn:s","name":"x"}`, 1, "never fetched", 0},
		{"remote import", rdf.JSONLD, `{"@context":{"@import":"https://x.example/c"},"@id":"urn:s"}`, 1, "never fetched", 0},
		{"term without a meaning", rdf.JSONLD, `{"@id":"urn:s","name":"x"}`, 1, "at /name: the key \"name\" means no IRI", 0},
		{"integer that would be rounded", rdf.JSONLD, `{"@id":"urn:s","urn:p":9007199254740993}`, 1, "at /urn:p: JSON-LD rounds", 0},
		{"JSON not UTF-8", rdf.JSONLD, "{\"@id\":\"urn:s\",\"urn:p\":\"\xff\"}", 1, "UTF-8", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			quads, err := read([]byte(c.text), c.f, rdf.Options{Name: "doc"})
			var syntax *rdf.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got error %v after %d quads", err, len(quads))
			}
			if syntax.Line != c.line || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "doc:") {
				t.Errorf("got %q, line %d; want %q in line %d", err, syntax.Line, c.says, c.line)
			}
			if len(quads) != c.before {
				t.Errorf("got %d quads before the error, want %d", len(quads), c.before)
			}
			if code := kg.CodeOf(err); code != kg.CodeInvalid && code != kg.CodeLimitExceeded {
				t.Errorf("got code %s", code)
			}
		})
	}
}

// Allowed input that is often read wrongly.
func TestWhatIsRead(t *testing.T) {
	s, p, def := kg.IRI("urn:s"), kg.IRI("urn:p"), kg.DefaultGraph
	one := func(o kg.Term) []kg.Quad { return []kg.Quad{{Subject: s, Predicate: p, Object: o, Graph: def}} }
	for _, c := range []struct {
		name string
		f    rdf.Format
		text string
		want []kg.Quad
	}{
		{"nothing", rdf.Turtle, "# only a comment", nil},
		{"byte order mark", rdf.Turtle, "\ufeff<urn:s> <urn:p> 1 .", one(kg.Integer(1))},
		{"no line break at the end", rdf.NQuads, "<urn:s> <urn:p> <urn:o> .", one(kg.IRI("urn:o"))},
		{"Windows line breaks", rdf.NQuads, "<urn:s> <urn:p> <urn:o> .\r\n\r\n", one(kg.IRI("urn:o"))},
		{"no white space", rdf.NQuads, "<urn:s><urn:p>\"x\"@EN-gb.#c", one(kg.LangString("x", "en-gb"))},
		{"line breaks in a long literal", rdf.Turtle, "<urn:s> <urn:p> \"\"\"one\n  two # no comment\n\"quoted\"\n\"\"\" .", nil},
		{"escapes in an IRI", rdf.Turtle, `<urn:s> <urn:p> <urn:\u00e9> .`, one(kg.IRI("urn:é"))},
		{"escapes in a name", rdf.Turtle, `PREFIX : <urn:> :s :p :a\,b\.c%20. `, one(kg.IRI("urn:a,b.c%20"))},
		{"two statements in a line", rdf.Turtle, "<urn:s> <urn:p> 1 . <urn:s> <urn:p> 1 .", append(one(kg.Integer(1)), one(kg.Integer(1))...)},
		{"dot behind an integer", rdf.Turtle, "<urn:s> <urn:p> 1.", one(kg.Integer(1))},
		{"decimal", rdf.Turtle, "<urn:s> <urn:p> -0.50.", one(kg.Typed("-0.50", kg.XSDDecimal))},
		{"double", rdf.Turtle, "<urn:s> <urn:p> 1.e+3 .", one(kg.Typed("1.e+3", kg.XSDDouble))},
		{"true", rdf.Turtle, "<urn:s> <urn:p> true.", one(kg.Boolean(true))},
		{"keyword as a prefix", rdf.TriG, "prefix graph: <urn:> graph:s graph:p graph:base . ", one(kg.IRI("urn:base"))},
		{"base", rdf.Turtle, "@base <http://x.example/a/b?q> . <urn:s> <urn:p> <../c> .", one(kg.IRI("http://x.example/c"))},
		{"default graph in braces", rdf.TriG, "{ <urn:s> <urn:p> 1 }", one(kg.Integer(1))},
		{"typed term", rdf.JSONLD, `{"@context":{"p":{"@id":"urn:p","@type":"@id"}},"@id":"urn:s","p":"urn:o"}`, one(kg.IRI("urn:o"))},
		{"number", rdf.JSONLD, `{"@id":"urn:s","urn:p":5}`, one(kg.Integer(5))},
		{"text of type rdf:JSON", rdf.JSONLD, `{"@id":"urn:s","urn:p":{"@type":"` + kg.RDF + `JSON","@value":"{ }"}}`, one(kg.Typed("{ }", kg.RDF+"JSON"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == nil && c.name != "nothing" {
				c.want = one(kg.String("one\n  two # no comment\n\"quoted\"\n"))
			}
			if got := collect(t, []byte(c.text), c.f, rdf.Options{}); !isomorphic(got, c.want) || len(got) != len(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAGraphOfOnesOwn(t *testing.T) {
	g := kg.IRI("urn:mine")
	for f, text := range map[rdf.Format]string{
		rdf.NQuads: "<urn:s> <urn:p> 'x' .", rdf.TriG: "<urn:s> <urn:p> 'x' . <urn:h> { <urn:s> <urn:p> 'x' }",
		rdf.JSONLD: `{"@id":"urn:s","urn:p":"x"}`,
	} {
		text = strings.ReplaceAll(text, "'", `"`)
		quads := collect(t, []byte(text), f, rdf.Options{Graph: g})
		if quads[0].Graph != g {
			t.Errorf("%s: the statement went to %s", f, quads[0].Graph)
		}
		if f == rdf.TriG && quads[1].Graph != kg.IRI("urn:h") {
			t.Errorf("%s: a named graph became %s", f, quads[1].Graph)
		}
	}
	if _, err := read(nil, rdf.NQuads, rdf.Options{Graph: kg.String("g")}); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("a literal as the graph: %v", err)
	}
}

// Bad lines are skipped and reported when asked for; long ones too.
func TestContinueOnError(t *testing.T) {
	const ok = "<urn:s> <urn:p> <urn:o> .\n"
	long := "<urn:s> <urn:p> \"" + strings.Repeat("x", rdf.Options{}.LineBytes()+1<<20) + "\" .\n"
	text := ok + "bad\n" + ok + long + ok + "<urn:s> <urn:p> \"" + strings.Repeat("x", kg.DefaultLiteralBytes+1) + "\" .\n" + ok
	var lines []int
	quads, err := read([]byte(text), rdf.NQuads, rdf.Options{ContinueOnError: true, Rejected: func(e *rdf.SyntaxError) { lines = append(lines, e.Line) }})
	if err != nil || len(quads) != 4 || len(lines) != 3 || lines[0] != 2 || lines[1] != 4 || lines[2] != 6 {
		t.Errorf("got %d quads, rejected lines %v, error %v", len(quads), lines, err)
	}
}

// A line at the bound is read, one past it is not.
func TestLineBound(t *testing.T) {
	const head = "<urn:s> <urn:p> <urn:o> . #"
	limit := rdf.Options{}.LineBytes()
	for _, size := range []int{limit, limit + 1} {
		_, err := read([]byte(head+strings.Repeat("c", size-len(head))+"\n"), rdf.NQuads, rdf.Options{})
		if (err != nil) != (size > limit) {
			t.Errorf("a line of %d bytes: %v", size, err)
		}
	}
}

// A truncated input is an error with its cause, and an incomplete statement is dropped.
func TestBrokenInput(t *testing.T) {
	broken := errors.New("the wire was cut")
	for f, text := range map[rdf.Format]string{
		rdf.NQuads: "<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <urn:o> .", rdf.Turtle: "<urn:s> <urn:p> <urn:o> . <urn:s> <urn:p> 1", rdf.JSONLD: "{}",
	} {
		n := 0
		var last error
		for _, err := range rdf.Read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), f, rdf.Options{}) {
			if last = err; err == nil {
				n++
			}
		}
		if !errors.Is(last, broken) || f != rdf.JSONLD && n != 1 {
			t.Errorf("%s: %d quads, then %v", f, n, last)
		}
	}
}

// Stopping early is no error and leaves no goroutine behind.
func TestStopEarly(t *testing.T) {
	text := strings.Repeat("<urn:s> <urn:p> <urn:o> .\n", 100_000)
	for _, f := range []rdf.Format{rdf.NQuads, rdf.TriG} {
		for range rdf.Read(strings.NewReader(text), f, rdf.Options{}) {
			break
		}
	}
}

func TestFormats(t *testing.T) {
	for name, want := range map[string]rdf.Format{
		"nq": rdf.NQuads, "N-Quads": rdf.NQuads, "text/turtle; charset=utf-8": rdf.Turtle, "application/ld+json": rdf.JSONLD,
		"trig": rdf.TriG, ".nt": 0, "xsl": 0,
	} {
		if got, ok := rdf.FormatByName(name); got != want || ok != (want != 0) {
			t.Errorf("name %q: got %v", name, got)
		}
	}
	for path, want := range map[string]rdf.Format{
		"a/b.nq.gz": rdf.NQuads, "B.TTL": rdf.Turtle, `c:\x.trig`: rdf.TriG, "x.jsonld": rdf.JSONLD, "x.nt": rdf.NTriples, "x": 0, "x.gz": 0,
	} {
		if got, _ := rdf.FormatByPath(path); got != want {
			t.Errorf("path %q: got %v, want %v", path, got, want)
		}
	}
}

func openGzip(t testing.TB, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// Real data survives every format.
func TestMoviesExcerpt(t *testing.T) {
	text, err := io.ReadAll(openGzip(t, filepath.Join("testdata", "movies-excerpt.nq.gz")))
	if err != nil {
		t.Fatal(err)
	}
	quads := collect(t, text, rdf.NQuads, rdf.Options{})
	if len(quads) != 2025 {
		t.Fatalf("got %d quads", len(quads))
	}
	for _, f := range rdf.Formats {
		if got := collect(t, write(t, quads, f, rdf.WriteOptions{Prefixes: prefixes(t)}), f, rdf.Options{}); !isomorphic(quads, got) {
			t.Errorf("%s gives another graph", f)
		}
	}
}
