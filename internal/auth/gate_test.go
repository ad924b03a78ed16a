package auth_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/caller"
	"koine/kg"
)

// tokens are those that a test gives out.
type tokens map[string]auth.Claims

func (all tokens) Verify(text string) (auth.Claims, error) {
	c, ok := all[text]
	if !ok {
		return c, kg.Errorf(kg.CodeUnauthenticated, "the credential is not valid")
	}
	return c, nil
}

func TestTokenIsItsAgent(t *testing.T) {
	ends := time.Now().Add(time.Hour)
	b := newBench(t, auth.Options{
		Tokens: tokens{
			"t1":     {Agent: "agent://dora", Roles: []string{"gateway", "x"}, ActFor: []kg.AgentID{"agent://a"}, Expires: ends},
			"koine":  {Agent: kg.System, Expires: ends},
			"nobody": {Agent: kg.Anonymous, Expires: ends},
			"old":    {Agent: "agent://dora", Expires: time.Now().Add(-time.Second)},
		},
		RoleActFor: map[string][]kg.AgentID{"gateway": {"agent://b", "agent://a"}, "other": {"*"}},
	})
	a, err := b.admit("t1")
	if err != nil {
		t.Fatal(err)
	}
	defer a.release()
	want := kg.Principal{ID: "agent://dora", Roles: []string{"gateway", "x"}, ActFor: []kg.AgentID{"agent://a", "agent://b"}, Method: "jwt"}
	if fmt.Sprint(a.principal) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", a.principal, want)
	}
	b.wantRefused("koine", kg.CodeUnauthenticated, "the credential is not valid")
	b.wantRefused("nobody", kg.CodeUnauthenticated, "the credential is not valid")
	b.wantRefused("t2", kg.CodeUnauthenticated, "the credential is not valid")
	b.wantRefused("old", kg.CodeUnauthenticated, "the token has expired")
	// Its record is made behind the request.
	service := agents.NewService(b.store)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		record, err := service.Get(t.Context(), "agent://dora")
		if err != nil {
			t.Fatal(err)
		}
		if record != nil {
			if !slices.Equal(record.Roles, want.Roles) {
				t.Errorf("the record is %+v", record)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the agent got no record")
		}
	}
}

func TestTokenEndsWhatItOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := time.Now().Add(time.Hour)
		b := &bench{t: t, gate: auth.NewGate(auth.Options{Tokens: tokens{"t": {Agent: "agent://dora", Expires: ends}}})}
		open, err := b.admit("t")
		if err != nil {
			t.Fatal(err)
		}
		done, err := b.admit("t")
		if err != nil {
			t.Fatal(err)
		}
		done.release()
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		open.wantNoEnd(t)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		open.wantEnd(t, kg.CodeUnauthenticated, "the token has expired")
		done.wantNoEnd(t)
	})
}

func TestWithoutKeysOrTokensNothingIsGood(t *testing.T) {
	with := newBench(t, auth.Options{})
	created := with.create(auth.KeyRequest{Agent: "dora"})
	b := &bench{t: t, gate: auth.NewGate(auth.Options{})}
	b.wantRefused(created.Secret, kg.CodeUnauthenticated, "the credential is not valid")
	b.wantRefused("token", kg.CodeUnauthenticated, "the credential is not valid")
}

func TestSuspendedAgent(t *testing.T) {
	b := newBench(t, auth.Options{})
	created, other := b.create(auth.KeyRequest{Agent: "dora"}), b.create(auth.KeyRequest{Agent: "chen"})
	open, err := b.admit(created.Secret)
	if err != nil {
		t.Fatal(err)
	}
	stays, err := b.admit(other.Secret)
	if err != nil {
		t.Fatal(err)
	}
	defer stays.release()
	service := agents.NewService(b.store)
	set := func(status agents.Status) {
		t.Helper()
		record, err := service.Update(t.Context(), admin, "dora", agents.Change{Status: &status})
		if err != nil || record.Status != status {
			t.Fatalf("got %+v, %v", record, err)
		}
	}
	set(agents.Suspended)
	const message = "the agent agent://dora is suspended"
	open.wantEnd(t, kg.CodePermissionDenied, message)
	b.wantRefused(created.Secret, kg.CodePermissionDenied, message)
	stays.wantNoEnd(t)
	set(agents.Active)
	again, err := b.admit(created.Secret)
	if err != nil {
		t.Fatal(err)
	}
	again.release()
}

// A further credential can only narrow.
func TestNarrow(t *testing.T) {
	ends := time.Now().Add(time.Hour)
	b := newBench(t, auth.Options{Tokens: tokens{
		"same":     {Agent: "agent://dora", Roles: []string{"b", "c"}, ActFor: []kg.AgentID{"agent://x", "agent://z"}, Expires: ends},
		"anybody":  {Agent: "agent://dora", Roles: []string{"a", "b", "c", "admin"}, ActFor: []kg.AgentID{"*"}, Expires: ends},
		"other":    {Agent: "agent://x", Roles: []string{"a"}, Expires: ends},
		"stranger": {Agent: "agent://q", Roles: []string{"a"}, ActFor: []kg.AgentID{"*"}, Expires: ends},
	}})
	dora := kg.Principal{ID: "agent://dora", Roles: []string{"a", "b"}, ActFor: []kg.AgentID{"agent://x", "agent://y"}, Method: "key"}
	for _, row := range []struct {
		name       string
		from       caller.Caller
		credential string
		want       caller.Caller
		code       kg.Code
	}{
		{"the same agent", caller.Caller{Principal: dora}, "same",
			caller.Caller{Principal: kg.Principal{ID: dora.ID, Roles: []string{"b"}, ActFor: []kg.AgentID{"agent://x", "agent://dora"}, Method: "key"}}, ""},
		{"that may do more", caller.Caller{Principal: dora}, "anybody",
			caller.Caller{Principal: kg.Principal{ID: dora.ID, Roles: []string{"a", "b"}, ActFor: []kg.AgentID{"agent://x", "agent://y", "agent://dora"}, Method: "key"}}, ""},
		{"another agent", caller.Caller{Principal: dora}, "other",
			caller.Caller{Principal: kg.Principal{ID: dora.ID, Roles: []string{"a"}, ActFor: []kg.AgentID{"agent://x"}, Method: "key"}, Actor: "agent://x"}, ""},
		{"an agent that it may not act for", caller.Caller{Principal: dora}, "stranger", caller.Caller{}, kg.CodeSourceForbidden},
		{"while it acts for one that the token does not", caller.Caller{Principal: dora, Actor: "agent://y"}, "same", caller.Caller{}, kg.CodeSourceForbidden},
		{"while it acts for one that the token does too", caller.Caller{Principal: dora, Actor: "agent://x"}, "same",
			caller.Caller{Principal: kg.Principal{ID: dora.ID, Roles: []string{"b"}, ActFor: []kg.AgentID{"agent://x", "agent://dora"}, Method: "key"}, Actor: "agent://x"}, ""},
		{"no credential at all", caller.Caller{Principal: dora}, "nonsense", caller.Caller{}, kg.CodeUnauthenticated},
	} {
		got, release, err := b.gate.Narrow(t.Context(), row.from, row.credential, func(error) {})
		if kg.CodeOf(err) != row.code || fmt.Sprint(got) != fmt.Sprint(row.want) {
			t.Errorf("%s: got %+v, %v; want %+v, %q", row.name, got, err, row.want, row.code)
		}
		if err == nil {
			release()
		}
	}
	if n := b.gate.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// The further credential is watched like the first.
func TestNarrowEnds(t *testing.T) {
	b := newBench(t, auth.Options{})
	created := b.create(auth.KeyRequest{Agent: "dora"})
	ended := admitted{ended: make(chan error, 1)}
	dora := caller.Caller{Principal: kg.Principal{ID: "agent://dora", Method: "key"}}
	_, release, err := b.gate.Narrow(t.Context(), dora, created.Secret, func(err error) { ended.ended <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := b.keys.Revoke(t.Context(), admin, created.Name); err != nil {
		t.Fatal(err)
	}
	ended.wantEnd(t, kg.CodeUnauthenticated, "the key was revoked")
}
