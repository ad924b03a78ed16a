package scan_test

import (
	"os"
	"slices"
	"testing"

	"koine/channels"
	"koine/kg"
)

// The example of a policy for content does what its comments say.
func TestContentExample(t *testing.T) {
	rules, err := os.ReadFile("../../examples/policies/content.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, options{rules: string(rules)})
	lab := s.make(t)
	for words, want := range map[string]kg.Code{
		"hello":                        "",
		"pay with 1234 5678 9012 3456": kg.CodeConstraintViolation,
		"see http://example.org":       kg.CodeContentHeld,
		"look!!!":                      "",
	} {
		r, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: lab, Parts: text(words)})
		code := kg.CodeOf(err)
		if err == nil && r.Message == nil {
			code = kg.CodeConstraintViolation // a verdict
		}
		if code != want {
			t.Errorf("%s: the error is %v, want %q", words, err, want)
		}
		if words == "look!!!" && !slices.Contains(r.Message.Tags, "loud") {
			t.Errorf("%s has the tags %v, want loud", words, r.Message.Tags)
		}
	}
}
