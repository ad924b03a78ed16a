package update_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/internal/names"
	"koine/internal/update"
	"koine/kg"
)

// Types become patches after their mutation, in its graph and with its source; omitted
// parts stay empty.
func TestFacts(t *testing.T) {
	s, p, o, class := kg.IRI("urn:s"), kg.IRI("urn:p"), kg.IRI("urn:o"), kg.IRI("urn:C")
	store := open(t)
	quad := kg.Quad{Subject: s, Predicate: p, Object: o, Graph: kg.IRI("urn:g")}
	facts, err := update.Expand(t.Context(), names.NewJudge(store, names.Strict), kg.SystemPrincipal(), []update.Mutation{
		{Patch: kg.Patch{Op: kg.Add, Quad: quad, Source: "agent://x", Certainty: 0.5, HasCertainty: true}, SubjectType: class, ObjectType: class},
		{Patch: kg.Patch{Op: kg.Remove, Quad: quad, Certainty: 0.5, HasCertainty: true, Provenance: []byte(`{}`)}, SubjectType: class},
		{Patch: kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: s, Predicate: p, Object: kg.Integer(1)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for i, f := range facts.Patches {
		line := f.Op.String() + " " + f.Quad.Subject.Value() + " " + f.Quad.Predicate.Value() + " " + f.Quad.Object.Value() + " in " + f.Quad.Graph.Value() + " of " + string(f.Source)
		if f.HasCertainty || f.Provenance != nil {
			line += ", with more"
		}
		if facts.Implied[i] {
			line += ", implied"
		}
		got = append(got, line+" "+string(rune('0'+facts.Mutation[i])))
	}
	want := []string{
		"add urn:s urn:p urn:o in urn:g of agent://x, with more 0",
		"add urn:s " + kg.RDFType + " urn:C in urn:g of agent://x, implied 0",
		"add urn:o " + kg.RDFType + " urn:C in urn:g of agent://x, implied 0",
		"remove urn:s urn:p urn:o in urn:g of  1",
		"add urn:s urn:p 1 in  of  2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err = update.Expand(t.Context(), names.NewJudge(store, names.Strict), kg.SystemPrincipal(), []update.Mutation{{Patch: kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: s, Predicate: p, Object: kg.Integer(1)}}, ObjectType: class}})
	if e := kg.AsError(err); e.Code != kg.CodeInvalid || e.Field != "[0].object.type" {
		t.Errorf("a literal with a type: got %v", err)
	}
}
