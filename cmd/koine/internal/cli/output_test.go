package cli

import (
	"strings"
	"testing"
)

func TestShorten(t *testing.T) {
	s := NewShortener([]NamePrefix{{"ex", "https://example.org/"}})
	for text, want := range map[string]string{
		"https://example.org/rome":      "ex:rome",
		"https://example.org/a/b#c":     "ex:a/b#c",
		"https://example.org/":          "https://example.org/",
		"https://example.org/is it so?": "https://example.org/is it so?",
		"https://example.com/rome":      "https://example.com/rome",
	} {
		if got := s.Shorten(text); got != want {
			t.Errorf("shorten(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTableCSV(t *testing.T) {
	b := &Table{Columns: []string{"a", "b"}, Rows: [][]string{{"x,\"y\"", "1\n2"}}}
	var out strings.Builder
	if err := b.PrintCSV(&out); err != nil || out.String() != "a,b\n\"x,\"\"y\"\"\",\"1\n2\"\n" {
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
