package rdf_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"koine/internal/rdf"
	"koine/internal/slowtest"
	"koine/kg"
)

func collect(t testing.TB, text []byte, f rdf.Format, o rdf.Options) []kg.Quad {
	t.Helper()
	quads, err := read(text, f, o)
	if err != nil {
		t.Fatalf("%s: %v\n%s", f, err, clip(text))
	}
	return quads
}

func read(text []byte, f rdf.Format, o rdf.Options) ([]kg.Quad, error) {
	var quads []kg.Quad
	for q, err := range rdf.Read(bytes.NewReader(text), f, o) {
		if err != nil {
			return quads, err
		}
		quads = append(quads, q)
	}
	return quads, nil
}

func write(t testing.TB, quads []kg.Quad, f rdf.Format, o rdf.WriteOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	w := rdf.NewWriter(&out, f, o)
	for _, q := range quads {
		if err := w.Write(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func clip(text []byte) string {
	const most = 4000
	if len(text) > most {
		text = text[:most]
	}
	return string(text)
}

func prefixes(t testing.TB) *kg.Prefixes {
	t.Helper()
	p, err := kg.NewPrefixes(map[string]string{"ex": "http://x.example/", "a.b": "http://dotted.example/", "hash": "http://x.example/v#"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A written graph reads back as the same graph, with any literals, in every format, with
// and without prefixes, in any order of the quads.
func TestWhatIsWrittenReadsBackTheSame(t *testing.T) {
	slowtest.WithoutRace(t)
	for seed := range uint64(slowtest.Size(60, 15)) {
		r := rand.New(rand.NewPCG(seed, 1))
		quads := randomQuads(r, 1+r.IntN(60))
		for _, f := range rdf.Formats {
			for _, sorted := range []bool{true, false} {
				in := slices.Clone(quads)
				for i := range in {
					if !f.HasGraphs() {
						in[i].Graph = kg.DefaultGraph
					}
				}
				if sorted {
					slices.SortFunc(in, byGraph)
				}
				o := rdf.WriteOptions{}
				if r.IntN(2) == 0 {
					o.Prefixes = prefixes(t)
				}
				text := write(t, in, f, o)
				if out := collect(t, text, f, rdf.Options{}); !isomorphic(in, out) {
					t.Fatalf("seed %d, %s: %d quads became %d others\n%s", seed, f, len(in), len(out), clip(text))
				}
			}
		}
	}
}

func byGraph(a, b kg.Quad) int {
	for _, c := range []int{a.Graph.Compare(b.Graph), a.Subject.Compare(b.Subject), a.Predicate.Compare(b.Predicate)} {
		if c != 0 {
			return c
		}
	}
	return a.Object.Compare(b.Object)
}

var nastyTexts = []string{
	"", " ", "plain", `with "quotes" and 'others'`, `"""`, `ends with "`, `ends with \`, `\`, `\\"`, `\n is not a line break`,
	"two\nlines", "carriage\r\nreturn", "\r", "tab\tand\bbell\a\f\v", "nul\x00inside", "\x7f", "é ü ß", "κοινή", "日本語", "😀 \U0010FFFD",
	"\u2028\u2029\u200b\ufeff", "# not a comment", "<not an IRI>", "{ not: json }", "_:b1", "a . b ; c , d", "@en", "^^<x>", "  two  spaces  ",
	"\uFFFD", "<script>&amp;</script>",
}

func randomQuads(r *rand.Rand, n int) []kg.Quad {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	iris := []string{
		"http://x.example/a", "http://x.example/b-c", "http://x.example/v#d", "http://x.example/with.dot", "http://x.example/-dash",
		"http://x.example/%20(x)'~!*,;=$&@+", "http://x.example/é/κ", "http://dotted.example/x", "urn:uuid:3f2a", "tag:x,2024:y",
		"agent://anna", "http://x.example/", "http://x.example/v#", "mailto:a@b.example", kg.RDFType, kg.RDF + "first", kg.RDF + "nil",
		"http://x.example/a:b", "http://x.example/123", "x:y", "http://[::1]/p?q=1&r=%3C#f",
	}
	resource := func() kg.Term {
		if r.IntN(3) == 0 {
			return kg.Blank(pick([]string{"b0", "b1", "x", "d-1", "a.b", "_u", "0", strings.Repeat("long", 30)}))
		}
		return kg.IRI(pick(iris))
	}
	object := func() kg.Term {
		switch r.IntN(9) {
		case 0:
			return kg.LangString(pick(nastyTexts), pick([]string{"en", "de-at", "zh-hant-tw", "en-1997"}))
		case 1:
			return kg.Typed(pick(nastyTexts), pick(iris))
		case 2:
			return kg.Typed(pick([]string{"1", "-7", "+5", "007", "12345678901234567890123", "x", "-"}), kg.XSDInteger)
		case 3:
			return kg.Typed(pick([]string{"1.0", "1", ".5", "5.", "1E0", "1.50"}), pick([]string{kg.XSDDecimal, kg.XSDDouble}))
		case 4:
			return kg.Typed(pick([]string{"true", "false", "1", "TRUE"}), kg.XSDBoolean)
		case 5:
			return kg.Typed(pick([]string{`{"b":1, "a":2}`, `"x"`, "1.0", "not json"}), kg.RDF+"JSON")
		case 6, 7:
			return kg.String(pick(nastyTexts))
		}
		return resource()
	}
	graphs := []kg.Term{kg.DefaultGraph, kg.DefaultGraph, kg.IRI("http://x.example/g1"), kg.IRI("urn:g2"), kg.Blank("g3"), kg.Blank("b0")}
	var out []kg.Quad
	for range n {
		out = append(out, kg.Quad{Subject: resource(), Predicate: kg.IRI(pick(iris)), Object: object(), Graph: graphs[r.IntN(len(graphs))]})
	}
	return out
}

// The longest literal that is stored can be written and read, one byte more
// is refused, in every format.
func TestTheLongestLiteral(t *testing.T) {
	slowtest.WithoutRace(t)
	slowtest.Long(t)
	for _, f := range rdf.Formats {
		for _, c := range []struct {
			name string
			text string
			ok   bool
		}{
			{"at the bound", strings.Repeat("x", kg.DefaultLiteralBytes), true},
			{"at the bound, all escapes", strings.Repeat("\x01", kg.DefaultLiteralBytes), true},
			{"past the bound", strings.Repeat("x", kg.DefaultLiteralBytes+1), false},
		} {
			q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String(c.text), Graph: kg.DefaultGraph}
			out, err := read(write(t, []kg.Quad{q}, f, rdf.WriteOptions{}), f, rdf.Options{})
			if c.ok && (err != nil || len(out) != 1 || out[0] != q) {
				t.Errorf("%s, %s: got %d quads, error %v", f, c.name, len(out), err)
			}
			if !c.ok && kg.CodeOf(err) != kg.CodeLimitExceeded {
				t.Errorf("%s, %s: got error %v, want %s", f, c.name, err, kg.CodeLimitExceeded)
			}
		}
	}
}

// Blank nodes: the same document gives the same nodes, another document
// others, and exporting and reading again does not make labels ever longer.
func TestBlankNodesBelongToTheirDocument(t *testing.T) {
	text := []byte("_:a <urn:p> _:b.c .\n_:b.c <urn:p> _:Ünïcode .\n")
	one := collect(t, text, rdf.NTriples, rdf.Options{Tag: "one"})
	again := collect(t, text, rdf.NTriples, rdf.Options{Tag: "one"})
	two := collect(t, text, rdf.NTriples, rdf.Options{Tag: "two"})
	if !slices.Equal(one, again) {
		t.Error("the same document gave other blank nodes")
	}
	if one[0].Subject == two[0].Subject || one[0].Object == two[0].Object {
		t.Error("two documents share a blank node")
	}
	if one[0].Object != one[1].Subject {
		t.Error("one label became two nodes")
	}
	quads := one
	for i := range 30 {
		for _, f := range []rdf.Format{rdf.NQuads, rdf.TriG} {
			quads = collect(t, write(t, quads, f, rdf.WriteOptions{}), f, rdf.Options{Tag: fmt.Sprint("round", i)})
		}
		for _, q := range quads {
			if n := len(q.Subject.Value()); n > 100 {
				t.Fatalf("after %d rounds a label has %d characters", i, n)
			}
			if err := q.Subject.Valid(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !isomorphic(one, quads) {
		t.Error("the graph changed on the way")
	}
}
