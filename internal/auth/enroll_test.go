package auth_test

import (
	"encoding/json"
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

func (b *bench) enroll(e auth.Enrollment) (auth.Enrolled, error) {
	return b.keys.Enroll(b.t.Context(), kg.Meta{}, agents.NewDirectory(b.store, agents.DirectoryOptions{}), e)
}

func (b *bench) mustEnroll(e auth.Enrollment) auth.Enrolled {
	b.t.Helper()
	done, err := b.enroll(e)
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

// An agent that registers has record, card and key from one commit.
func TestEnroll(t *testing.T) {
	b := newBench(t, auth.Options{})
	before := b.store.Head().Revision
	done := b.mustEnroll(auth.Enrollment{
		Prefix: "ag_", Roles: []string{"agentchat"}, Label: "registration",
		Record: agents.Record{Name: "research", Owner: "agent://org", Registration: &agents.Registration{Capabilities: []string{"web-search"}, Metadata: json.RawMessage(`{"a":1}`)}},
	})
	if got := b.store.Head().Revision - before; got != 1 {
		t.Errorf("%d commits", got)
	}
	if !regexp.MustCompile(`^agent://ag_[0-9A-Za-z]{20}$`).MatchString(string(done.Record.ID)) || !strings.HasPrefix(done.Key.Secret, "ak_live_") {
		t.Errorf("got %+v", done)
	}
	a, err := b.admit(done.Key.Secret)
	if err != nil {
		t.Fatal(err)
	}
	defer a.release()
	if a.principal.ID != done.Record.ID || !slices.Equal(a.principal.Roles, []string{"agentchat"}) || len(a.principal.ActFor) > 0 {
		t.Errorf("the key is %+v", a.principal)
	}
	r, err := agents.NewDirectory(b.store, agents.DirectoryOptions{}).Get(t.Context(), done.Record.ID)
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "research" || r.Owner != "agent://org" || string(r.Registration.Metadata) != `{"a":1}` || !slices.Equal(r.Registration.Capabilities, []string{"web-search"}) || !slices.Equal(r.Roles, []string{"agentchat"}) {
		t.Errorf("the record is %+v, %+v", r, r.Registration)
	}
	if test := b.mustEnroll(auth.Enrollment{Mode: auth.Test}); !strings.HasPrefix(test.Key.Secret, "ak_test_") {
		t.Errorf("a test key is %q", test.Key.Secret)
	}
}

// Nobody registers as an agent that exists, as the server, as an administrator, or with a
// card past its bounds; and then nothing is written.
func TestEnrollRefuses(t *testing.T) {
	b := newBench(t, auth.Options{})
	b.create(auth.KeyRequest{Agent: "dora"})
	full := make([]string, agents.MaxCapabilities+1)
	for i := range full {
		full[i] = fmt.Sprint(i)
	}
	before := b.store.Head().Revision
	for _, row := range []struct {
		name string
		e    auth.Enrollment
		code kg.Code
	}{
		{"an agent that exists", auth.Enrollment{Agent: "dora"}, kg.CodePermissionDenied},
		{"the server", auth.Enrollment{Agent: kg.System}, kg.CodeInvalid},
		{"nobody", auth.Enrollment{Agent: kg.Anonymous}, kg.CodeInvalid},
		{"an administrator", auth.Enrollment{Roles: []string{"x", kg.RoleAdmin}}, kg.CodePermissionDenied},
		{"no role name", auth.Enrollment{Roles: []string{"a b"}}, kg.CodeInvalid},
		{"a status", auth.Enrollment{Record: agents.Record{Status: agents.Suspended}}, kg.CodeInvalid},
		{"a long name", auth.Enrollment{Record: agents.Record{Name: strings.Repeat("x", agents.MaxNameBytes+1)}}, kg.CodeInvalid},
		{"too many capabilities", auth.Enrollment{Record: agents.Record{Registration: &agents.Registration{Capabilities: full}}}, kg.CodeLimitExceeded},
		{"metadata that is no object", auth.Enrollment{Record: agents.Record{Registration: &agents.Registration{Metadata: json.RawMessage("1")}}}, kg.CodeInvalid},
	} {
		if done, err := b.enroll(row.e); kg.CodeOf(err) != row.code || done.Key.Secret != "" {
			t.Errorf("%s: got %q, %v", row.name, done.Key.Secret, err)
		}
	}
	if b.store.Head().Revision != before {
		t.Error("a refused registration wrote something")
	}
	b.mustEnroll(auth.Enrollment{Record: agents.Record{Name: strings.Repeat("x", agents.MaxNameBytes), Registration: &agents.Registration{Capabilities: full[1:]}}})
}

// Agents that register leave ReservedKeys keys to administrators.
func TestEnrollLeavesKeysToAdministrators(t *testing.T) {
	b := newBench(t, auth.Options{})
	if err := auth.FillKeys(b.t.Context(), b.store, auth.MaxKeys-auth.ReservedKeys-1); err != nil {
		t.Fatal(err)
	}
	b.mustEnroll(auth.Enrollment{})
	if _, err := b.enroll(auth.Enrollment{}); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("past the limit: %v", err)
	}
	b.create(auth.KeyRequest{Agent: "dora"})
}

// An agent's own rotation with an overlap leaves ReservedKeys keys to administrators; one without
// adds no key.
func TestRotateOwnLeavesKeysToAdministrators(t *testing.T) {
	b := newBench(t, auth.Options{})
	if err := auth.FillKeys(b.t.Context(), b.store, auth.MaxKeys-auth.ReservedKeys-2); err != nil {
		t.Fatal(err)
	}
	done := b.mustEnroll(auth.Enrollment{})
	p := kg.Principal{ID: done.Record.ID, Method: "key", Key: done.Key.Name}
	rotate := func(overlap time.Duration) error {
		made, _, err := b.keys.RotateOwn(t.Context(), kg.Meta{Principal: p}, overlap)
		if err == nil {
			p.Key = made.Name
		}
		return err
	}
	if err := rotate(time.Hour); err != nil { // the last key that is not reserved
		t.Fatal(err)
	}
	if err := rotate(time.Nanosecond); kg.CodeOf(err) != kg.CodeLimitExceeded || !strings.Contains(err.Error(), "rotate without an overlap") {
		t.Errorf("with an overlap: %v", err)
	}
	if err := rotate(0); err != nil {
		t.Errorf("without an overlap: %v", err)
	}
	b.create(auth.KeyRequest{Agent: "dora"})
}

// An agent replaces its key: the old one is valid for the overlap, then its sessions end.
func TestRotateOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, auth.Options{})
		first := b.mustEnroll(auth.Enrollment{Roles: []string{"agentchat"}})
		old, err := b.admit(first.Key.Secret)
		if err != nil {
			t.Fatal(err)
		}
		next, was, err := b.keys.RotateOwn(t.Context(), kg.Meta{Principal: old.principal}, time.Hour)
		if err != nil || was.ReplacedBy != next.Name || !slices.Equal(next.Roles, first.Key.Roles) {
			t.Fatalf("got %+v, %v", next, err)
		}
		now, err := b.admit(next.Secret)
		if err != nil || now.principal.ID != first.Record.ID {
			t.Fatal(now.principal, err)
		}
		if _, _, err := b.keys.RotateOwn(t.Context(), kg.Meta{Principal: old.principal}, 0); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("the old key is rotated again: %v", err)
		}
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		old.wantNoEnd(t)
		time.Sleep(2 * time.Second)
		old.wantEnd(t, kg.CodeUnauthenticated, "the key has expired")
		now.wantNoEnd(t)
		b.wantRefused(first.Key.Secret, kg.CodeUnauthenticated, "the key has expired")
		now.release()
	})
}

func TestRotateOwnRefuses(t *testing.T) {
	b := newBench(t, auth.Options{})
	key := b.create(auth.KeyRequest{Agent: "dora", Roles: []string{"a", "b"}})
	reader := b.create(auth.KeyRequest{Agent: "dora", Roles: []string{kg.RoleReader}})
	p := kg.Principal{ID: "agent://dora", Roles: key.Roles, Method: "key", Key: key.Name}
	for _, row := range []struct {
		name    string
		by      kg.Principal
		overlap time.Duration
		code    kg.Code
	}{
		{"a negative overlap", p, -1, kg.CodeInvalid},
		{"too long an overlap", p, auth.MaxOwnOverlap + 1, kg.CodeInvalid},
		{"a token", kg.Principal{ID: p.ID, Roles: p.Roles, Method: "jwt"}, 0, kg.CodePermissionDenied},
		{"open mode", kg.Principal{ID: p.ID, Roles: []string{kg.RoleAdmin}, Method: kg.MethodOpen}, 0, kg.CodePermissionDenied},
		{"fewer roles", kg.Principal{ID: p.ID, Roles: []string{"a"}, Method: "key", Key: key.Name}, 0, kg.CodePermissionDenied},
		{"the key of another", kg.Principal{ID: "agent://eve", Roles: p.Roles, Method: "key", Key: key.Name}, 0, kg.CodePermissionDenied},
		{"a reader", kg.Principal{ID: p.ID, Roles: reader.Roles, Method: "key", Key: reader.Name}, 0, kg.CodePermissionDenied},
		{"an unknown key", kg.Principal{ID: p.ID, Method: "key", Key: strings.Repeat("0", 12)}, 0, kg.CodeNotFound},
	} {
		if made, _, err := b.keys.RotateOwn(t.Context(), kg.Meta{Principal: row.by}, row.overlap); kg.CodeOf(err) != row.code || made.Secret != "" {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	rotate := func(overlap time.Duration) error {
		made, _, err := b.keys.RotateOwn(t.Context(), kg.Meta{Principal: p}, overlap)
		if err == nil {
			p.Key = made.Name
		}
		return err
	}
	for range auth.MaxOwnKeys - 2 { // the reader's and the first are active
		if err := rotate(auth.MaxOwnOverlap); err != nil {
			t.Fatal(err)
		}
	}
	if err := rotate(auth.MaxOwnOverlap); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("past the active keys: %v", err)
	}
}

// The records of an agent's rotated keys do not grow without a bound, and the keys that
// were not rotated stay.
func TestRotateOwnTidies(t *testing.T) {
	b := newBench(t, auth.Options{})
	done := b.mustEnroll(auth.Enrollment{})
	p := kg.Principal{ID: done.Record.ID, Method: "key", Key: done.Key.Name}
	for range auth.MaxEndedKeys + 5 {
		made, _, err := b.keys.RotateOwn(t.Context(), kg.Meta{Principal: p}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Key = made.Name
	}
	list, err := b.keys.List(t.Context(), admin.Principal, p.ID, true)
	if err != nil || len(list) != auth.MaxEndedKeys+1 || list[len(list)-1].Name != p.Key && !slices.ContainsFunc(list, func(k auth.Key) bool { return k.Name == p.Key }) {
		t.Errorf("%d keys, %v", len(list), err)
	}
}

// An operator may choose the text of a key; its hash is stored like any other.
func TestGivenSecret(t *testing.T) {
	b := newBench(t, auth.Options{})
	secret := "ak_live_0123456789Ab_" + strings.Repeat("x1Y", 14) + "z"
	made, err := b.keys.Create(t.Context(), admin, auth.KeyRequest{Agent: "dora", Secret: secret})
	if err != nil || made.Name != "0123456789Ab" || made.Secret != secret {
		t.Fatal(made.Name, err)
	}
	if _, err := b.admit(secret); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		secret, secret + "x", secret[:len(secret)-1], strings.Replace(secret, "live", "test", 1), strings.Replace(secret, "x1Y", "x-Y", 1),
		strings.Replace(secret, "Ab_", "A__", 1), "hunter2",
	} {
		_, err := b.keys.Create(t.Context(), admin, auth.KeyRequest{Agent: "dora", Secret: bad})
		if kg.CodeOf(err) != kg.CodeInvalid || strings.Contains(fmt.Sprintf("%+v", kg.AsError(err)), "x1Yx1Y") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
