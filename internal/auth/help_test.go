package auth_test

import (
	"context"
	"testing"
	"time"

	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/observertest"
	"koine/kg"
)

// patience bounds the time of a test for expected events.
const patience = time.Minute

// bench is a store with everything that knows callers.
type bench struct {
	t        testing.TB
	store    *kg.Store
	keys     *auth.Keys
	table    *auth.Table
	registry *agents.Registry
	gate     *auth.Gate
}

func newBench(t testing.TB, options auth.Options) *bench {
	t.Helper()
	b := &bench{t: t, table: auth.NewTable(), registry: agents.NewRegistry(nil)}
	follow := func(c *kg.Commit) { b.registry.Follow(c); b.table.Follow(c) }
	dir := t.TempDir()
	observertest.Replay(t, dir)
	store, err := kg.Open(dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{OnSystemChange: follow}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.registry.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	b.store, b.keys = store, auth.NewKeys(store)
	options.Keys, options.Agents = b.table, b.registry
	b.gate = auth.NewGate(options)
	b.registry.OnSuspend = b.gate.Recheck
	b.load(b.registry.Load)
	b.load(b.table.Load)
	return b
}

func (b *bench) load(load func(context.Context, *kg.Store) error) {
	b.t.Helper()
	if err := load(b.t.Context(), b.store); err != nil {
		b.t.Fatal(err)
	}
}

var admin = kg.Meta{Principal: kg.Principal{ID: "agent://root", Roles: []string{kg.RoleAdmin}, Method: "key"}}

func (b *bench) create(request auth.KeyRequest) auth.CreatedKey {
	b.t.Helper()
	created, err := b.keys.Create(b.t.Context(), admin, request)
	if err != nil {
		b.t.Fatal(err)
	}
	return created
}

// admitted is a session.
type admitted struct {
	principal kg.Principal
	release   func()
	ended     chan error
}

func (b *bench) admit(credential string) (admitted, error) {
	a := admitted{ended: make(chan error, 1)}
	var err error
	a.principal, a.release, err = b.gate.Admit(b.t.Context(), credential, func(err error) { a.ended <- err })
	return a, err
}

func (b *bench) wantRefused(credential string, code kg.Code, message string) {
	b.t.Helper()
	_, err := b.admit(credential)
	if kg.CodeOf(err) != code || err.Error() != message {
		b.t.Errorf("got %v (%s), want %s (%s)", err, kg.CodeOf(err), message, code)
	}
	hint := "" // the hint, which does not depend on the fault
	if code == kg.CodeUnauthenticated {
		hint = "Send the key or token whole, as it was given to you. If it is, get a new one: a key from an administrator of this server, a token from your identity provider."
	}
	if e := kg.AsError(err); e.Hint != hint {
		b.t.Errorf("%s: the hint is %q", message, e.Hint)
	}
}

func (a admitted) wantEnd(t *testing.T, code kg.Code, message string) {
	t.Helper()
	select {
	case err := <-a.ended:
		if kg.CodeOf(err) != code || err.Error() != message {
			t.Errorf("ended with %v (%s), want %s (%s)", err, kg.CodeOf(err), message, code)
		}
	case <-time.After(patience):
		t.Errorf("did not end; want %s", message)
	}
}

func (a admitted) wantNoEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-a.ended:
		t.Errorf("ended with %v", err)
	default:
	}
}
