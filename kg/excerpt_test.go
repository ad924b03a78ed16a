package kg_test

import (
	"testing"

	"koine/kg"
)

// An excerpt has as many bytes as it may have, and "…" only where something is left out.
func TestExcerpt(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aé", 3, "aé"},
		{"aéb", 3, "aé…"},
		{"aéb", 2, "a…"},
		{"é", 1, "…"},
		{"a\xffb", 2, "a…"},
	} {
		if got := kg.Excerpt(c.text, c.most); got != c.want {
			t.Errorf("%q in %d bytes: got %q, want %q", c.text, c.most, got, c.want)
		}
	}
}
