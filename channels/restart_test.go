package channels_test

import (
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// TestRightsChangedBeforeTheStart proves that a service that begins on a store knows that rights
// have changed: a stream that resumes before a change of an existing channel ends, and one that
// resumes before the creation of a channel goes on.
func TestRightsChangedBeforeTheStart(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, err := s.Create(within(t), as("ann"), channel.Draft{})
	if err != nil {
		t.Fatal(err)
	}
	before := s.store.Head().Revision
	if _, err := s.Members().Add(within(t), as("ann"), c.ID, "bob", channel.Ordinary); err != nil {
		t.Fatal(err)
	}
	joined := s.store.Head().Revision
	if _, err := s.Create(within(t), as("ann"), channel.Draft{Members: []channel.Member{{Agent: "bob"}}}); err != nil {
		t.Fatal(err)
	}
	s.say(t, "ann", c.ID, "hello")
	next := channels.New(channels.Options{})
	if err := next.Load(t.Context(), s.store.Store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	guard := next.Guard(kg.AllowAll{})
	bob := kg.Principal{ID: "agent://bob", Method: "key"}
	if changed, _ := guard.ReadChanged(bob, before); !changed {
		t.Error("a stream that resumes before bob joined does not end")
	}
	if changed, _ := guard.ReadChanged(bob, joined); changed {
		t.Error("a stream that resumes after bob joined ends")
	}
}
