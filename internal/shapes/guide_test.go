package shapes_test

import (
	"os"
	"strings"
	"testing"

	"koine/internal/shapes"
	"koine/internal/slowtest"
	"koine/kg"
)

// The example of docs/security.md behaves as described.
func TestTheExampleOfTheGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Shapes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	block := func(kind string) string {
		_, rest, ok := strings.Cut(section, "```"+kind+"\n")
		body, _, closed := strings.Cut(rest, "```")
		if !ok || !closed {
			t.Fatalf("there is no block of %s", kind)
		}
		return body
	}
	quads, err := shapes.Parse(block("turtle"))
	if err != nil {
		t.Fatal(err)
	}
	store, _ := judgedStore(t, kg.Options{})
	if _, err := shapes.Put(slowtest.Context(t), store, kg.Meta{Principal: admin}, quads); err != nil {
		t.Fatal(err)
	}
	const data = `@prefix ex: <https://example.org/> . ex:bob a ex:Person ; ex:email "bob" .`
	r, err := write(t, store, by("ann"), parse(t, data, kg.DefaultGraph), nil)
	refused(t, r, err)
	if want := strings.TrimSpace(block("text")); r.Verdict.Details != want {
		t.Errorf("got\n%s\nthe guide says\n%s", r.Verdict.Details, want)
	}
}
