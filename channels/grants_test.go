package channels_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

func (s *server) grant(t testing.TB, id scope.ID, g scope.Grant) *scope.Grant {
	t.Helper()
	made, err := s.managed().Grant(within(t), as("ann"), id, g)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Each level of access allows what the levels before it allow, and the rest is denied by
// name.
func TestLevelsOfAccess(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Title: "research", Grants: []scope.Grant{{Agent: "rita", Level: scope.Read}}})
	s.grant(t, intent.ID, scope.Grant{Agent: "wim", Level: scope.Write, Reason: "helps"})
	s.grant(t, intent.ID, scope.Grant{Role: "chief", Level: scope.Admin})
	shared := s.makeIn(t, intent.ID, "shared", channel.ByScope)
	s.makeIn(t, intent.ID, "closed circle", channel.Explicit, "rita")
	s.say(t, "ann", shared.ID, "hello")
	denied, hidden := kg.CodePermissionDenied, kg.CodeScopeNotFound
	title, n := "other", 0
	for _, row := range []struct {
		by                                       channels.Caller
		level                                    scope.Level
		read, publish, create, task, manage, own kg.Code
	}{
		{as("ann"), scope.Admin, "", "", "", "", "", ""},
		{withRole("cleo", "chief"), scope.Admin, "", "", "", "", "", ""},
		{as("wim"), scope.Write, "", "", "", "", denied, denied},
		{as("rita"), scope.Read, "", denied, denied, denied, denied, denied},
		{as("gus"), "", kg.CodeChannelNotFound, kg.CodeChannelNotFound, hidden, hidden, hidden, kg.CodeChannelNotFound},
	} {
		who := string(row.by.Principal.ID)
		level, err := s.Scopes().LevelOf(row.by, intent.ID)
		if row.level == "" {
			wantCode(t, who, err, hidden)
		} else if level != row.level || err != nil {
			t.Errorf("%s has level %q, want %q: %v", who, level, row.level, err)
		}
		_, _, err = s.History(within(t), row.by, shared.ID, channels.HistoryQuery{})
		wantCode(t, who+" reads", err, row.read)
		_, err = s.Publish(within(t), row.by, channels.Publication{Channel: shared.ID, Parts: text("hi")})
		wantCode(t, who+" publishes", err, row.publish)
		n++
		_, err = s.CreateIn(within(t), row.by, intent.ID, channel.Draft{Name: fmt.Sprint("made ", n)})
		wantCode(t, who+" creates a channel", err, row.create)
		_, err = s.PublishByName(within(t), row.by, intent.ID, fmt.Sprint("named ", n), channels.Publication{Parts: text("hi")})
		wantCode(t, who+" publishes by name", err, row.create)
		_, err = s.Scopes().Create(within(t), row.by, scope.Draft{Parent: intent.ID})
		wantCode(t, who+" creates a task", err, row.task)
		sc, err := s.Scopes().Get(within(t), as("ann"), intent.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Scopes().Update(within(t), row.by, intent.ID, scope.Update{ExpectedVersion: sc.Version, Title: &title})
		wantCode(t, who+" manages", err, row.manage)
		_, err = s.managed().Assign(within(t), row.by, intent.ID, "ed", "")
		wantCode(t, who+" assigns", err, row.manage)
		c, err := s.Get(within(t), as("ann"), shared.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Update(within(t), row.by, shared.ID, channel.Update{ExpectedVersion: c.Version, Topic: &title})
		wantCode(t, who+" changes a channel", err, row.own)
	}
	// Who only reads is not asked, and answers nothing.
	_, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: shared.ID, Parts: text("?"), Envelope: message.Envelope{Interaction: message.Request, To: "agent://rita"}})
	wantCode(t, "a request to who only reads", err, kg.CodeNotMember)
	ask, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: shared.ID, Parts: text("?"), Envelope: message.Envelope{Interaction: message.Request, To: "agent://wim"}})
	if err != nil {
		t.Fatal(err)
	}
	mine, err := s.Publish(within(t), as("wim"), channels.Publication{Channel: shared.ID, Parts: text("mine")})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Scopes().Get(within(t), as("ann"), intent.ID)
	if err != nil {
		t.Fatal(err)
	}
	var grants []scope.Grant
	for _, g := range list.Grants {
		if g.Agent == "agent://wim" {
			g.Level = scope.Read
		}
		grants = append(grants, g)
	}
	if list, err = s.managed().SetGrants(within(t), as("ann"), intent.ID, nil, grants); err != nil || len(list.Grants) != 3 {
		t.Fatalf("set: %+v, %v", list, err)
	}
	_, err = s.Publish(within(t), as("wim"), channels.Publication{Channel: shared.ID, Parts: text("!"), Envelope: message.Envelope{Interaction: message.Response, Correlation: ask.Message.ID}})
	wantCode(t, "a response of who reads only by now", err, denied)
	_, err = s.Retract(within(t), as("wim"), channels.Retraction{Channel: shared.ID, Message: mine.Message.ID})
	wantCode(t, "a retraction", err, denied)
}

// A grant gives no access from its expiry on, before anything is written; then a commit
// removes it, which ends the streams and watches of who lost access. Both hold after a
// restart too.
func TestGrantsExpire(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	intent := s.scope(t, scope.Draft{Title: "research"})
	shared := s.makeIn(t, intent.ID, "shared", channel.ByScope)
	due := clock.now().Add(time.Minute)
	s.grant(t, intent.ID, scope.Grant{Agent: "rita", Level: scope.Read, ExpiresAt: due})
	s.grant(t, intent.ID, scope.Grant{Agent: "wim", Level: scope.Write, ExpiresAt: due})
	s.grant(t, intent.ID, scope.Grant{Agent: "wim", Level: scope.Read})
	_, err := s.managed().Grant(within(t), as("ann"), intent.ID, scope.Grant{Agent: "late", Level: scope.Read, ExpiresAt: clock.now()})
	wantCode(t, "a grant that has expired", err, kg.CodeInvalid)
	s.restart(t)

	ended := make(chan error, 4)
	stream, err := s.Stream(within(t), as("rita"), shared.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	go func() {
		for _, err := range stream.Messages() {
			ended <- err
		}
	}()
	events, err := s.StreamEvents(within(t), as("rita"), shared.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	go func() {
		for _, err := range events.All() {
			ended <- err
		}
	}()
	feed, err := s.StreamScope(within(t), as("rita"), intent.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	go func() {
		for _, err := range feed.Messages() {
			ended <- err
		}
	}()
	stays, err := s.Stream(within(t), as("wim"), shared.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stays.Close()
	view := kg.View{Principal: as("rita").Principal, AllGraphs: true}
	watcher, err := s.store.Watch(within(t), kg.Filter{Patterns: []kg.Pattern{{Graph: intent.ID.RecordGraph()}}, View: view}, s.store.Head())
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	go func() {
		for _, err := range watcher.Events() {
			if err != nil {
				ended <- err
			}
		}
	}()

	clock.step(time.Minute - time.Millisecond)
	if level, err := s.Scopes().LevelOf(as("wim"), intent.ID); level != scope.Write || err != nil {
		t.Errorf("just before the expiry wim has level %q: %v", level, err)
	}
	clock.step(time.Millisecond)
	_, err = s.Scopes().LevelOf(as("rita"), intent.ID)
	wantCode(t, "at the expiry", err, kg.CodeScopeNotFound)
	if level, err := s.Scopes().LevelOf(as("wim"), intent.ID); level != scope.Read || err != nil {
		t.Errorf("at the expiry wim has level %q: %v", level, err)
	}
	_, _, err = s.History(within(t), as("rita"), shared.ID, channels.HistoryQuery{})
	wantCode(t, "at the expiry", err, kg.CodeChannelNotFound)
	_, err = s.Publish(within(t), as("wim"), channels.Publication{Channel: shared.ID, Parts: text("hi")})
	wantCode(t, "at the expiry", err, kg.CodePermissionDenied)
	want := map[kg.Code]int{kg.CodeChannelNotFound: 2, kg.CodeAccessChanged: 1, kg.CodeScopeNotFound: 1}
	for range 4 {
		select {
		case err := <-ended:
			if want[kg.CodeOf(err)]--; want[kg.CodeOf(err)] < 0 {
				t.Errorf("ended with %v", err)
			}
		case <-within(t).Done():
			t.Fatalf("streams did not end: %v remain", want)
		}
	}
	eventually(t, "the expired grants are removed", func() bool {
		sc, err := s.Scopes().Get(within(t), as("ann"), intent.ID)
		return err == nil && len(sc.Grants) == 1 && sc.Grants[0].Agent == "agent://wim" && sc.Version == 1
	})
	s.say(t, "ann", shared.ID, "for wim")
	for m, err := range stays.Messages() {
		if err != nil || m.Author != "agent://ann" {
			t.Errorf("who keeps access reads %+v, %v", m, err)
		}
		break
	}

	// What was due while the server was down gives nothing afterwards, and is removed.
	s.grant(t, intent.ID, scope.Grant{Agent: "rita", Level: scope.Read, ExpiresAt: clock.now().Add(time.Second)})
	s.Close()
	clock.step(time.Hour)
	s.restart(t)
	_, err = s.Scopes().Get(within(t), as("rita"), intent.ID)
	wantCode(t, "after the restart", err, kg.CodeScopeNotFound)
	eventually(t, "the expired grant is removed", func() bool {
		sc, err := s.Scopes().Get(within(t), as("ann"), intent.ID)
		return err == nil && len(sc.Grants) == 1
	})
	s.store.MustCheck(within(t))
}

// One agent is the coordinator; assignments give access while they last.
func TestAssignments(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Title: "research"})
	task := s.scope(t, scope.Draft{Parent: intent.ID, ExternalID: "task-123", Access: scope.Access{Everybody: true}})
	assign := func(by string, agent kg.AgentID, role string, want kg.Code) *scope.Assignment {
		t.Helper()
		a, err := s.managed().Assign(within(t), as(by), intent.ID, agent, role)
		wantCode(t, fmt.Sprintf("%s assigns %s as %s", by, agent, role), err, want)
		return a
	}
	first := assign("ann", "wim", "", "")
	if again := assign("ann", "wim", "worker", ""); *again != *first || first.Role != "worker" || first.By != "agent://ann" {
		t.Errorf("assigned again: %+v, want %+v", again, first)
	}
	assign("wim", "cleo", scope.Coordinates, kg.CodePermissionDenied)
	assign("ann", "cleo", scope.Coordinates, "")
	assign("ann", "dora", scope.Coordinates, kg.CodeNameTaken)
	assign("cleo", "dora", "reviewer", "")
	level := func(who string, id scope.ID, want scope.Level) {
		t.Helper()
		got, err := s.Scopes().LevelOf(as(who), id)
		if got != want || (want == "") != (kg.CodeOf(err) == kg.CodeScopeNotFound) {
			t.Errorf("%s has level %q, want %q: %v", who, got, want, err)
		}
	}
	for range 2 {
		level("wim", intent.ID, scope.Write)
		level("wim", task.ID, scope.Write)
		level("cleo", intent.ID, scope.Admin)
		level("cleo", task.ID, scope.Admin)
		level("gus", intent.ID, "")
		s.restart(t)
	}
	got, err := s.Scopes().TaskByExternalID(within(t), as("wim"), intent.ID, "task-123")
	if err != nil || got.ID != task.ID || got.ExternalID != "task-123" {
		t.Errorf("by its external id: %+v, %v", got, err)
	}
	for _, by := range []string{"gus", "wim"} {
		external := map[string]string{"gus": "task-123", "wim": "task-124"}[by]
		_, err = s.Scopes().TaskByExternalID(within(t), as(by), intent.ID, external)
		wantCode(t, by, err, kg.CodeScopeNotFound)
	}
	_, err = s.Scopes().Create(within(t), as("wim"), scope.Draft{Parent: intent.ID, ExternalID: "task-123"})
	wantCode(t, "an external id again", err, kg.CodeNameTaken)
	_, err = s.Scopes().Create(within(t), as("wim"), scope.Draft{ExternalID: "task-123"})
	wantCode(t, "the external id of an intent", err, kg.CodeInvalid)

	// Another coordinator ends the assignment of the one before.
	sc, err := s.Scopes().Get(within(t), as("ann"), intent.ID)
	if err != nil || sc.Coordinator != "agent://cleo" || len(sc.Assignments) != 3 {
		t.Fatalf("the scope is %+v, %v", sc, err)
	}
	other := kg.AgentID("fred")
	if sc, err = s.Scopes().Update(within(t), as("ann"), intent.ID, scope.Update{ExpectedVersion: sc.Version, Coordinator: &other}); err != nil || len(sc.Assignments) != 2 {
		t.Errorf("with another coordinator: %+v, %v", sc, err)
	}
	level("cleo", intent.ID, "")
	_, err = s.managed().Unassign(within(t), as("dora"), intent.ID, "wim")
	wantCode(t, "another's assignment", err, kg.CodePermissionDenied)
	for _, by := range []string{"wim", "ann"} {
		_, err = s.managed().Unassign(within(t), as(by), intent.ID, map[string]kg.AgentID{"wim": "wim", "ann": "dora"}[by])
		wantCode(t, by+" unassigns", err, "")
	}
	level("wim", intent.ID, "")
	_, err = s.managed().Unassign(within(t), as("ann"), intent.ID, "wim")
	wantCode(t, "nobody's assignment", err, kg.CodeNotFound)
}

// Events of any type are found by type and time, in either order, page by page.
func TestListEvents(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	intent := s.scope(t, scope.Draft{Title: "research", Grants: []scope.Grant{{Agent: "rita", Level: scope.Read}}})
	start := clock.now()
	add := func(by string, e scope.Event, want kg.Code) {
		t.Helper()
		_, err := s.Scopes().Change(within(t), as(by), intent.ID, scope.Write, "events/append", func(tx *kg.Tx, sc *scope.Scope) error {
			e := e
			e.Scope, e.Actor = sc.ID, kg.CanonicalAgent(by)
			_, err := e.AppendTo(tx)
			return err
		})
		wantCode(t, "append "+e.Type, err, want)
	}
	for i := range 10 {
		clock.step(time.Second)
		add("ann", scope.Event{Type: []string{"comment", "state_patched"}[i%2], Data: []byte(fmt.Sprintf(`{"n": %d}`, i+1)), ParentEvent: int64(i)}, "")
	}
	add("ann", scope.Event{Type: "comment", TraceID: "t-1"}, "")
	add("rita", scope.Event{Type: "comment"}, kg.CodePermissionDenied)
	add("ann", scope.Event{Type: ""}, kg.CodeInvalid)
	add("ann", scope.Event{Type: strings.Repeat("t", scope.MaxTypeRunes)}, "")
	add("ann", scope.Event{Type: strings.Repeat("t", scope.MaxTypeRunes+1)}, kg.CodeLimitExceeded)
	add("ann", scope.Event{Type: "comment", TraceID: strings.Repeat("t", scope.MaxTraceRunes+1)}, kg.CodeLimitExceeded)
	add("ann", scope.Event{Type: "comment", Data: []byte(`[]`)}, kg.CodeInvalid)
	add("ann", scope.Event{Type: "comment", Data: []byte(`{"t":"` + strings.Repeat("t", scope.MaxDataBytes) + `"}`)}, kg.CodeLimitExceeded)
	add("ann", scope.Event{Type: "comment", ParentEvent: 13}, kg.CodeInvalid)
	for _, row := range []struct {
		what string
		q    scope.EventQuery
		want string
	}{
		{"all", scope.EventQuery{}, "1 2 3 4 5 6 7 8 9 10 11 12"},
		{"newest first", scope.EventQuery{Descending: true}, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{"of a type", scope.EventQuery{Types: []string{"comment"}}, "1 3 5 7 9 11"},
		{"of types", scope.EventQuery{Types: []string{"state_patched", "none"}, Descending: true}, "10 8 6 4 2"},
		{"since", scope.EventQuery{Since: start.Add(9 * time.Second)}, "9 10 11 12"},
		{"since the future", scope.EventQuery{Since: start.Add(time.Hour)}, ""},
		{"between", scope.EventQuery{After: 2, Before: 6}, "3 4 5"},
		{"between, newest first", scope.EventQuery{After: 2, Before: 6, Descending: true}, "5 4 3"},
	} {
		for _, size := range []int{0, 1, 3, 1000} {
			q, got := row.q, ""
			q.PageSize = size
			for {
				page, next, err := s.Scopes().ListEvents(within(t), as("rita"), intent.ID, q)
				if err != nil || len(page) > max(size, 1) && size > 0 && size < 1000 {
					t.Fatalf("%s: %d events, %v", row.what, len(page), err)
				}
				for _, e := range page {
					got += fmt.Sprint(e.Sequence, " ")
				}
				if next == 0 {
					break
				}
				if q.After = next; q.Descending {
					q.After, q.Before = row.q.After, next
				}
			}
			if got = strings.TrimSpace(got); got != row.want {
				t.Errorf("%s, %d a page: %q, want %q", row.what, size, got, row.want)
			}
		}
	}
	page, _, err := s.Scopes().ListEvents(within(t), as("rita"), intent.ID, scope.EventQuery{After: 9, Before: 12})
	if err != nil || page[0].ParentEvent != 9 || page[1].TraceID != "t-1" || string(page[0].Data) != `{"n":10}` {
		t.Errorf("%+v, %v", page, err)
	}
	if check, err := s.Scopes().VerifyEvents(within(t), as("rita"), intent.ID, 0); err != nil || check.Verified != 12 {
		t.Errorf("verified %+v, %v", check, err)
	}
	_, _, err = s.Scopes().ListEvents(within(t), as("gus"), intent.ID, scope.EventQuery{})
	wantCode(t, "an outsider", err, kg.CodeScopeNotFound)
}
