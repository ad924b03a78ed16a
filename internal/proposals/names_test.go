package proposals_test

import (
	"strings"
	"testing"

	"koine/internal/names"
	"koine/internal/proposals"
	"koine/kg"
)

// A proposal held while unknown names were permitted is judged by the rules in force at
// its approval: it is refused like any other update, stays pending, and is applied
// unchanged when the scheme is allowed. Its pending names do not become known, and a
// prefix registered meanwhile does not change them.
func TestNamesAreJudgedAtApproval(t *testing.T) {
	unknown := []kg.Patch{
		{Op: kg.Replace, Quad: kg.Quad{Subject: kg.IRI("urn:ann"), Predicate: pay, Object: kg.String("more")}},
		{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:ann"), Predicate: kg.IRI("exx:knows"), Object: kg.Typed("1", "exx:type")}},
	}
	for _, author := range []kg.Principal{ann, admin} {
		w := newWorld(t, proposals.Options{})
		propose := func(patches ...kg.Patch) string {
			t.Helper()
			r, err := w.update(kg.Meta{Principal: author}, patches...)
			if err != nil || r.Verdict.Outcome != kg.Held {
				t.Fatalf("not held: %+v, %v", r, err)
			}
			return r.ProposalID
		}
		id := propose(unknown...)
		datatype := propose(unknown[0], kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:ann"), Predicate: note, Object: kg.Typed("1", "exx:type")}})
		w.restart()
		w.service.SetPatchCheck(names.NewJudge(w.store, names.Strict).CheckPatches)
		refused := map[string]string{id: "[1].predicate", datatype: "[1].object.type"}
		if author.IsAdmin() { // which may know every datatype that the dictionary has
			delete(refused, datatype)
		}
		for id, field := range refused {
			_, err := w.decide(bob, id, proposals.Approve)
			if e := kg.AsError(err); err == nil || e.Code != kg.CodeUnknownPrefix || e.Field != field || !strings.Contains(e.Hint, "scheme add") {
				t.Errorf("%s: approved under strict: %+v, want UNKNOWN_PREFIX at %s", author.ID, err, field)
			}
			if p := w.get(id); p.Status != proposals.Pending || len(p.Reviews) != 0 {
				t.Errorf("%s: the refusal left %+v", author.ID, p)
			}
		}
		w.want("not applied", w.objects(kg.View{Principal: admin, Graphs: []kg.Term{kg.DefaultGraph}}, pay))
		if _, err := names.Register(t.Context(), w.store, kg.Meta{}, map[string]string{"exx": "https://example.org/"}, false); err != nil {
			t.Fatal(err)
		}
		if _, err := w.decide(bob, id, proposals.Approve); kg.CodeOf(err) != kg.CodeUnknownPrefix || !strings.Contains(err.Error(), "did you mean https://example.org/knows?") {
			t.Errorf("%s: approved with the prefix registered: %v", author.ID, err)
		}
		if _, err := names.Remove(t.Context(), w.store, kg.Meta{}, "exx"); err != nil {
			t.Fatal(err)
		}
		if _, err := names.ChangeSchemes(t.Context(), w.store, kg.Meta{}, []string{"exx"}, nil); err != nil {
			t.Fatal(err)
		}
		if p, err := w.decide(bob, id, proposals.Approve); err != nil || p.Status != proposals.Applied {
			t.Errorf("%s: approved with the scheme allowed: %+v, %v", author.ID, p, err)
		}
		w.want("as it was proposed", w.objects(kg.View{Principal: admin}, kg.IRI("exx:knows")), "1")
	}
}
