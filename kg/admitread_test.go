package kg_test

import (
	"context"
	"testing"

	"koine/kg"
)

// TestAdmitReadIsAskedAtEveryDoor proves that no caller from outside begins to read without
// AdmitRead, and that koine itself is exempt.
func TestAdmitReadIsAskedAtEveryDoor(t *testing.T) {
	type asked struct {
		who    kg.AgentID
		follow bool
	}
	type key struct{}
	var calls []asked
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{AdmitRead: func(ctx context.Context, p kg.Principal, follow bool) error {
		calls = append(calls, asked{p.ID, follow})
		if ctx.Value(key{}) == nil {
			t.Error("the context is another")
		}
		if p.ID == "agent://guest" {
			return kg.Errorf(kg.CodeAlignmentViolation, "not for guests")
		}
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Update(t.Context(), kg.Meta{Principal: kg.Principal{ID: "guest", Method: "key"}}, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.String("o")}})
	}); err != nil || calls != nil {
		t.Fatal(calls, err)
	}
	ctx := context.WithValue(t.Context(), key{}, 1)
	filter := func(p kg.Principal) kg.Filter {
		return kg.Filter{Patterns: []kg.Pattern{{}}, View: kg.View{Principal: p}}
	}
	for name, door := range map[string]struct {
		follow bool
		open   func(kg.Principal) error
	}{
		"View": {false, func(p kg.Principal) error {
			s, err := store.View(ctx, kg.View{Principal: p})
			if err == nil {
				s.Close()
			}
			return err
		}},
		"Commit": {false, func(p kg.Principal) error { _, err := store.Commit(ctx, p, 1); return err }},
		"ReadLog": {false, func(p kg.Principal) error {
			_, err := store.ReadLog(ctx, filter(p), kg.LogRange{After: store.Oldest(), Until: store.Head()})
			return err
		}},
		"Watch": {true, func(p kg.Principal) error {
			w, err := store.Watch(ctx, filter(p), store.Head())
			if err == nil {
				w.Close()
			}
			return err
		}},
	} {
		for _, row := range []struct {
			p     kg.Principal
			want  kg.Code
			asked bool
		}{
			{kg.Principal{ID: "guest", Method: "key"}, kg.CodeAlignmentViolation, true},
			{kg.Principal{ID: "ann", Method: "key"}, "", true},
			{kg.Principal{ID: "guest", Method: kg.MethodLocal}, "", false},
			{kg.SystemPrincipal(), "", false},
		} {
			calls = nil
			if err := door.open(row.p); kg.CodeOf(err) != row.want {
				t.Errorf("%s by %s: %v", name, row.p.ID, err)
			}
			want := asked{kg.CanonicalAgent(string(row.p.ID)), door.follow}
			if row.asked != (len(calls) == 1 && calls[0] == want) || !row.asked && calls != nil {
				t.Errorf("%s by %s: asked %v", name, row.p.ID, calls)
			}
		}
	}
}
