package kg_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"koine/kg"
)

// Literals finds a text in every language and datatype, for every way of adding the
// literals and of rebuilding the index.
func TestLiterals(t *testing.T) {
	dir := t.TempDir()
	open := func(o kg.Options) *kg.Store {
		s, err := kg.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	quad := func(object kg.Term) kg.Quad {
		return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: object}
	}
	expect := func(s *kg.Store, text string, want ...kg.Term) {
		t.Helper()
		snap, err := s.View(context.Background(), kg.View{})
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		got, complete, err := snap.Literals(text)
		if err != nil || !complete {
			t.Fatal(complete, err)
		}
		slices.SortFunc(got, kg.Term.Compare)
		slices.SortFunc(want, kg.Term.Compare)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b kg.Term) bool { return a == b })); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		report, err := s.Maintenance().Check(context.Background(), kg.CheckOptions{})
		if err != nil || !report.Clean() {
			t.Errorf("%v %v", report, err)
		}
	}
	// A short text and a boolean are known whether or not a statement has them: they are in
	// no dictionary.
	year := []kg.Term{kg.String("1999"), kg.LangString("1999", "en"), kg.Integer(1999), kg.Double(1999), kg.Typed("1999", kg.XSD+"gYear")}
	all := func(s *kg.Store) {
		t.Helper()
		expect(s, "a text of some length", kg.LangString("a text of some length", "de"), kg.LangString("a text of some length", "en"), kg.String("a text of some length"))
		expect(s, "1999", year...)
		expect(s, "nobody ever said this")
		expect(s, "01", kg.String("01"), kg.Typed("01", kg.XSDInteger))
	}
	loaded := append([]kg.Term{kg.LangString("a text of some length", "DE"), kg.String("a text of some length")}, year...)
	s := open(kg.Options{})
	_, err := s.Load(context.Background(), kg.Meta{}, func(yield func(kg.Quad, error) bool) {
		for _, object := range loaded {
			if !yield(quad(object), nil) {
				return
			}
		}
	}, kg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []kg.Term{kg.LangString("a text of some length", "en"), kg.Typed("01", kg.XSDInteger)} {
		if _, err := s.Update(context.Background(), kg.Meta{}, func(tx *kg.Tx) error {
			return tx.Apply(kg.Patch{Op: kg.Add, Quad: quad(object)})
		}); err != nil {
			t.Fatal(err)
		}
	}
	all(s)
	if _, err := s.Maintenance().Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []kg.Options{{}, {Rebuild: true}} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(o)
		all(s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A text is looked up in as many languages as are allowed, and in one more not at
// all: anybody can make up languages.
func TestLiteralsOfManyLanguages(t *testing.T) {
	s := openStore(t, t.TempDir(), kg.Options{})
	made := 0
	complete := func(languages int) bool {
		t.Helper()
		_, err := s.Update(within(t), kg.Meta{}, func(tx *kg.Tx) error {
			for ; made < languages; made++ {
				tag := "x-" + string(rune('a'+made/26)) + string(rune('a'+made%26))
				q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.LangString("a text of some length", tag)}
				if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		snap, err := s.View(within(t), kg.View{})
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		known, complete, err := snap.Literals("a text of some length")
		if err != nil || complete && len(known) != languages {
			t.Errorf("%d languages: %d literals, %v", languages, len(known), err)
		}
		return complete
	}
	if !complete(kg.MaxLiteralKinds) {
		t.Error("not complete at the bound")
	}
	if complete(kg.MaxLiteralKinds + 1) {
		t.Error("complete past the bound")
	}
}
