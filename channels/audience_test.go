package channels_test

import (
	"context"
	"sync"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// Messages to everyone reach all agents that take part in the channel through the policy of
// its scope: live in channels that are made later, after access was given, and replayed. Who
// has no access hears nothing, nor does who merely reads the channel or the channel of others.
func TestAudienceTakesPartByPolicy(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	sc := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob"}}})
	shared := s.makeIn(t, sc.ID, "shared", channel.ByScope, "cleo")
	closed := s.makeIn(t, sc.ID, "closed", channel.Explicit, "cleo")
	public := s.make(t, channel.Public)

	ctx, stop := context.WithCancel(within(t))
	var reading sync.WaitGroup
	end := func() { stop(); reading.Wait() }
	t.Cleanup(end)
	hear := func(who string, from *kg.Position) <-chan channels.Delivery {
		t.Helper()
		feed, err := channels.StreamAudience(ctx, s.Service, as(who), from)
		if err != nil {
			t.Fatal(err)
		}
		out := make(chan channels.Delivery, 20)
		reading.Go(func() {
			defer feed.Close()
			for d, err := range feed.Messages() {
				if err != nil {
					return
				}
				out <- d
			}
		})
		return out
	}
	told := func(heard <-chan channels.Delivery, want ...message.ID) (last kg.Position) {
		t.Helper()
		for i, id := range want {
			select {
			case d := <-heard:
				if d.ID != id || d.Withheld != "" {
					t.Fatalf("message %d told is %+v; want %s", i, d.Message, id)
				}
				last = d.Position
			case <-ctx.Done():
				t.Fatalf("message %d, %s, is not told", i, id)
			}
		}
		return last
	}
	say := func(c channel.ID) message.ID { return s.say(t, "ann", c, "to everybody").ID }

	hello := s.makeIn(t, sc.ID, "hello", channel.ByScope)
	bob := hear("bob", nil)
	finn := hear("finn", nil)
	eve := hear("eve", nil)
	greeting := say(hello.ID)
	told(bob, greeting) // it is live from here on
	first := say(shared.ID)
	told(bob, first)
	say(closed.ID)
	say(public.ID)
	later := s.makeIn(t, sc.ID, "later", channel.ByScope)
	second := say(later.ID)
	asked := s.mustSend(t, "ann", shared.ID, message.Envelope{Interaction: message.Request, To: "bob"}).ID
	cut := told(bob, second, asked)
	// Who has heard in a channel of its own has heard, or not, all that was said before.
	own := map[string]channel.ID{}
	for _, who := range []string{"bob", "finn", "eve"} {
		own[who] = s.make(t, channel.Private, who).ID
	}
	told(finn, say(own["finn"]))
	if _, err := s.Scopes().Update(within(t), as("ann"), sc.ID, scope.Update{ExpectedVersion: 1, Access: &scope.Access{Agents: []kg.AgentID{"finn"}}}); err != nil {
		t.Fatal(err)
	}
	third := say(shared.ID)
	told(finn, third)
	mine := say(own["bob"])
	told(bob, mine) // not the third, to which he has no access
	if _, err := s.Scopes().Update(within(t), as("ann"), sc.ID, scope.Update{ExpectedVersion: 2, Access: &scope.Access{Agents: []kg.AgentID{"finn", "bob"}}}); err != nil {
		t.Fatal(err)
	}
	fourth := say(later.ID)
	told(bob, fourth)
	told(eve, say(own["eve"]))
	told(hear("bob", &kg.Position{}), greeting, first, second, asked, third, mine, fourth)
	told(hear("bob", &cut), third, mine, fourth)
	end()
	s.restart(t)
	ctx, stop = context.WithCancel(within(t))
	defer stop()
	told(hear("bob", &cut), third, mine, fourth)
}
