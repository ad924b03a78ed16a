package channels_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// Agents join channels that are open to all, as members or observers, until they are full;
// other channels need an invitation.
func TestJoin(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	make := func(d channel.Draft) channel.ID {
		t.Helper()
		c, err := s.Create(within(t), as("ann"), d)
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	room := make(channel.Draft{Kind: channel.Room, Visibility: channel.Public, MaxMembers: 3})
	news := make(channel.Draft{Kind: channel.Broadcast, Visibility: channel.Public})
	public, private := make(channel.Draft{Visibility: channel.Public}), make(channel.Draft{Kind: channel.Room})
	for _, row := range []struct {
		what string
		id   channel.ID
		who  string
		role channel.Role
		want kg.Code
	}{
		{"a room", room, "bob", "", ""},
		{"again", room, "bob", channel.Observer, ""},
		{"as an owner", room, "eve", channel.Owner, kg.CodeInvalid},
		{"as an observer", room, "ola", channel.Observer, ""},
		{"a full room", room, "eve", "", kg.CodeLimitExceeded},
		{"a broadcast", news, "bob", "", ""},
		{"what has owners that let in", public, "bob", "", kg.CodePermissionDenied},
		{"what is not to be found", private, "bob", "", kg.CodeChannelNotFound},
		{"what is not there", "nowhere", "bob", "", kg.CodeChannelNotFound},
	} {
		_, err := s.Members().Join(within(t), as(row.who), row.id, row.role)
		wantCode(t, row.what, err, row.want)
	}
	c, err := s.Get(within(t), as("bob"), room)
	if got := members(c); err != nil || c.Version != 3 || !slices.Equal(got, []string{"agent://ann owner", "agent://bob member", "agent://ola observer"}) {
		t.Errorf("the room has %v at version %d, %v", got, c.Version, err)
	}
	_, err = s.Publish(within(t), as("bob"), channels.Publication{Channel: news, Parts: text("hi")})
	wantCode(t, "a listener publishes", err, kg.CodePermissionDenied)
	wantCode(t, "bob leaves", s.Members().Leave(within(t), as("bob"), room), "")
	wantCode(t, "bob leaves again", s.Members().Leave(within(t), as("bob"), room), kg.CodePermissionDenied)
	wantCode(t, "the last owner leaves", s.Members().Leave(within(t), as("ann"), room), kg.CodeLastOwner)
	_, err = s.Members().Join(within(t), as("eve"), room, "")
	wantCode(t, "there is place again", err, "")
}

// With many concurrent joins, no more agents are admitted than the channel has room for.
func TestJoinAtOnce(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, err := s.Create(within(t), as("ann"), channel.Draft{Kind: channel.Room, Visibility: channel.Public, MaxMembers: 5})
	if err != nil {
		t.Fatal(err)
	}
	var joining sync.WaitGroup
	var mu sync.Mutex
	in := 0
	for i := range 20 {
		joining.Go(func() {
			_, err := s.Members().Join(within(t), as(fmt.Sprint("a", i)), c.ID, "")
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				in++
			} else {
				wantCode(t, "one too many", err, kg.CodeLimitExceeded)
			}
		})
	}
	joining.Wait()
	if c, err = s.Get(within(t), as("ann"), c.ID); err != nil || in != 4 || len(c.Members) != 5 {
		t.Errorf("%d were let in; the room has %d, %v", in, len(c.Members), err)
	}
}

// An invited agent finds the channel, and cannot read it before it has accepted.
func TestInvite(t *testing.T) {
	s := serve(t, channels.Options{MaxInvitations: 2}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	s.say(t, "ann", c.ID, "secret")
	invite := func(by, whom string) error { return s.Members().Invite(within(t), as(by), c.ID, kg.AgentID(whom)) }
	wantCode(t, "a member invites", invite("bob", "eve"), kg.CodePermissionDenied)
	wantCode(t, "an outsider invites", invite("eve", "eve"), kg.CodeChannelNotFound)
	_, err := s.Members().Accept(within(t), as("eve"), c.ID)
	wantCode(t, "accepted without", err, kg.CodeChannelNotFound)
	wantCode(t, "declined without", s.Members().Decline(within(t), as("bob"), c.ID), kg.CodeNotFound)
	for _, whom := range []string{"eve", "eve", "bob", "cleo"} {
		wantCode(t, "the owner invites "+whom, invite("ann", whom), "")
	}
	wantCode(t, "past the bound", invite("ann", "dora"), kg.CodeLimitExceeded)
	got, err := s.Get(within(t), as("eve"), c.ID)
	if err != nil || got.Name != "lab" || len(got.Members) != 0 || got.Messages != 0 || got.Version != 1 {
		t.Errorf("eve sees %+v, %v", got, err)
	}
	_, _, err = s.History(within(t), as("eve"), c.ID, channels.HistoryQuery{})
	wantCode(t, "read before", err, kg.CodePermissionDenied)
	invitedTo := func(who string, want int) {
		t.Helper()
		if list, _, err := s.List(within(t), as(who), channel.ListQuery{Invited: true}); err != nil || len(list) != want {
			t.Errorf("%s is invited to %v, %v; want %d", who, list, err, want)
		}
	}
	invitedTo("eve", 1)
	invitedTo("bob", 0)
	invitedTo("ann", 0)
	if got, err = s.Members().Accept(within(t), as("eve"), c.ID); err != nil || len(got.Members) != 3 || len(got.Invited) != 1 || got.Invited[0].By != "agent://ann" || got.Version != 2 {
		t.Errorf("accepted: %+v, %v", got, err)
	}
	invitedTo("eve", 0)
	wantCode(t, "cleo declines", s.Members().Decline(within(t), as("cleo"), c.ID), "")
	wantCode(t, "there is none to withdraw", s.Members().Withdraw(within(t), as("ann"), c.ID, "cleo"), kg.CodeNotFound)
	wantCode(t, "ann invites dora", invite("ann", "dora"), "")
	wantCode(t, "bob withdraws", s.Members().Withdraw(within(t), as("bob"), c.ID, "dora"), kg.CodePermissionDenied)
	wantCode(t, "ann withdraws", s.Members().Withdraw(within(t), as("ann"), c.ID, "dora"), "")
	_, err = s.Members().Join(within(t), as("dora"), c.ID, "")
	wantCode(t, "dora joins", err, kg.CodeChannelNotFound)
	// An added member needs no invitation any more, and a deleted channel has none.
	wantCode(t, "ann invites dora", invite("ann", "dora"), "")
	if _, err = s.Members().Add(within(t), as("ann"), c.ID, "dora", ""); err != nil {
		t.Fatal(err)
	}
	invitedTo("dora", 0)
	wantCode(t, "ann invites fay", invite("ann", "fay"), "")
	s.restart(t)
	if list, _, err := s.List(within(t), as("fay"), channel.ListQuery{Invited: true}); err != nil || len(list) != 1 {
		t.Errorf("opened again, fay is invited to %v, %v", list, err)
	}
}

// An agent that could not accept cannot be invited to a channel of a scope: without access
// to the scope, or to the intent of the task. A role on record is access.
func TestInviteIntoScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob"}, Roles: []string{"analyst"}}})
	task := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Agents: []kg.AgentID{"bob", "eve"}}})
	s.role(t, "analyst", "finn")
	for _, row := range []struct {
		scope scope.ID
		whom  kg.AgentID
		want  kg.Code
	}{{intent.ID, "bob", ""}, {intent.ID, "finn", ""}, {intent.ID, "eve", kg.CodeNotMember}, {intent.ID, "never-seen", kg.CodeNotMember}, {task.ID, "bob", ""}, {task.ID, "finn", kg.CodeNotMember}, {task.ID, "eve", kg.CodeNotMember}} {
		c := s.makeIn(t, row.scope, fmt.Sprint("for ", row.whom, row.scope), channel.Explicit)
		err := s.Members().Invite(within(t), as("ann"), c.ID, row.whom)
		wantCode(t, string(row.whom), err, row.want)
		if row.want != "" {
			continue
		}
		invited := as(string(row.whom))
		if row.whom == "finn" {
			invited = withRole("finn", "analyst")
		}
		if _, err := s.Members().Accept(within(t), invited, c.ID); err != nil {
			t.Errorf("%s accepts: %v", row.whom, err)
		}
	}
	wantCode(t, "outside of scopes", s.Members().Invite(within(t), as("ann"), s.make(t, channel.Private).ID, "never-seen"), "")
}

// A reader through the scope of a channel cannot be removed from it, because that would
// have no effect: it can leave, be banned, or lose access.
func TestRemoveFromScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	scope := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo"}}})
	shared, explicit := s.makeIn(t, scope.ID, "shared", channel.ByScope, "bob", "cleo", "eve"), s.makeIn(t, scope.ID, "explicit", channel.Explicit, "bob")
	remove := func(id channel.ID, whom kg.AgentID) error {
		_, err := s.Members().Remove(within(t), as("ann"), id, whom)
		return err
	}
	err := remove(shared.ID, "bob")
	wantCode(t, "bob, who reads on", err, kg.CodeInvalid)
	if kg.AsError(err).Hint == "" {
		t.Error("it is not said what helps")
	}
	wantCode(t, "bob, of an explicit one", remove(explicit.ID, "bob"), "")
	wantCode(t, "eve, without access", remove(shared.ID, "eve"), "")
	wantCode(t, "bob leaves", s.Members().Leave(within(t), as("bob"), shared.ID), "")
	wantCode(t, "cleo is banned", s.Members().Ban(within(t), as("ann"), shared.ID, "cleo", time.Time{}), "")
	wantCode(t, "cleo, who is banned", remove(shared.ID, "cleo"), "")
}
