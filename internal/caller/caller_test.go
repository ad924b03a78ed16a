package caller_test

import (
	"context"
	"strings"
	"testing"

	"koine/internal/caller"
	"koine/kg"
)

func TestFromGivesWhatWithPut(t *testing.T) {
	want := caller.Caller{Principal: kg.Principal{ID: "agent://a", Method: "open"}, Actor: "agent://b", RequestID: "r1"}
	got := caller.From(caller.With(context.Background(), want))
	if got.Principal.ID != want.Principal.ID || got.Actor != want.Actor || got.RequestID != want.RequestID {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Acting() != "agent://b" {
		t.Errorf("acting for %q, want agent://b", got.Acting())
	}
}

func TestWithoutACallerItIsTheAnonymousOne(t *testing.T) {
	got := caller.From(context.Background())
	if got.Principal.ID != kg.Anonymous || len(got.Principal.Roles) != 0 {
		t.Errorf("got %+v, want the anonymous principal without roles", got.Principal)
	}
	if got.Acting() != kg.Anonymous {
		t.Errorf("acting for %q, want %q", got.Acting(), kg.Anonymous)
	}
}

func TestParseAgent(t *testing.T) {
	most := kg.MaxAgentIDBytes - len("agent://")
	for _, row := range []struct {
		name, text string
		want       kg.AgentID
		code       kg.Code
	}{
		{"bare", "x", "agent://x", ""},
		{"canonical", "agent://x", "agent://x", ""},
		{"another scheme", "did:web:x", "did:web:x", ""},
		{"not ASCII", "żółw", "agent://żółw", ""},
		{"empty", "", "", kg.CodeInvalid},
		{"a space", "a b", "", kg.CodeInvalid},
		{"a line break", "a\nb", "", kg.CodeInvalid},
		{"a control character", "a\x00", "", kg.CodeInvalid},
		{"no UTF-8", "a\xff", "", kg.CodeInvalid},
		{"at the bound", strings.Repeat("x", most), kg.AgentID("agent://" + strings.Repeat("x", most)), ""},
		{"past it", strings.Repeat("x", most+1), "", kg.CodeLimitExceeded},
	} {
		got, err := caller.ParseAgent(row.text)
		if got != row.want || kg.CodeOf(err) != row.code {
			t.Errorf("%s: got %q, %q; want %q, %q", row.name, got, kg.CodeOf(err), row.want, row.code)
		}
	}
}
