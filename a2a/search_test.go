package a2a_test

import (
	"strings"
	"testing"

	"koine/kg"
)

// A search matches whole words in any script, and not parts of words.
func TestSearchFindsWholeWords(t *testing.T) {
	s := newTestServer(t)
	for _, text := range []string{"a white wall", "Hi there", "oh, hi", "hi2u", "Überzug", "der Über-Bau", "C++ and C"} {
		s.set(t, kg.Add, "urn:s", kg.String(text), "agent://ann")
	}
	for word, want := range map[string]string{
		"hi": "Found 2 statements", "white": "Found 1 statement ", "wall": "Found 1 statement ", "all.": "Nothing in the graph", "über": "Found 1 statement ",
		"C++": "Found 1 statement ", "bau": "Found 1 statement ", "hi2": "Nothing in the graph",
	} {
		got := s.self(t, "SendMessage", `{"message":{"messageId":"m-`+word+`","role":"ROLE_USER","parts":[{"text":"`+word+`"}]}}`)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
