package kg_test

import (
	"strings"
	"testing"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

// TestKindsOfLiteralsAreBounded proves that the longest accepted datatype and language tag
// fit into the index, by a load and by updates, and that longer ones are refused before
// anything is written.
func TestKindsOfLiteralsAreBounded(t *testing.T) {
	slowtest.Long(t)
	literals := func(bytes int) map[string]kg.Term {
		return map[string]kg.Term{
			"datatype": kg.Typed("text", "urn:"+strings.Repeat("x", bytes-4)),
			"language": kg.LangString("text", strings.Repeat("abcdefg-", bytes)[:bytes-1]+"a"),
		}
	}
	ways := map[string]func(s *kgtest.Store, q kg.Quad) error{
		"update": func(s *kgtest.Store, q kg.Quad) error { return addOne(s.Store, within(t), q) },
		"load": func(s *kgtest.Store, q kg.Quad) error {
			_, err := s.Load(within(t), kg.Meta{}, func(yield func(kg.Quad, error) bool) { yield(q, nil) }, kg.LoadOptions{})
			return err
		},
	}
	for way, put := range ways {
		for bytes, want := range map[int]kg.Code{kg.MaxLiteralKindBytes: "", kg.MaxLiteralKindBytes + 1: kg.CodeLimitExceeded, 100 << 10: kg.CodeLimitExceeded} {
			for kind, literal := range literals(bytes) {
				s := kgtest.Disk(t, kg.Options{})
				q := integer(0)
				q.Object = literal
				if err := put(s, q); kg.CodeOf(err) != want {
					t.Errorf("%s, %s of %d bytes: got %v, want %q", way, kind, bytes, err, want)
				}
				s.Reopen() // writes the index out and reads it
			}
		}
	}
}

// TestDatatypeIsNoLanguage: a datatype that looks like a language tag is none, and no
// datatype either.
func TestDatatypeIsNoLanguage(t *testing.T) {
	for _, datatype := range []string{"@en", "@", "@urn:x"} {
		term := kg.Typed("chat", datatype)
		if term.Lang() != "" || term == kg.LangString("chat", "en") || term.Valid() == nil {
			t.Errorf("the datatype %s makes %v, %v", datatype, term, term.Valid())
		}
	}
	if term := kg.LangString("chat", ""); term != kg.String("chat") {
		t.Errorf("a literal without a language is %v", term)
	}
}
