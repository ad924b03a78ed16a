package proposals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/kg"
)

// Patches are decoded exactly as they were proposed.
func TestPatchesComeBack(t *testing.T) {
	day := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.LangString("x", "en"), Graph: kg.IRI("urn:g")}
	patches := []kg.Patch{
		{Op: kg.Add, Quad: q, Source: "agent://a", Certainty: 0.5, HasCertainty: true, Validity: kg.TimeSpan{From: day, Until: day.Add(time.Hour)}, Provenance: []byte(`{"n":1}`)},
		{Op: kg.Replace, Quad: kg.Quad{Subject: kg.Blank("b"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(7), Graph: kg.DefaultGraph}, Source: "agent://a", Validity: kg.TimeSpan{Until: day}},
		{Op: kg.Remove, Quad: q},
	}
	pieces, err := encodePatches(patches)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodePatches(pieces)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(patches) {
		t.Fatalf("%d of %d patches come back", len(got), len(patches))
	}
	for i := range got {
		a, b := got[i], patches[i]
		if a.Op != b.Op || a.Quad != b.Quad || a.Source != b.Source || a.Certainty != b.Certainty || a.HasCertainty != b.HasCertainty || a.Validity != b.Validity {
			t.Errorf("got %+v, want %+v", a, b)
		}
		if diff := cmp.Diff(string(b.Provenance), string(a.Provenance)); diff != "" {
			t.Error(diff)
		}
	}
}
