package main

import (
	"strings"
	"testing"
)

func TestTabulate(t *testing.T) {
	short := newShortener([]namePrefix{{"ex", "https://example.org/"}, {"deep", "https://example.org/deep/"}})
	for name, c := range map[string]struct{ data, want string }{
		"a connection": {
			`{"statements":{"totalCount":2,"nodes":[{"subject":{"iri":"https://example.org/rome"},"object":{"value":1}},{"subject":{"iri":"https://example.org/deep/x"},"object":{"value":null},"certainty":0.5}]}}`,
			"FIELD                  VALUE\nstatements.totalCount  2\n\nstatements\nsubject.iri  object.value  certainty\nex:rome      1\ndeep:x                     0.5\n",
		},
		"edges":           {`{"films":{"edges":[{"cursor":"c","node":{"name":"A"}}]}}`, "name\nA\n"},
		"a list of texts": {`{"names":["a","b"]}`, "value\na\nb\n"},
		"an object":       {`{"me":{"id":"agent://a","roles":["x","y"]}}`, "FIELD  VALUE\nme.id  agent://a\n\nme.roles\nvalue\nx\ny\n"},
		"lists in rows":   {`{"a":[{"b":{"nodes":[{"c":1,"d":"x"},{"c":2,"d":"y"}]}}]}`, "b\n1 x, 2 y\n"},
		"scalars":         {`{"revision":9,"none":null}`, "FIELD     VALUE\nrevision  9\nnone\n"},
		"a large number":  {`{"n":12345678901234567890}`, "FIELD  VALUE\nn      12345678901234567890\n"},
		"control bytes":   {`{"t":["a\nb\u001b[31m"]}`, "value\na\ufffdb\ufffd[31m\n"},
		"an empty list":   {`{"t":[]}`, "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tables, err := tabulate([]byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for i := range tables {
				if i > 0 {
					out.WriteByte('\n')
				}
				if err := tables[i].shortened(short).write(terminal{out: &out}); err != nil {
					t.Fatal(err)
				}
			}
			if got := out.String(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestShorten(t *testing.T) {
	s := newShortener([]namePrefix{{"ex", "https://example.org/"}})
	for text, want := range map[string]string{
		"https://example.org/rome":      "ex:rome",
		"https://example.org/a/b#c":     "ex:a/b#c",
		"https://example.org/":          "https://example.org/",
		"https://example.org/is it so?": "https://example.org/is it so?",
		"https://example.com/rome":      "https://example.com/rome",
	} {
		if got := s.shorten(text); got != want {
			t.Errorf("shorten(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTableCSV(t *testing.T) {
	b := &table{columns: []string{"a", "b"}, rows: [][]string{{"x,\"y\"", "1\n2"}}}
	var out strings.Builder
	if err := b.writeCSV(&out); err != nil || out.String() != "a,b\n\"x,\"\"y\"\"\",\"1\n2\"\n" {
		t.Errorf("writeCSV: %q, %v", out.String(), err)
	}
}

func TestCutCell(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{{"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"äöüß", 0, "äöüß"}} {
		if got := cutCell(c.text, c.limit); got != c.want {
			t.Errorf("cutCell(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
