package auth_test

import (
	"fmt"
	"testing"
	"time"

	"koine/internal/agents"
	"koine/internal/auth"
	"koine/kg"
)

// TestStanding proves the present rights of an earlier caller.
func TestStanding(t *testing.T) {
	good := tokens{"t": {Agent: "agent://dora", Expires: time.Now().Add(-time.Hour)}}
	for _, row := range []struct {
		name    string
		options auth.Options
		method  string
		become  func(b *bench, key string)
		want    string // of the rights, or of the error
	}{
		{"a key that is good", auth.Options{}, "key", nil, "[a b] [agent://x agent://dora]"},
		{"a key that was revoked", auth.Options{}, "key", func(b *bench, key string) { b.revoke(key) }, "UNAUTHENTICATED the key was revoked"},
		{"a key that was rotated", auth.Options{}, "key", func(b *bench, key string) { b.rotate(key) }, "[a b] [agent://x agent://dora]"},
		{"a key that was rotated twice", auth.Options{}, "key", func(b *bench, key string) { b.rotate(b.rotate(key)) }, "[a b] [agent://x agent://dora]"},
		{"a key whose successor was revoked", auth.Options{}, "key", func(b *bench, key string) { b.revoke(b.rotate(key)) }, "UNAUTHENTICATED the key was revoked"},
		{"a key that was rotated and revoked", auth.Options{}, "key", func(b *bench, key string) { b.rotate(key); b.revoke(key) }, "UNAUTHENTICATED the key was revoked"},
		{"an agent that is suspended", auth.Options{}, "key", func(b *bench, _ string) { b.suspend("dora") }, "PERMISSION_DENIED the agent agent://dora is suspended"},
		{"a token that has ended", auth.Options{Tokens: good}, "jwt", nil, "[a b c] [agent://x agent://y]"},
		{"a token of an agent that is suspended", auth.Options{Tokens: good}, "jwt", func(b *bench, _ string) { b.suspend("dora") }, "PERMISSION_DENIED the agent agent://dora is suspended"},
		{"a token where none are taken", auth.Options{}, "jwt", nil, `UNAUTHENTICATED authentication method "jwt" is no longer accepted`},
		{"no credential", auth.Options{}, "open", nil, `UNAUTHENTICATED authentication method "open" is no longer accepted`},
		{"who works on the directory", auth.Options{}, kg.MethodLocal, func(b *bench, _ string) { b.suspend("dora") }, "[a b c] [agent://x agent://y]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t, row.options)
			created := b.create(auth.KeyRequest{Agent: "dora", Roles: []string{"a", "b"}, ActFor: []kg.AgentID{"x"}})
			// It had more when it asked than its key gives now.
			p := kg.Principal{ID: "agent://dora", Roles: []string{"a", "b", "c"}, ActFor: []kg.AgentID{"agent://x", "agent://y"}, Method: row.method, Key: created.Name}
			if row.become != nil {
				row.become(b, created.Name)
			}
			now, err := b.gate.CurrentRights(p)
			got := fmt.Sprint(now.Roles, " ", now.ActFor)
			if err != nil {
				got = fmt.Sprint(kg.CodeOf(err), " ", err)
			} else if now.ID != p.ID || now.Method != p.Method {
				t.Errorf("got %+v", now)
			}
			if got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
	b := newBench(t, auth.Options{})
	created := b.create(auth.KeyRequest{Agent: "chen"})
	for _, key := range []string{"", "000000000000", created.Name} {
		if _, err := b.gate.CurrentRights(kg.Principal{ID: "agent://dora", Method: "key", Key: key}); kg.CodeOf(err) != kg.CodeUnauthenticated {
			t.Errorf("with the key %q: %v", key, err)
		}
	}
}

// revoke, rotate and suspend are actions of an administrator.
func (b *bench) revoke(key string) {
	b.t.Helper()
	if _, err := b.keys.Revoke(b.t.Context(), admin, key); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) rotate(key string) (next string) {
	b.t.Helper()
	created, _, err := b.keys.Rotate(b.t.Context(), admin, key, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return created.Name
}

func (b *bench) suspend(agent kg.AgentID) {
	b.t.Helper()
	status := agents.Suspended
	if _, err := agents.NewService(b.store).Update(b.t.Context(), admin, agent, agents.Change{Status: &status}); err != nil {
		b.t.Fatal(err)
	}
}
