package channels_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// withRole is an agent whose credential has a role.
func withRole(name, role string) channels.Caller {
	c := as(name)
	c.Principal.Roles = []string{role}
	return c
}

func (s *server) scope(t testing.TB, d scope.Draft) *scope.Scope {
	t.Helper()
	sc, err := s.Scopes().Create(within(t), as("ann"), d)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func (s *server) makeIn(t testing.TB, scope scope.ID, name string, policy channel.MemberPolicy, members ...string) *channel.Channel {
	t.Helper()
	d := channel.Draft{Name: name, MemberPolicy: policy}
	for _, m := range members {
		d.Members = append(d.Members, channel.Member{Agent: kg.CanonicalAgent(m)})
	}
	c, err := s.CreateIn(within(t), as("ann"), scope, d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Agents with access to a scope see it, and for all others it does not exist; a task also
// needs access to its intent.
func TestScopeAccess(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Title: "research", Coordinator: "cleo", Access: scope.Access{Agents: []kg.AgentID{"dora", "bob", "bob"}, Roles: []string{"analyst"}}})
	task := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Agents: []kg.AgentID{"bob", "eve"}}})
	open := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Everybody: true}})
	if want := []kg.AgentID{"agent://bob", "agent://dora"}; !slices.Equal(intent.Access.Agents, want) || intent.CreatedBy != "agent://ann" || intent.Version != 1 || intent.Status != scope.Active {
		t.Errorf("made: %+v", intent)
	}
	callers := []channels.Caller{as("ann"), as("bob"), as("cleo"), as("dora"), as("eve"), withRole("finn", "analyst"), withRole("gus", "other")}
	check := func() {
		t.Helper()
		absent, sees := "", ""
		for _, by := range callers {
			_, err := s.Scopes().Get(within(t), by, "no-such-scope")
			absent = fmt.Sprint(err)
			wantCode(t, "one that is not there", err, kg.CodeScopeNotFound)
			for _, sc := range []*scope.Scope{intent, task, open} {
				got, err := s.Scopes().Get(within(t), by, sc.ID)
				if err != nil {
					if fmt.Sprint(err) != absent {
						t.Errorf("%s is told %v", by.Principal.ID, err)
					}
					sees += "-"
					continue
				}
				if d := cmp.Diff(sc, got); d != "" {
					t.Error(d)
				}
				sees += "x"
			}
			list, next, err := s.Scopes().List(within(t), by, scope.ListQuery{})
			if n := strings.Count(sees[len(sees)-3:], "x"); err != nil || next != "" || len(list) != n {
				t.Errorf("%s: %d scopes are listed, want %d: %v", by.Principal.ID, len(list), n, err)
			}
			sees += " "
		}
		if want := "xxx xxx xxx x-x --- x-x --- "; sees != want {
			t.Errorf("who sees what is %q, want %q", sees, want)
		}
	}
	check()
	s.restart(t)
	check()
}

// The manager of a scope changes it, at the version that it knows.
func TestUpdateScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Title: "research", Access: scope.Access{Everybody: true}})
	task := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Everybody: true}})
	title, cleo, nobody := "more research", kg.AgentID("cleo"), kg.AgentID("")
	for _, row := range []struct {
		what string
		by   string
		id   scope.ID
		r    scope.Update
		want kg.Code
	}{
		{"one that takes part", "bob", intent.ID, scope.Update{ExpectedVersion: 1, Title: &title}, kg.CodePermissionDenied},
		{"another version", "ann", intent.ID, scope.Update{Title: &title}, kg.CodeVersionConflict},
		{"the creator", "ann", intent.ID, scope.Update{ExpectedVersion: 1, Title: &title, Coordinator: &cleo}, ""},
		{"the coordinator", "cleo", intent.ID, scope.Update{ExpectedVersion: 2, Access: &scope.Access{Agents: []kg.AgentID{"bob"}}}, ""},
		{"the coordinator of the intent", "cleo", task.ID, scope.Update{ExpectedVersion: 1, Title: &title}, ""},
		{"one that lost it", "eve", intent.ID, scope.Update{ExpectedVersion: 3, Title: &title}, kg.CodeScopeNotFound},
		{"the coordinator, of herself", "cleo", intent.ID, scope.Update{ExpectedVersion: 3, Coordinator: &nobody}, ""},
		{"the coordinator that was", "cleo", intent.ID, scope.Update{ExpectedVersion: 4, Title: &title}, kg.CodeScopeNotFound},
	} {
		_, err := s.Scopes().Update(within(t), as(row.by), row.id, row.r)
		wantCode(t, row.what, err, row.want)
	}
	got, err := s.Scopes().Get(within(t), as("bob"), intent.ID)
	if err != nil || got.Title != title || got.Coordinator != "" || got.Access.Everybody || got.Version != 4 {
		t.Errorf("at the end %+v, %v", got, err)
	}
}

func TestScopeBounds(t *testing.T) {
	s := serve(t, channels.Options{MaxScopes: scope.MaxTasks + 2}, kg.Options{})
	many := func(n int) (out []kg.AgentID) {
		for i := range n {
			out = append(out, kg.AgentID(fmt.Sprint("a", i)))
		}
		return out
	}
	roles := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("r", i))
		}
		return out
	}
	long := strings.Repeat("ä", channel.MaxNameRunes)
	intent := s.scope(t, scope.Draft{Title: long, Access: scope.Access{Agents: many(scope.MaxAgents), Roles: roles(scope.MaxRoles)}})
	task := s.scope(t, scope.Draft{Parent: intent.ID})
	for _, row := range []struct {
		what string
		d    scope.Draft
		want kg.Code
	}{
		{"a title too long", scope.Draft{Title: strings.Repeat("x", scope.MaxTitleRunes+1)}, kg.CodeLimitExceeded},
		{"too many agents", scope.Draft{Access: scope.Access{Agents: many(scope.MaxAgents + 1)}}, kg.CodeLimitExceeded},
		{"too many roles", scope.Draft{Access: scope.Access{Roles: roles(scope.MaxRoles + 1)}}, kg.CodeLimitExceeded},
		{"a role too long", scope.Draft{Access: scope.Access{Roles: []string{strings.Repeat("r", scope.MaxRoleRunes+1)}}}, kg.CodeInvalid},
		{"no role", scope.Draft{Access: scope.Access{Roles: []string{""}}}, kg.CodeInvalid},
		{"a task of a task", scope.Draft{Parent: task.ID}, kg.CodeInvalid},
		{"a task of nothing", scope.Draft{Parent: "nothing"}, kg.CodeScopeNotFound},
	} {
		_, err := s.Scopes().Create(within(t), as("ann"), row.d)
		wantCode(t, row.what, err, row.want)
	}
	for range scope.MaxTasks - 1 {
		s.scope(t, scope.Draft{Parent: intent.ID})
	}
	_, err := s.Scopes().Create(within(t), as("ann"), scope.Draft{Parent: intent.ID})
	wantCode(t, "a task too many", err, kg.CodeLimitExceeded)
	s.scope(t, scope.Draft{})
	_, err = s.Scopes().Create(within(t), as("ann"), scope.Draft{})
	wantCode(t, "a scope too many", err, kg.CodeLimitExceeded)

	seen := map[scope.ID]bool{}
	l := scope.ListQuery{PageSize: 7, Parent: intent.ID}
	for {
		page, next, err := s.Scopes().List(within(t), as("ann"), l)
		if err != nil {
			t.Fatal(err)
		}
		for _, sc := range page {
			seen[sc.ID] = true
		}
		if next == "" {
			break
		}
		_, _, err = s.Scopes().List(within(t), as("bob"), scope.ListQuery{PageToken: next, Parent: intent.ID})
		wantCode(t, "somebody else's token", err, kg.CodeCursorForeign)
		l.PageToken = next
	}
	if len(seen) != scope.MaxTasks {
		t.Errorf("pages hold %d tasks", len(seen))
	}
}

// A channel of a scope exists for agents with access to the scope, which are members if the
// policy says so. The scope's own graph is read with the same access.
func TestChannelsInScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Coordinator: "cleo", Access: scope.Access{Agents: []kg.AgentID{"bob"}, Roles: []string{"analyst"}}})
	explicit := s.makeIn(t, intent.ID, "explicit", "", "bob", "eve") // eve has no access
	shared := s.makeIn(t, intent.ID, "shared", channel.ByScope, "eve")
	if explicit.MemberPolicy != channel.Explicit || shared.Scope != intent.ID {
		t.Errorf("made %+v, %+v", explicit, shared)
	}
	finn := withRole("finn", "analyst")
	for _, row := range []struct {
		by   channels.Caller
		sees string
	}{{as("ann"), "xx"}, {as("bob"), "xx"}, {finn, "-x"}, {as("eve"), "--"}, {as("gus"), "--"}} {
		sees, listed := "", 0
		for _, c := range []*channel.Channel{explicit, shared} {
			_, err := s.Publish(within(t), row.by, channels.Publication{Channel: c.ID, Parts: text("hi")})
			_, _, read := s.History(within(t), row.by, c.ID, channels.HistoryQuery{})
			_, get := s.Get(within(t), row.by, c.ID)
			_, follow := s.Stream(within(t), row.by, c.ID, nil)
			snapshot, view := s.store.View(within(t), kg.View{Principal: row.by.Principal, AllGraphs: true})
			if view != nil {
				t.Fatal(view)
			}
			n, count := snapshot.Count(kg.Pattern{Graph: c.ID.RecordGraph()})
			snapshot.Close()
			if err == nil && read == nil && get == nil && follow == nil && n > 0 && count == nil {
				sees += "x"
				listed++
				continue
			}
			sees += "-"
			for _, err := range []error{err, read, get, follow} {
				wantCode(t, string(row.by.Principal.ID), err, kg.CodeChannelNotFound)
			}
			if n != 0 {
				t.Errorf("%s counts %d in the record", row.by.Principal.ID, n)
			}
		}
		if sees != row.sees {
			t.Errorf("%s sees %s, want %s", row.by.Principal.ID, sees, row.sees)
		}
		list, _, err := s.List(within(t), row.by, channel.ListQuery{Scope: intent.ID})
		if listed == 0 {
			wantCode(t, "the list of a scope", err, kg.CodeScopeNotFound)
		} else if err != nil || len(list) != listed {
			t.Errorf("%s: %d listed, want %d: %v", row.by.Principal.ID, len(list), listed, err)
		}
	}
	if list, _, err := s.List(within(t), as("eve"), channel.ListQuery{}); err != nil || len(list) != 0 {
		t.Errorf("a member without access lists %d: %v", len(list), err)
	}
	for _, row := range []struct {
		what  string
		scope scope.ID
		by    channels.Caller
		d     channel.Draft
		want  kg.Code
	}{
		{"a name that is taken", intent.ID, finn, channel.Draft{Name: "explicit"}, kg.CodeNameTaken},
		{"no name", intent.ID, as("ann"), channel.Draft{}, kg.CodeInvalid},
		{"public", intent.ID, as("ann"), channel.Draft{Name: "c", Visibility: channel.Public}, kg.CodeInvalid},
		{"no policy", intent.ID, as("ann"), channel.Draft{Name: "c", MemberPolicy: "some"}, kg.CodeInvalid},
		{"no access", intent.ID, as("eve"), channel.Draft{Name: "c"}, kg.CodeScopeNotFound},
		{"no scope", "none", as("ann"), channel.Draft{Name: "c"}, kg.CodeScopeNotFound},
		{"a role", intent.ID, finn, channel.Draft{Name: "c"}, ""},
	} {
		_, err := s.CreateIn(within(t), row.by, row.scope, row.d)
		wantCode(t, row.what, err, row.want)
	}
	_, err := s.Create(within(t), as("ann"), channel.Draft{MemberPolicy: channel.Explicit})
	wantCode(t, "a policy without a scope", err, kg.CodeInvalid)

	taken, fresh := "shared", "fresh"
	_, err = s.Update(within(t), as("ann"), explicit.ID, channel.Update{ExpectedVersion: 1, Name: &taken})
	wantCode(t, "renamed to a name that is taken", err, kg.CodeNameTaken)
	_, err = s.Update(within(t), as("ann"), explicit.ID, channel.Update{ExpectedVersion: 1, Name: new(string)})
	wantCode(t, "renamed to none", err, kg.CodeInvalid)
	_, err = s.Update(within(t), as("ann"), explicit.ID, channel.Update{ExpectedVersion: 1, Name: &fresh})
	wantCode(t, "renamed", err, "")
	s.makeIn(t, intent.ID, "explicit", "")
	wantCode(t, "deleted", s.Delete(within(t), as("ann"), explicit.ID), "")
	s.makeIn(t, intent.ID, "fresh", "")
}

// The coordinator of a scope manages the members of channels that she does not read.
func TestCoordinatorManages(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Coordinator: "cleo", Access: scope.Access{Everybody: true}})
	task := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Everybody: true}})
	for name, scope := range map[string]scope.ID{"room": intent.ID, "room of the task": task.ID} {
		c := s.makeIn(t, scope, name, "")
		if outline, err := s.Get(within(t), as("cleo"), c.ID); err != nil || outline.Name != name || outline.Members != nil {
			t.Errorf("she finds %+v, %v", outline, err)
		}
		_, _, err := s.History(within(t), as("cleo"), c.ID, channels.HistoryQuery{})
		wantCode(t, "she reads it", err, kg.CodePermissionDenied)
		_, err = s.Members().Add(within(t), as("bob"), c.ID, "bob", "")
		wantCode(t, "another", err, kg.CodeChannelNotFound)
		_, err = s.Members().Add(within(t), as("cleo"), c.ID, "bob", "")
		wantCode(t, "she adds", err, "")
		if _, err := s.Get(within(t), as("bob"), c.ID); err != nil {
			t.Error(err)
		}
		_, err = s.Members().Add(within(t), as("bob"), c.ID, "eve", "")
		wantCode(t, "a member adds", err, kg.CodePermissionDenied)
		_, err = s.Members().Remove(within(t), as("cleo"), c.ID, "bob")
		wantCode(t, "she removes", err, "")
		_, err = s.Members().Remove(within(t), as("cleo"), c.ID, "ann")
		wantCode(t, "the last owner", err, kg.CodeLastOwner)
	}
}

// An agent that loses access to a scope, or to the intent of a task, loses streams and
// facts of its channels at once.
func TestStreamEndsWithScopeAccess(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "eve"}}})
	task := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Everybody: true}})
	c := s.makeIn(t, task.ID, "room", channel.ByScope)
	ended := map[string]chan error{"bob": make(chan error), "eve": make(chan error)}
	for who, ended := range ended {
		stream, err := s.Stream(within(t), as(who), c.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		go func() {
			for _, err := range stream.Messages() {
				if err != nil || who == "eve" {
					ended <- err
					return
				}
			}
		}()
	}
	if _, err := s.Scopes().Update(within(t), as("ann"), intent.ID, scope.Update{ExpectedVersion: 1, Access: &scope.Access{Agents: []kg.AgentID{"eve"}}}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("hi")})
	wantCode(t, "publishes", err, kg.CodeChannelNotFound)
	s.say(t, "eve", c.ID, "still here")
	wantCode(t, "who lost it", <-ended["bob"], kg.CodeChannelNotFound)
	wantCode(t, "who did not", <-ended["eve"], "")
}

// A message in a scope cannot be addressed to agents that do not take part there; a request
// to a role can be.
func TestAddressInScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob"}}})
	explicit, shared := s.makeIn(t, intent.ID, "explicit", "", "eve"), s.makeIn(t, intent.ID, "shared", channel.ByScope)
	for _, row := range []struct {
		channel channel.ID
		to      string
		want    kg.Code
	}{{explicit.ID, "bob", kg.CodeNotMember}, {explicit.ID, "eve", kg.CodeNotMember}, {shared.ID, "bob", ""}, {shared.ID, "eve", kg.CodeNotMember}, {shared.ID, "role:none", kg.CodeNoRecipient}} {
		_, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: row.channel, Parts: text("?"), Envelope: message.Envelope{Interaction: message.Request, To: row.to}})
		wantCode(t, row.to, err, row.want)
	}
	question, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: shared.ID, Parts: text("?"), Envelope: message.Envelope{Interaction: message.Request, To: "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	other := s.makeIn(t, intent.ID, "other", channel.ByScope)
	_, err = s.Publish(within(t), as("bob"), channels.Publication{Channel: other.ID, Parts: text("!"), Envelope: message.Envelope{Interaction: message.Response, Correlation: question.Message.ID}})
	wantCode(t, "a response in another channel", err, kg.CodeInvalid)
}

// An agent with access to a scope by a role is addressed by each role that it has on
// record, member or not.
func TestAddressByAnyRole(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	s.role(t, "analyst", "bob")
	s.role(t, "critic", "bob", "eve")
	intent := s.scope(t, scope.Draft{Access: scope.Access{Roles: []string{"analyst"}}})
	for _, c := range []*channel.Channel{s.makeIn(t, intent.ID, "shared", channel.ByScope), s.makeIn(t, intent.ID, "explicit", "", "bob", "eve")} {
		for _, to := range []string{"bob", "role:analyst", "role:critic"} {
			m := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: to})
			if !slices.Equal(m.Recipients, []kg.AgentID{"agent://bob"}) {
				t.Errorf("%s in %s is %v", to, c.Name, m.Recipients)
			}
		}
	}
}

// The creator of a channel of a scope manages its members like its coordinator, despite
// changes by other owners; outside of scopes only owners do.
func TestCreatorManages(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo", "dora"}}})
	draft := channel.Draft{Name: "room", Members: []channel.Member{{Agent: "cleo", Role: channel.Owner}}}
	c, err := s.CreateIn(within(t), as("bob"), intent.ID, draft)
	if err != nil {
		t.Fatal(err)
	}
	add := func(by string, id channel.ID, who kg.AgentID, role channel.Role) error {
		_, err := s.Members().Add(within(t), as(by), id, who, role)
		return err
	}
	remove := func(by string, id channel.ID, who kg.AgentID) error {
		_, err := s.Members().Remove(within(t), as(by), id, who)
		return err
	}
	wantCode(t, "demoted", add("cleo", c.ID, "bob", channel.Observer), "")
	wantCode(t, "adds", add("bob", c.ID, "dora", ""), "")
	wantCode(t, "takes out", remove("bob", c.ID, "dora"), "")
	wantCode(t, "another member adds", add("dora", c.ID, "dora", ""), kg.CodeChannelNotFound)
	wantCode(t, "deletes", s.Delete(within(t), as("bob"), c.ID), kg.CodePermissionDenied)
	wantCode(t, "taken out himself", remove("cleo", c.ID, "bob"), "")
	_, _, err = s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{})
	wantCode(t, "reads", err, kg.CodePermissionDenied)
	wantCode(t, "adds from outside", add("bob", c.ID, "dora", ""), "")
	wantCode(t, "the last owner", remove("bob", c.ID, "cleo"), kg.CodeLastOwner)
	_, err = s.Scopes().Update(within(t), as("ann"), intent.ID, scope.Update{ExpectedVersion: 1, Access: &scope.Access{Agents: []kg.AgentID{"cleo"}}})
	wantCode(t, "the scope", err, "")
	wantCode(t, "without access", add("bob", c.ID, "bob", ""), kg.CodeChannelNotFound)

	free, err := s.Create(within(t), as("bob"), draft)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, "demoted", add("cleo", free.ID, "bob", ""), "")
	wantCode(t, "outside of a scope", add("bob", free.ID, "dora", ""), kg.CodePermissionDenied)
}

// The manager of a task without access to its intent any more manages nothing in it; with a
// role that gives access, it does as long as it has the role.
func TestRunnerWithoutAccess(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob"}, Roles: []string{"dev"}}})
	task, err := s.Scopes().Create(within(t), as("bob"), scope.Draft{Parent: intent.ID})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.CreateIn(within(t), as("ann"), task.ID, channel.Draft{Name: "room"}) // the creator of the intent
	if err != nil {
		t.Fatal(err)
	}
	manages := func(by channels.Caller, want kg.Code) {
		t.Helper()
		_, err := s.Get(within(t), by, c.ID)
		wantCode(t, "finds it", err, want)
		_, err = s.Members().Add(within(t), by, c.ID, "bob", "")
		wantCode(t, "adds", err, want)
		topic := "new"
		now, err := s.Get(within(t), as("ann"), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Update(within(t), by, c.ID, channel.Update{ExpectedVersion: now.Version, Topic: &topic})
		wantCode(t, "changes it", err, want)
		_, err = s.Scopes().Get(within(t), by, task.ID)
		if got := kg.CodeOf(err); (got == "") != (want == "") {
			t.Errorf("the task: %v", err)
		}
	}
	manages(as("bob"), "")
	manages(withRole("bob", "dev"), "")
	_, err = s.Scopes().Update(within(t), as("ann"), intent.ID, scope.Update{ExpectedVersion: 1, Access: &scope.Access{Roles: []string{"dev"}}})
	wantCode(t, "the intent", err, "")
	manages(as("bob"), kg.CodeChannelNotFound)
	manages(withRole("bob", "dev"), "")
	wantCode(t, "deletes", s.Delete(within(t), as("bob"), c.ID), kg.CodeChannelNotFound)
	_, err = s.CloseChannel(within(t), as("bob"), c.ID, "")
	wantCode(t, "closes", err, kg.CodeChannelNotFound)
}
