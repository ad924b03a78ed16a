package kg_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// Languages are known however the literals came in, and after every way of
// making the index again.
func TestLanguages(t *testing.T) {
	dir := t.TempDir()
	open := func(o kg.Options) *kg.Store {
		s, err := kg.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	quad := func(text, lang string) kg.Quad {
		return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.LangString(text, lang)}
	}
	expect := func(s *kg.Store, want ...string) {
		t.Helper()
		snap, err := s.View(context.Background(), kg.View{})
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		if diff := cmp.Diff(want, snap.Languages()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		report, err := s.Check(context.Background(), kg.CheckOptions{})
		if err != nil || !report.Clean() {
			t.Errorf("%v %v", report, err)
		}
	}
	s := open(kg.Options{})
	_, err := s.Load(context.Background(), kg.Meta{}, func(yield func(kg.Quad, error) bool) {
		_ = yield(quad("Haus", "de"), nil) && yield(quad("house", "EN-gb"), nil)
	}, kg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expect(s, "de", "en-gb")
	_, err = s.Update(context.Background(), kg.Meta{}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: quad("talo", "fi")})
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(s, "de", "en-gb", "fi")
	if _, err := s.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(kg.Options{Rebuild: true})
	expect(s, "de", "en-gb", "fi")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
