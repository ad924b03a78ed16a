package channels_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// agentFeed reads an agent's feed one event at a time.
type agentFeed struct {
	*channels.AgentFeed
	t    testing.TB
	next func() (channels.AgentEvent, error, bool)
	stop func()
}

func (s *server) followAgent(t testing.TB, who string, from *kg.Position) *agentFeed {
	t.Helper()
	f, err := s.FollowAgent(within(t), as(who), from)
	if err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(f.All())
	a := &agentFeed{f, t, next, stop}
	t.Cleanup(a.end)
	return a
}

func (a *agentFeed) end() {
	a.Close()
	a.stop()
}

func (a *agentFeed) read() channels.AgentEvent {
	a.t.Helper()
	e, err, ok := a.next()
	if err != nil || !ok {
		a.t.Fatal(err, ok)
	}
	return e
}

// saying is a short text of an event of a feed.
func saying(e channels.AgentEvent) string {
	switch {
	case e.Message != nil:
		return fmt.Sprint(e.Message.Channel, " message ", e.Message.Sequence)
	case e.Signal != nil:
		return fmt.Sprint(e.Signal.Channel, " ", e.Signal.Kind, " ", e.Signal.From)
	case e.Presence != nil:
		return fmt.Sprint(e.Presence.Agent, " ", e.Presence.Status)
	case e.Control.Kind == channels.ChannelUpdated:
		text := fmt.Sprint(e.Control.Channel, " updated")
		for _, c := range e.Control.Changes {
			text += fmt.Sprintf(" %s %s -> %s", c.Name, c.Old, c.New)
		}
		return text
	}
	return strings.TrimSpace(fmt.Sprint(e.Control.Channel, " ", e.Control.Kind, " ", e.Control.Agent))
}

func (a *agentFeed) want(list ...string) {
	a.t.Helper()
	for _, want := range list {
		if got := saying(a.read()); got != want {
			a.t.Fatalf("told %q, want %q", got, want)
		}
	}
}

// A feed tells what happens in all channels of an agent, also those that it joins later, and
// resumes after any event, in another process too.
func TestFollowAgent(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	one, hidden := s.make(t, channel.Private, "bob"), s.make(t, channel.Private)
	start := s.store.Head()
	feed := s.followAgent(t, "bob", nil)
	s.say(t, "ann", one.ID, "hi")
	s.say(t, "ann", hidden.ID, "not for bob")
	other := s.make(t, channel.Public)
	s.say(t, "ann", other.ID, "before bob joined")
	add := func(id channel.ID, who string) {
		t.Helper()
		if _, err := s.Members().Add(within(t), as("ann"), id, kg.AgentID(who), channel.Ordinary); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(id channel.ID, who string) {
		t.Helper()
		if _, err := s.Members().Remove(within(t), as("ann"), id, kg.AgentID(who)); err != nil {
			t.Fatal(err)
		}
	}
	add(hidden.ID, "eve")
	add(other.ID, "bob")
	add(other.ID, "eve")
	s.say(t, "eve", other.ID, "hello")
	topic, most := "cats", 10
	c, err := s.Update(within(t), as("ann"), other.ID, channel.Update{ExpectedVersion: 3, Topic: &topic, MaxMembers: &most})
	if err != nil {
		t.Fatal(err)
	}
	topic = "dogs"
	if _, err := s.Update(within(t), as("ann"), other.ID, channel.Update{ExpectedVersion: c.Version, Topic: &topic, Set: map[string]jsonRaw{"a": jsonRaw("1")}}); err != nil {
		t.Fatal(err)
	}
	remove(other.ID, "eve")
	said := []string{
		string(one.ID) + " message 1", string(other.ID) + " created", string(other.ID) + " joined agent://bob", string(other.ID) + " joined agent://eve",
		string(other.ID) + " message 2", string(other.ID) + ` updated maxMembers  -> 10 topic  -> "cats"`,
		string(other.ID) + ` updated metadata  -> {"a":1} topic "cats" -> "dogs"`, string(other.ID) + " left agent://eve",
	}
	var positions []kg.Position
	for _, want := range said {
		e := feed.read()
		if got := saying(e); got != want {
			t.Fatalf("told %q, want %q", got, want)
		}
		positions = append(positions, e.Position)
	}
	replay := func(what string) {
		t.Helper()
		s.followAgent(t, "bob", &start).want(said...)
		for i := range said {
			s.followAgent(t, "bob", &positions[i]).want(said[i+1:]...)
		}
	}
	replay("at once")
	feed.end()
	s.restart(t)
	replay("after a restart")

	// What the agent no longer reads is not told again, but that it left; and what was
	// said while it was away is not told either.
	s.say(t, "ann", one.ID, "still there")
	remove(one.ID, "bob")
	s.say(t, "ann", one.ID, "without bob")
	remove(other.ID, "bob")
	s.say(t, "ann", other.ID, "without bob")
	left := s.followAgent(t, "bob", &start)
	left.want(said[1:]...)
	left.want(string(one.ID)+" left agent://bob", string(other.ID)+" left agent://bob")
	add(one.ID, "bob")
	add(other.ID, "bob")
	left.want(string(one.ID)+" joined agent://bob", string(other.ID)+" joined agent://bob")
	s.say(t, "ann", one.ID, "again")
	if err := s.Delete(within(t), as("ann"), other.ID); err != nil {
		t.Fatal(err)
	}
	end := []string{string(one.ID) + " message 4", string(other.ID) + " deleted"}
	left.want(end...)
	s.restart(t)
	again := s.followAgent(t, "bob", &positions[len(positions)-1])
	again.want(string(one.ID)+" message 2", string(one.ID)+" left agent://bob", string(other.ID)+" left agent://bob",
		string(one.ID)+" joined agent://bob", string(other.ID)+" joined agent://bob")
	again.want(end...)
}

// An outsider is told nothing of private channels: no creation, no member, no signal, no
// presence; and a member of other channels nothing of those it does not share.
func TestFollowAgentHides(t *testing.T) {
	told := make(chan channels.PresenceChange)
	s := serve(t, channels.Options{Presence: func(ctx context.Context) (iter.Seq[channels.PresenceChange], error) {
		return func(yield func(channels.PresenceChange) bool) {
			for {
				select {
				case one := <-told:
					if !yield(one) {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}, nil
	}}, kg.Options{})
	shared, hidden, public := s.make(t, channel.Private, "bob", "cleo"), s.make(t, channel.Private, "cleo", "dora"), s.make(t, channel.Public, "dora")
	feed, outsider := s.followAgent(t, "bob", nil), s.followAgent(t, "eve", nil)
	signal := func(who string, id channel.ID) {
		t.Helper()
		wantCode(t, who, s.Signal(within(t), as(who), id, channels.Typing, nil), "")
	}
	present := func(who string) {
		t.Helper()
		select {
		case told <- channels.PresenceChange{Agent: kg.AgentID("agent://" + who), Status: "IDLE"}:
		case <-within(t).Done():
			t.Fatal("presence is not read")
		}
	}
	s.make(t, channel.Private, "cleo")
	s.say(t, "ann", hidden.ID, "hi")
	signal("cleo", hidden.ID)
	signal("dora", public.ID) // bob may read it, and is no member
	present("dora")
	present("bob")
	present("eve")
	if _, err := s.Members().Add(within(t), as("ann"), hidden.ID, "finn", channel.Ordinary); err != nil {
		t.Fatal(err)
	}
	signal("cleo", shared.ID)
	feed.want(string(shared.ID) + " typing agent://cleo")
	present("cleo")
	present("dora") // the change before was passed on when this one is taken
	feed.want("agent://cleo IDLE")
	next := s.make(t, channel.Public, "bob", "dora")
	outsider.want(string(next.ID) + " created") // and nothing of its members
	feed.want(string(next.ID)+" created", string(next.ID)+" joined agent://ann", string(next.ID)+" joined agent://bob", string(next.ID)+" joined agent://dora")
	present("dora")
	feed.want("agent://dora IDLE")
	if err := s.Members().Ban(within(t), as("ann"), shared.ID, "bob", time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.say(t, "ann", shared.ID, "without bob")
	signal("cleo", shared.ID)
	present("cleo")
	last := s.make(t, channel.Public)
	for {
		e := feed.read()
		if text := saying(e); text == string(last.ID)+" created" {
			break
		} else if text != string(shared.ID)+" left agent://bob" {
			t.Errorf("told %q after the ban", text)
		}
	}
	outsider.want(string(last.ID) + " created")
}

type jsonRaw = json.RawMessage
