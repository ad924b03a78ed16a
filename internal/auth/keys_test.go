package auth_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/agents"
	"koine/internal/auth"
	"koine/kg"
)

func TestCreatedKeyIsItsAgent(t *testing.T) {
	b := newBench(t, auth.Options{})
	created := b.create(auth.KeyRequest{Agent: "dora", Label: "Dora's laptop", Roles: []string{"reviewer", "b", "b"}, ActFor: []kg.AgentID{"chen", "*"}})
	if !regexp.MustCompile(`^ak_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}$`).MatchString(created.Secret) || !strings.Contains(created.Secret, "_"+created.Name+"_") {
		t.Errorf("the key is %q, its name %q", created.Secret, created.Name)
	}
	a, err := b.admit(created.Secret)
	if err != nil {
		t.Fatal(err)
	}
	defer a.release()
	want := kg.Principal{ID: "agent://dora", Roles: []string{"b", "reviewer"}, ActFor: []kg.AgentID{"*", "agent://chen"}, Method: "key", Key: created.Name}
	if fmt.Sprint(a.principal) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", a.principal, want)
	}
	record, err := agents.NewService(b.store).Get(t.Context(), "dora")
	if err != nil || record == nil || record.Status != agents.Active || !slices.Equal(record.Roles, want.Roles) {
		t.Errorf("the agent's record is %+v, %v", record, err)
	}
	if test := b.create(auth.KeyRequest{Agent: "dora", Mode: auth.Test}); !strings.HasPrefix(test.Secret, "ak_test_") {
		t.Errorf("a test key is %q", test.Secret)
	}
}

// The stored part of a key does not reveal it, and each key has its own.
func TestNothingOfTheSecretIsStored(t *testing.T) {
	b := newBench(t, auth.Options{})
	created, other := b.create(auth.KeyRequest{Agent: "dora"}), b.create(auth.KeyRequest{Agent: "dora"})
	if created.Secret == other.Secret || created.Name == other.Name {
		t.Error("two keys are alike")
	}
	secret := created.Secret[strings.LastIndex(created.Secret, "_")+1:]
	s, err := b.store.View(t.Context(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for st, err := range s.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(st); strings.Contains(text, secret) {
			t.Errorf("stored: %s", text)
		}
	}
}

func TestRefusedKeys(t *testing.T) {
	b := newBench(t, auth.Options{RefuseTestKeys: true})
	created := b.create(auth.KeyRequest{Agent: "dora"})
	test := b.create(auth.KeyRequest{Agent: "dora", Mode: auth.Test})
	const invalid = "the credential is not valid"
	flipped := []byte(created.Secret)
	flipped[len(flipped)-1] ^= 1
	for _, row := range []struct{ name, credential, message string }{
		{"empty", "", invalid},
		{"no key at all", "hunter2", invalid},
		{"half a key", created.Secret[:30], invalid},
		{"another secret", string(flipped), invalid},
		{"another mode", strings.Replace(created.Secret, "live", "test", 1), invalid},
		{"another name", strings.Replace(created.Secret, created.Name, strings.Repeat("0", 12), 1), invalid},
		{"more behind it", created.Secret + "x", invalid},
		{"very long", "ak_live_" + strings.Repeat("x", 1<<16), invalid},
		{"a test key", test.Secret, "test keys are not accepted by this server"},
	} {
		if _, err := b.admit(row.credential); kg.CodeOf(err) != kg.CodeUnauthenticated || err.Error() != row.message {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
	if n := b.gate.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestRevokedKeyEndsWhatItOpened(t *testing.T) {
	b := newBench(t, auth.Options{})
	created, other := b.create(auth.KeyRequest{Agent: "dora"}), b.create(auth.KeyRequest{Agent: "dora"})
	open, err := b.admit(created.Secret)
	if err != nil {
		t.Fatal(err)
	}
	done, err := b.admit(created.Secret)
	if err != nil {
		t.Fatal(err)
	}
	done.release()
	stays, err := b.admit(other.Secret)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := b.keys.Revoke(t.Context(), admin, created.Name)
	if err != nil || gone.StateAt(time.Now()) != auth.Revoked {
		t.Fatalf("got %+v, %v", gone, err)
	}
	open.wantEnd(t, kg.CodeUnauthenticated, "the key was revoked")
	b.wantRefused(created.Secret, kg.CodeUnauthenticated, "the key was revoked")
	done.wantNoEnd(t)
	stays.wantNoEnd(t)
	again, err := b.keys.Revoke(t.Context(), admin, created.Name)
	if err != nil || !again.Revoked.Equal(gone.Revoked) {
		t.Errorf("revoked again: %+v, %v", again, err)
	}
	open.release()
	stays.release()
	if n := b.gate.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// Time passes in a bubble; the commits that it is about were made outside, by a
// real store with a real clock, so that a key ends many years after the bubble
// begins.
func TestExpiredKeyEndsWhatItOpened(t *testing.T) {
	var commits []*kg.Commit
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{OnSystemChange: func(c *kg.Commit) { commits = append(commits, c) }}})
	if err != nil {
		t.Fatal(err)
	}
	keys := auth.NewKeys(store)
	created, err := keys.Create(t.Context(), admin, auth.KeyRequest{Agent: "dora", Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	_, old, err := keys.Rotate(t.Context(), admin, created.Name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		table := auth.NewTable()
		b := &bench{t: t, gate: auth.NewGate(auth.Options{Keys: table})}
		table.Follow(commits[0])
		open, err := b.admit(created.Secret)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(created.Expires) - time.Hour) // when it was made
		synctest.Wait()
		open.wantNoEnd(t)
		table.Follow(commits[1])
		time.Sleep(time.Until(old.Expires) - 1)
		synctest.Wait()
		open.wantNoEnd(t)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		open.wantEnd(t, kg.CodeUnauthenticated, "the key has expired")
		b.wantRefused(created.Secret, kg.CodeUnauthenticated, "the key has expired")
	})
}

func TestRotation(t *testing.T) {
	b := newBench(t, auth.Options{})
	created := b.create(auth.KeyRequest{Agent: "dora", Label: "laptop", Roles: []string{"r"}, ActFor: []kg.AgentID{"chen"}, Lifetime: 48 * time.Hour})
	open, err := b.admit(created.Secret)
	if err != nil {
		t.Fatal(err)
	}
	next, old, err := b.keys.Rotate(t.Context(), admin, created.Name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, credential := range []string{created.Secret, next.Secret} {
		a, err := b.admit(credential)
		if err != nil {
			t.Fatalf("in the overlap: %v", err)
		}
		if a.principal.ID != "agent://dora" || !slices.Equal(a.principal.Roles, []string{"r"}) || !slices.Equal(a.principal.ActFor, []kg.AgentID{"agent://chen"}) {
			t.Errorf("got %+v", a.principal)
		}
		a.release()
	}
	if old.ReplacedBy != next.Name || old.Expires.Sub(next.Created) != time.Hour || next.Expires.Sub(next.Created) != 48*time.Hour || next.Label != "laptop" {
		t.Errorf("the old key is %+v, the new one %+v", old, next.Key)
	}
	open.wantNoEnd(t)
	if _, _, err := b.keys.Rotate(t.Context(), admin, created.Name, 0); kg.CodeOf(err) != kg.CodeInvalid {
		t.Errorf("rotated twice: %v", err)
	}
	// Without an overlap the old key ends at once, with the requests that it opened.
	open, err = b.admit(next.Secret)
	if err != nil {
		t.Fatal(err)
	}
	last, old, err := b.keys.Rotate(t.Context(), admin, next.Name, 0)
	if err != nil {
		t.Fatal(err)
	}
	open.wantEnd(t, kg.CodeUnauthenticated, "the key has expired")
	b.wantRefused(next.Secret, kg.CodeUnauthenticated, "the key has expired")
	// The overlap does not make an old key live longer than it would have.
	short := b.create(auth.KeyRequest{Agent: "dora", Lifetime: time.Hour})
	_, old, err = b.keys.Rotate(t.Context(), admin, short.Name, 10*time.Hour)
	if err != nil || !old.Expires.Equal(short.Expires) {
		t.Errorf("the old key lives until %v, made until %v (%v)", old.Expires, short.Expires, err)
	}
	for _, overlap := range []time.Duration{-1, auth.MaxOverlap + 1} {
		if _, _, err := b.keys.Rotate(t.Context(), admin, last.Name, overlap); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("an overlap of %v: %v", overlap, err)
		}
	}
	if _, _, err := b.keys.Rotate(t.Context(), admin, last.Name, auth.MaxOverlap); err != nil {
		t.Errorf("the longest overlap: %v", err)
	}
}

func TestKeysAreForAdministrators(t *testing.T) {
	b := newBench(t, auth.Options{})
	created := b.create(auth.KeyRequest{Agent: "dora"})
	m := kg.Meta{Principal: kg.Principal{ID: "agent://dora", Roles: []string{"reviewer"}, Method: "key"}}
	_, create := b.keys.Create(t.Context(), m, auth.KeyRequest{Agent: "dora"})
	_, _, rotate := b.keys.Rotate(t.Context(), m, created.Name, 0)
	_, revoke := b.keys.Revoke(t.Context(), m, created.Name)
	_, list := b.keys.List(t.Context(), m.Principal, "", false)
	for name, err := range map[string]error{"create": create, "rotate": rotate, "revoke": revoke, "list": list} {
		if kg.CodeOf(err) != kg.CodePermissionDenied {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, name := range []string{"", "nothing", strings.Repeat("0", 12), created.Name + "x"} {
		if _, err := b.keys.Revoke(t.Context(), admin, name); kg.CodeOf(err) != kg.CodeNotFound {
			t.Errorf("revoke %q: %v", name, err)
		}
	}
}

func TestListOfKeys(t *testing.T) {
	b := newBench(t, auth.Options{})
	one, two := b.create(auth.KeyRequest{Agent: "dora"}), b.create(auth.KeyRequest{Agent: "chen"})
	if _, err := b.keys.Revoke(t.Context(), admin, one.Name); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		agent kg.AgentID
		ended bool
		want  []string
	}{
		{"", false, []string{two.Name}},
		{"", true, []string{one.Name, two.Name}},
		{"dora", true, []string{one.Name}},
		{"agent://chen", false, []string{two.Name}},
		{"nobody", true, nil},
	} {
		list, err := b.keys.List(t.Context(), admin.Principal, row.agent, row.ended)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range list {
			got = append(got, k.Name)
		}
		slices.Sort(got)
		slices.Sort(row.want)
		if !slices.Equal(got, row.want) {
			t.Errorf("%q, ended %v: got %v, want %v", row.agent, row.ended, got, row.want)
		}
	}
}

func TestWhatAKeyCanBe(t *testing.T) {
	b := newBench(t, auth.Options{})
	many := func(n int, f func(int) string) (out []string) {
		for i := range n {
			out = append(out, f(i))
		}
		return out
	}
	roles := func(n int) []string { return many(n, func(i int) string { return fmt.Sprintf("r%d", i) }) }
	others := func(n int) (out []kg.AgentID) {
		for _, s := range many(n, func(i int) string { return fmt.Sprintf("a%d", i) }) {
			out = append(out, kg.AgentID(s))
		}
		return out
	}
	for _, row := range []struct {
		name string
		wish auth.KeyRequest
		code kg.Code
	}{
		{"no agent", auth.KeyRequest{}, kg.CodeInvalid},
		{"a bad agent", auth.KeyRequest{Agent: "a b"}, kg.CodeInvalid},
		{"koine itself", auth.KeyRequest{Agent: kg.System}, kg.CodeInvalid},
		{"nobody", auth.KeyRequest{Agent: "anonymous"}, kg.CodeInvalid},
		{"a bad mode", auth.KeyRequest{Agent: "a", Mode: "dead"}, kg.CodeInvalid},
		{"a longest label", auth.KeyRequest{Agent: "a", Label: strings.Repeat("x", auth.MaxLabelBytes)}, ""},
		{"a label too long", auth.KeyRequest{Agent: "a", Label: strings.Repeat("x", auth.MaxLabelBytes+1)}, kg.CodeInvalid},
		{"a label of two lines", auth.KeyRequest{Agent: "a", Label: "x\ny"}, kg.CodeInvalid},
		{"most roles", auth.KeyRequest{Agent: "a", Roles: roles(auth.MaxRoles)}, ""},
		{"too many roles", auth.KeyRequest{Agent: "a", Roles: roles(auth.MaxRoles + 1)}, kg.CodeLimitExceeded},
		{"a longest role", auth.KeyRequest{Agent: "a", Roles: []string{strings.Repeat("x", auth.MaxRoleBytes)}}, ""},
		{"a role too long", auth.KeyRequest{Agent: "a", Roles: []string{strings.Repeat("x", auth.MaxRoleBytes+1)}}, kg.CodeInvalid},
		{"an empty role", auth.KeyRequest{Agent: "a", Roles: []string{""}}, kg.CodeInvalid},
		{"a role with a space", auth.KeyRequest{Agent: "a", Roles: []string{"a b"}}, kg.CodeInvalid},
		{"most agents", auth.KeyRequest{Agent: "a", ActFor: others(auth.MaxActFor)}, ""},
		{"too many agents", auth.KeyRequest{Agent: "a", ActFor: others(auth.MaxActFor + 1)}, kg.CodeLimitExceeded},
		{"a bad agent to act for", auth.KeyRequest{Agent: "a", ActFor: []kg.AgentID{"a b"}}, kg.CodeInvalid},
		{"a negative life", auth.KeyRequest{Agent: "a", Lifetime: -1}, kg.CodeInvalid},
	} {
		if _, err := b.keys.Create(t.Context(), admin, row.wish); kg.CodeOf(err) != row.code {
			t.Errorf("%s: got %v, want %q", row.name, err, row.code)
		}
	}
}

// A table that is loaded equals one that followed the log.
func TestTableLoads(t *testing.T) {
	b := newBench(t, auth.Options{})
	good, revoked := b.create(auth.KeyRequest{Agent: "dora", Roles: []string{kg.RoleAdmin}}), b.create(auth.KeyRequest{Agent: "dora"})
	if _, err := b.keys.Revoke(t.Context(), admin, revoked.Name); err != nil {
		t.Fatal(err)
	}
	fresh := auth.NewTable()
	if fresh.HasAdmin(time.Now()) {
		t.Error("an empty table has an administrator")
	}
	gate := auth.NewGate(auth.Options{Keys: fresh})
	b.load(fresh.Load)
	if _, release, err := gate.Admit(t.Context(), good.Secret, nil); err != nil {
		t.Error(err)
	} else {
		release()
	}
	if _, _, err := gate.Admit(t.Context(), revoked.Secret, nil); kg.CodeOf(err) != kg.CodeUnauthenticated {
		t.Errorf("got %v", err)
	}
	if !fresh.HasAdmin(time.Now()) {
		t.Error("the administrator's key is not known")
	}
}

// A patch cannot make a key, nor touch one.
func TestKeysCannotBeForged(t *testing.T) {
	b := newBench(t, auth.Options{})
	_, err := b.store.Update(t.Context(), admin, func(tx *kg.Tx) error {
		return tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:koine:key:000000000000"), Predicate: kg.IRI(kg.OwnVocabulary + "keyHash"), Object: kg.String("x"), Graph: kg.SystemGraph}})
	})
	if kg.CodeOf(err) != kg.CodeReserved {
		t.Errorf("got %v", err)
	}
}
