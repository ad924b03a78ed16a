package kg_test

import (
	"path/filepath"
	"testing"

	"koine/kg"
)

// Language tags are spelled as RFC 5646, section 2.1.1, recommends, in any case; those that
// differ in case only are one term.
func TestLanguageTagsAreSpelled(t *testing.T) {
	for tag, want := range map[string]string{
		"EN": "en", "en-gb": "en-GB", "ZH-HANT": "zh-Hant", "zh-hant-tw": "zh-Hant-TW", "sgn-be-fr": "sgn-BE-FR", "mn-cyrl-mn": "mn-Cyrl-MN",
		"en-ca-x-ca": "en-CA-x-ca", "az-latn-x-latn": "az-Latn-x-latn", "x-en-gb": "x-en-gb", "i-klingon": "i-klingon", "de-1996": "de-1996",
		"DE-ch-1996": "de-CH-1996", "en-u-ca-gregory": "en-u-ca-gregory", "es-419": "es-419", "sl-rozaj-biske": "sl-rozaj-biske", "de-a-de-latn": "de-a-de-latn",
		"hy-latn-it-arevela": "hy-Latn-IT-arevela", "und-aaaa-12": "und-Aaaa-12",
	} {
		term := kg.LangString("x", tag)
		if term.Lang() != want || term.String() != `"x"@`+want {
			t.Errorf("%s is spelled %s, %s, want %s", tag, term.Lang(), term, want)
		}
		if other := kg.LangString("x", want); other != term {
			t.Errorf("%s and %s give two terms", tag, want)
		}
	}
}

// Tags in several cases are one term of the store, in updates, loads, counts and after a
// start from the log alone.
func TestLanguageTagsAreOneTerm(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, kg.Options{})
	say := func(lang string) kg.Quad {
		return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.LangString("colour", lang), Graph: kg.DefaultGraph}
	}
	if _, err := s.Load(within(t), kg.Meta{}, func(yield func(kg.Quad, error) bool) { yield(say("EN-gb"), nil) }, kg.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, lang := range []string{"en-GB", "en-gb"} {
		if _, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error { return tx.Apply(kg.Patch{Op: kg.Add, Quad: say(lang)}) }); err != nil {
			t.Fatal(err)
		}
	}
	check := func(s *kg.Store) {
		t.Helper()
		v, err := s.View(within(t), kg.View{})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		n := 0
		for st, err := range v.Match(kg.Pattern{Object: kg.LangString("colour", "En-Gb")}) {
			if n++; err != nil || st.Object.Lang() != "en-GB" {
				t.Errorf("found %v, %v", st, err)
			}
		}
		known, _, err := v.Literals("colour")
		if last := len(known) - 1; n != 1 || err != nil || last != 1 || known[last].Lang() != "en-GB" { // behind the plain one, which is in its id
			t.Errorf("found %d statements and the literals %v, %v", n, known, err)
		}
	}
	check(s)
	mustClose(t, s)
	rebuilt := filepath.Join(t.TempDir(), "rebuilt")
	copyTree(t, dir, rebuilt, nil)
	check(openStore(t, rebuilt, kg.Options{Rebuild: true}))
}
