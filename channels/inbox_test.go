package channels_test

import (
	"iter"
	"slices"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// A message addressed to an agent in a channel that it reads without being a member,
// through a scope or because all agents do, is in its inbox: live, replayed, after a
// restart, and as long as it reads the channel. Messages to all there are not.
func TestInboxWithoutMembership(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	s.role(t, "critic", "bob")
	agents := func(list ...kg.AgentID) *scope.Access { return &scope.Access{Agents: list} }
	sc := s.scope(t, scope.Draft{Access: *agents("bob", "eve")})
	shared := s.makeIn(t, sc.ID, "shared", channel.ByScope, "cleo")
	public := s.make(t, channel.Public)
	ask := func(to string, id channel.ID) message.ID {
		return s.mustSend(t, "ann", id, message.Envelope{Interaction: message.Request, To: to}).ID
	}
	read := func(who string) (got []message.ID) {
		t.Helper()
		page, _, more, err := s.Inbox(within(t), as(who), channels.InboxQuery{})
		if err != nil || more {
			t.Fatal(more, err)
		}
		for _, d := range page {
			if d.Withheld != "" || d.Parts == nil {
				t.Errorf("%s got %+v", who, d.Message)
			}
			got = append(got, d.ID)
		}
		return got
	}
	var want []message.ID
	live, err := s.StreamInbox(within(t), as("bob"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	next, stop := iter.Pull2(live.Messages())
	defer stop()
	told := func(list []message.ID) {
		t.Helper()
		for _, m := range list {
			if d, err, _ := next(); err != nil || d.ID != m || d.Withheld != "" {
				t.Fatalf("the stream told %+v, %v; want %s", d, err, m)
			}
		}
	}
	check := func(what string) {
		t.Helper()
		if got := read("bob"); !slices.Equal(got, want) {
			t.Errorf("%s: bob has %v, want %v", what, got, want)
		}
	}
	mine := s.make(t, channel.Private, "bob")
	for range 2 { // the first is replayed, from the second on it is live
		want = append(want, s.say(t, "ann", mine.ID, "hi").ID)
		told(want[len(want)-1:])
	}
	s.say(t, "ann", shared.ID, "to everybody")
	s.say(t, "ann", public.ID, "to everybody")
	want = append(want, ask("bob", shared.ID))
	question := want[2]
	ask("eve", shared.ID)
	if _, err := s.Members().Add(within(t), as("ann"), public.ID, "bob", channel.Ordinary); err != nil {
		t.Fatal(err)
	}
	want = append(want, ask("role:critic", public.ID))
	if _, err := s.Members().Remove(within(t), as("ann"), public.ID, "bob"); err != nil { // he reads on
		t.Fatal(err)
	}
	want = append(want, ask("bob", shared.ID))
	check("addressed")
	told(want[2:])
	if _, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: shared.ID, Parts: text("!"), Envelope: message.Envelope{Interaction: message.Response, Correlation: question}}); err != nil {
		t.Fatal(err)
	}
	check("own response")
	if got := read("ann"); len(got) != 1 { // she is a member
		t.Errorf("ann has %v, want the response", got)
	}

	version := int64(1)
	give := func(a *scope.Access) {
		t.Helper()
		if _, err := s.Scopes().Update(within(t), as("ann"), sc.ID, scope.Update{ExpectedVersion: version, Access: a}); err != nil {
			t.Fatal(err)
		}
		version++
	}
	give(agents("eve", "finn"))
	all := want
	want = append(slices.Clone(all[:2]), all[3]) // of the scope he reads nothing any more
	check("without access")
	if got := read("finn"); got != nil {
		t.Errorf("who came later has %v", got)
	}
	ask("finn", shared.ID)
	if got := read("finn"); len(got) != 1 {
		t.Errorf("who was asked later has %v", got)
	}
	give(agents("bob", "eve"))
	want = all
	check("with access again")
	if got := read("finn"); got != nil {
		t.Errorf("who lost access has %v", got)
	}
	s.say(t, "ann", shared.ID, "to everybody")
	again := ask("bob", shared.ID)
	want = append(want, again)
	check("addressed again")
	told([]message.ID{again})
	if _, err := s.Members().Add(within(t), as("ann"), shared.ID, "bob", channel.Ordinary); err != nil {
		t.Fatal(err)
	}
	told([]message.ID{s.say(t, "ann", shared.ID, "to everybody").ID})
	if err := s.Members().Leave(within(t), as("bob"), shared.ID); err != nil {
		t.Fatal(err)
	}
	check("no member any more")
	replay, err := s.StreamInbox(within(t), as("bob"), &kg.Position{})
	if err != nil {
		t.Fatal(err)
	}
	defer replay.Close()
	var got []message.ID
	for d, err := range replay.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, d.ID); len(got) == len(want) {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the replay told %v, want %v", got, want)
	}
	s.restart(t)
	check("after a restart")
}
