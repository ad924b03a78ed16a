package intents_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// describe lists the events of an intent as type, actor and data, newest first.
func (s *server) describe(t testing.TB, id scope.ID, q scope.EventQuery) (out []string) {
	t.Helper()
	page, _, err := s.Events(t.Context(), as("ann"), id, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page {
		out = append(out, fmt.Sprintf("%s %s %s", e.Type, e.Actor, e.Data))
	}
	return out
}

// Managers assign agents, which have access from then on; each change has its event.
func TestAssignments(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{Grants: access})
	for _, row := range []struct {
		what, by string
		do       func(by string) error
		want     kg.Code
	}{
		{"a writer assigns", "bob", func(by string) error { _, err := s.Assign(t.Context(), as(by), it.ID, "wim", ""); return err }, kg.CodePermissionDenied},
		{"an outsider assigns", "gus", func(by string) error { _, err := s.Assign(t.Context(), as(by), it.ID, "gus", ""); return err }, kg.CodeScopeNotFound},
		{"the creator assigns", "ann", func(by string) error { _, err := s.Assign(t.Context(), as(by), it.ID, "wim", ""); return err }, ""},
		{"again", "ann", func(by string) error { _, err := s.Assign(t.Context(), as(by), it.ID, "wim", "worker"); return err }, ""},
		{"a coordinator", "ann", func(by string) error {
			_, err := s.Assign(t.Context(), as(by), it.ID, "cleo", scope.Coordinates)
			return err
		}, ""},
		{"a second one", "cleo", func(by string) error {
			_, err := s.Assign(t.Context(), as(by), it.ID, "bob", scope.Coordinates)
			return err
		}, kg.CodeNameTaken},
		{"an agent leaves", "wim", func(by string) error { _, err := s.Unassign(t.Context(), as(by), it.ID, "wim"); return err }, ""},
		{"again", "cleo", func(by string) error { _, err := s.Unassign(t.Context(), as(by), it.ID, "wim"); return err }, kg.CodeNotFound},
	} {
		wantCode(t, row.what, row.do(row.by), row.want)
	}
	got, err := s.Assignments(t.Context(), as("rita"), it.ID)
	if err != nil || len(got) != 1 || got[0].Agent != "agent://cleo" || got[0].By != "agent://ann" {
		t.Errorf("assigned are %+v, %v", got, err)
	}
	_, err = s.Get(t.Context(), as("wim"), it.ID)
	wantCode(t, "who left", err, kg.CodeScopeNotFound)
	_, err = s.Assignments(t.Context(), as("wim"), it.ID)
	wantCode(t, "who left lists", err, kg.CodeScopeNotFound)
	want := []string{
		`agent_unassigned agent://wim {"agent_id":"wim","role":"worker"}`,
		`agent_assigned agent://ann {"agent_id":"cleo","role":"coordinator"}`,
		`agent_assigned agent://ann {"agent_id":"wim","role":"worker"}`,
	}
	if got := s.describe(t, it.ID, scope.EventQuery{Descending: true, PageSize: 3}); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if now, err := s.Get(t.Context(), as("bob"), it.ID); err != nil || now.Version != 1 {
		t.Errorf("assignments change the version: %+v, %v", now, err)
	}
}

// An assignment says that it is a handoff if the same agent announced it.
func TestHandoff(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{Grants: []scope.Grant{{Agent: "bob", Level: scope.Admin}}})
	for _, row := range []struct{ says, assigns, want string }{
		{"bob", "bob", `{"agent_id":"wim","delegated_by":"bob","role":"worker"}`},
		{"ann", "bob", `{"agent_id":"wim","role":"worker"}`},
		{"", "bob", `{"agent_id":"wim","role":"worker"}`},
	} {
		if row.says != "" {
			if _, err := s.AppendEvent(t.Context(), as(row.says), it.ID, intents.NewEvent{Type: intents.EventAssigned, Data: []byte(`{"agent_id":"wim","delegated_by":"bob"}`)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Assign(t.Context(), as(row.assigns), it.ID, "wim", ""); err != nil {
			t.Fatal(err)
		}
		if got := s.describe(t, it.ID, scope.EventQuery{Descending: true, PageSize: 1}); got[0] != "agent_assigned agent://bob "+row.want {
			t.Errorf("%+v: %s", row, got[0])
		}
		if _, err := s.Unassign(t.Context(), as("bob"), it.ID, "wim"); err != nil {
			t.Fatal(err)
		}
	}
}

// The access list is read by who reads the intent and changed by managers; what is granted
// and revoked has events.
func TestAccess(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{Access: scope.Access{Everybody: true}})
	if _, err := s.PatchState(t.Context(), as("gus"), it.ID, 1, []intents.Patch{set("n", "1")}); err != nil {
		t.Errorf("an open intent: %v", err)
	}
	g, err := s.Grant(t.Context(), as("ann"), it.ID, scope.Grant{Agent: "bob", Level: scope.Admin, Reason: "helps"})
	if err != nil || g.GrantedBy != "agent://ann" {
		t.Fatalf("granted %+v, %v", g, err)
	}
	if again, err := s.Grant(t.Context(), as("ann"), it.ID, scope.Grant{Agent: "bob", Level: scope.Admin, Reason: "helps"}); err != nil || again.ID != g.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	list, err := s.SetAccess(t.Context(), as("bob"), it.ID, intents.AccessList{Grants: []scope.Grant{*g, {Role: "chief", Level: scope.Read, ExpiresAt: s.now().Add(time.Minute)}}})
	if err != nil || list.Everybody || len(list.Grants) != 2 || list.Grants[0].ID != g.ID {
		t.Fatalf("set %+v, %v", list, err)
	}
	_, err = s.Access(t.Context(), as("gus"), it.ID)
	wantCode(t, "an outsider reads", err, kg.CodeScopeNotFound)
	_, err = s.SetAccess(t.Context(), as("gus"), it.ID, intents.AccessList{})
	wantCode(t, "an outsider sets", err, kg.CodeScopeNotFound)
	_, err = s.Revoke(t.Context(), as("bob"), it.ID, "none")
	wantCode(t, "revoke nothing", err, kg.CodeNotFound)
	s.advance(time.Minute)
	if list, err := s.Access(t.Context(), as("bob"), it.ID); err != nil || len(list.Grants) != 1 {
		t.Errorf("after the expiry %+v, %v", list, err)
	}
	if _, err := s.Revoke(t.Context(), as("bob"), it.ID, g.ID); err != nil {
		t.Error(err)
	}
	_, err = s.Access(t.Context(), as("bob"), it.ID)
	wantCode(t, "who revoked its own", err, kg.CodeScopeNotFound)
	id := list.Grants[1].ID
	want := []string{
		`access_revoked agent://bob {"entry_id":"` + g.ID + `","permission":"admin","principal_id":"bob","principal_type":"agent"}`,
		`access_revoked agent://bob {"count":1,"entries":[{"permission":"write","principal_id":"*","principal_type":"everybody"}]}`,
		`access_granted agent://bob {"count":1,"entries":[{"entry_id":"` + id + `","permission":"read","principal_id":"chief","principal_type":"role"}]}`,
		`access_granted agent://ann {"entry_id":"` + g.ID + `","permission":"admin","principal_id":"bob","principal_type":"agent"}`,
	}
	if got := s.describe(t, it.ID, scope.EventQuery{Types: []string{intents.EventGranted, intents.EventRevoked}, Descending: true}); !slices.Equal(got, want) {
		t.Errorf("events %s, want %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The largest access list fits into its events.
func TestEventsOfLargeLists(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{})
	var grants []scope.Grant
	for i := range scope.MaxGrants {
		grants = append(grants, scope.Grant{Agent: kg.AgentID(fmt.Sprint("a", i)), Level: scope.Read})
	}
	if _, err := s.SetAccess(t.Context(), as("ann"), it.ID, intents.AccessList{Grants: grants}); err != nil {
		t.Fatal(err)
	}
	page, _, err := s.Events(t.Context(), as("ann"), it.ID, scope.EventQuery{Descending: true, PageSize: 1})
	var data struct {
		Entries []any
		Count   int
	}
	if err != nil || json.Unmarshal(page[0].Data, &data) != nil || len(data.Entries) != intents.MaxListedEntries || data.Count != scope.MaxGrants {
		t.Errorf("%d entries of %d, %v", len(data.Entries), data.Count, err)
	}
	_, err = s.SetAccess(t.Context(), as("ann"), it.ID, intents.AccessList{Grants: append(grants, scope.Grant{Agent: "one more", Level: scope.Read})})
	wantCode(t, "one more", err, kg.CodeLimitExceeded)
}

// Agents with Write append events of any type but those of changes, and all are verified.
func TestAppendEvent(t *testing.T) {
	s := serve(t)
	it := s.create(t, intents.NewIntent{Grants: access})
	object := func(n int) []byte { return []byte(`{"k":"` + strings.Repeat("x", n-len(`{"k":""}`)) + `"}`) }
	for _, row := range []struct {
		what, by string
		e        intents.NewEvent
		want     kg.Code
	}{
		{"a comment", "bob", intents.NewEvent{Type: "comment", Data: []byte(` {"b":1,"a":2}`), TraceID: "t", ParentEvent: 1}, ""},
		{"no data", "bob", intents.NewEvent{Type: "comment"}, ""},
		{"a reader", "rita", intents.NewEvent{Type: "comment"}, kg.CodePermissionDenied},
		{"an outsider", "gus", intents.NewEvent{Type: "comment"}, kg.CodeScopeNotFound},
		{"no type", "bob", intents.NewEvent{}, kg.CodeInvalid},
		{"a change", "bob", intents.NewEvent{Type: intents.EventStatusChanged}, kg.CodeInvalid},
		{"a lease", "bob", intents.NewEvent{Type: intents.EventLeaseReleased}, kg.CodeInvalid},
		{"a message", "bob", intents.NewEvent{Type: scope.EventMessage}, kg.CodeInvalid},
		{"a list", "bob", intents.NewEvent{Type: "comment", Data: []byte("[]")}, kg.CodeInvalid},
		{"no parent", "bob", intents.NewEvent{Type: "comment", ParentEvent: 99}, kg.CodeInvalid},
		{"data at the bound", "bob", intents.NewEvent{Type: "comment", Data: object(intents.MaxEventBytes)}, ""},
		{"data past it", "bob", intents.NewEvent{Type: "comment", Data: object(intents.MaxEventBytes + 1)}, kg.CodeLimitExceeded},
	} {
		got, err := s.AppendEvent(t.Context(), as(row.by), it.ID, row.e)
		wantCode(t, row.what, err, row.want)
		if err == nil && (got.Type != row.e.Type || got.Actor != kg.CanonicalAgent(row.by) || got.TraceID != row.e.TraceID || got.ParentEvent != row.e.ParentEvent || got.Hash == "") {
			t.Errorf("%s: %+v", row.what, got)
		}
	}
	if got := s.describe(t, it.ID, scope.EventQuery{PageSize: 3}); !slices.Equal(got[1:], []string{`comment agent://bob {"a":2,"b":1}`, `comment agent://bob {}`}) {
		t.Errorf("events %q", got)
	}
	s.restart(t)
	check, err := s.VerifyEvents(t.Context(), as("rita"), it.ID, 1)
	if err != nil || check.Verified != 4 {
		t.Errorf("verified %+v, %v", check, err)
	}
	_, err = s.VerifyEvents(t.Context(), as("gus"), it.ID, 1)
	wantCode(t, "an outsider verifies", err, kg.CodeScopeNotFound)
}
