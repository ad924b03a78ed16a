package kg_test

import (
	"testing"
	"time"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestRestoredTime proves that an administrator sets the time of recording of an assertion
// of any source, that this survives a restart, and that no other caller can.
func TestRestoredTime(t *testing.T) {
	s := kgtest.Disk(t, kg.Options{})
	then := time.Date(2001, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	admin := kg.Principal{ID: "agent://admin", Method: "key", Roles: []string{kg.RoleAdmin}}
	local := kg.SystemPrincipal()
	q := integer(1)
	for _, row := range []struct {
		name string
		by   kg.Principal
		p    kg.Patch
		want kg.Code
	}{
		{"a stranger", stranger, kg.Patch{Op: kg.Add, Quad: q, Time: then}, kg.CodePermissionDenied},
		{"a stranger who speaks for all", kg.Principal{ID: "agent://x", Method: "key", ActFor: []kg.AgentID{kg.Anybody}}, kg.Patch{Op: kg.Add, Quad: q, Source: "agent://a", Time: then}, kg.CodePermissionDenied},
		{"koine as source", admin, kg.Patch{Op: kg.Add, Quad: q, Source: kg.System, Time: then}, kg.CodeSourceForbidden},
		{"a replace", admin, kg.Patch{Op: kg.Replace, Quad: q, Time: then}, kg.CodeInvalid},
		{"a removal", admin, kg.Patch{Op: kg.Remove, Quad: q, Time: then}, kg.CodeInvalid},
		{"the year 10000", admin, kg.Patch{Op: kg.Add, Quad: q, Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, kg.CodeInvalid},
		{"the beginning of time", admin, kg.Patch{Op: kg.Add, Quad: q, Time: time.Time{}.Add(time.Microsecond)}, kg.CodeInvalid},
		{"an administrator", admin, kg.Patch{Op: kg.Add, Quad: q, Source: "agent://a", Time: then.Add(time.Microsecond)}, ""},
		{"koine at the data directory", local, kg.Patch{Op: kg.Add, Quad: q, Source: kg.System, Time: then}, ""},
	} {
		_, err := s.Update(within(t), kg.Meta{Principal: row.by}, func(tx *kg.Tx) error { return tx.Apply(row.p) })
		if kg.CodeOf(err) != row.want {
			t.Errorf("%s: got %v, want %q", row.name, err, row.want)
		}
	}
	head := s.Head().Revision
	again := func(p kg.Patch) kg.Revision {
		receipt, err := s.Update(within(t), kg.Meta{Principal: admin}, func(tx *kg.Tx) error { return tx.Apply(p) })
		if err != nil {
			t.Fatal(err)
		}
		return receipt.Revision
	}
	if r := again(kg.Patch{Op: kg.Add, Quad: q, Source: "agent://a", Time: then}); r != head {
		t.Errorf("the same again made revision %d", r)
	}
	if r := again(kg.Patch{Op: kg.Add, Quad: q, Source: "agent://a", Time: then.Add(time.Hour)}); r != head+1 {
		t.Errorf("another time made revision %d, want %d", r, head+1)
	}
	two := []kg.Patch{{Op: kg.Add, Quad: integer(2), Source: "agent://b", Time: then}, {Op: kg.Add, Quad: integer(3), Source: "agent://b", Time: then.Add(time.Second)}}
	if _, err := s.Update(within(t), kg.Meta{Principal: admin}, func(tx *kg.Tx) error {
		for _, p := range two {
			if err := tx.Apply(p); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.Reopen()
	v, err := s.View(within(t), kg.View{Principal: local})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	got := map[kg.Term]map[kg.AgentID]time.Time{}
	for st, err := range v.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		got[st.Object] = map[kg.AgentID]time.Time{}
		for _, a := range st.Assertions {
			got[st.Object][a.Source] = a.Time
		}
	}
	for object, want := range map[kg.Term]map[kg.AgentID]time.Time{
		kg.Integer(1): {"agent://a": then.Add(time.Hour), kg.System: then},
		kg.Integer(2): {"agent://b": then},
		kg.Integer(3): {"agent://b": then.Add(time.Second)},
	} {
		for source, at := range want {
			if !got[object][source].Equal(at) {
				t.Errorf("%s by %s: got %v, want %v", object, source, got[object][source], at)
			}
		}
	}
}
