package caller_test

import (
	"context"
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
