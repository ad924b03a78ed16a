package channels_test

import (
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// TestMessagesAreOfTheirAuthorsShare proves that a message counts as one of the
// statements that its author may back, until its content goes.
func TestMessagesAreOfTheirAuthorsShare(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{MaxSourceStatements: 3})
	c := s.make(t, channel.Private, "bob")
	backs := func(who kg.AgentID, want uint64) {
		t.Helper()
		if got, err := s.store.SourceStatements(who); err != nil || got != want {
			t.Errorf("%s backs %d, %v, want %d", who, got, err, want)
		}
	}
	first := s.say(t, "ann", c.ID, "1")
	s.say(t, "ann", c.ID, "2")
	s.mustSend(t, "ann", c.ID, message.Envelope{To: "agent://bob"}) // addressed messages too
	backs("agent://ann", 3)
	_, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("4")})
	if e := kg.AsError(err); err == nil || e.Code != kg.CodeLimitExceeded || e.Limit != kg.LimitStatements {
		t.Fatalf("one message too many: %v", err)
	}
	s.say(t, "bob", c.ID, "another's share")
	backs("agent://bob", 1)
	// A retraction is a message, and takes one.
	if _, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: first.ID}); err != nil {
		t.Fatal(err)
	}
	backs("agent://ann", 3)
	if _, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("4")}); kg.CodeOf(err) != kg.CodeLimitExceeded {
		t.Errorf("after a retraction: %v", err)
	}
	// Evicted messages no longer count.
	keep := int64(1)
	if _, err := s.Update(within(t), as("ann"), c.ID, channel.Update{ExpectedVersion: c.Version, KeepMessages: &keep}); err != nil {
		t.Fatal(err)
	}
	s.say(t, "bob", c.ID, "makes others go")
	s.say(t, "ann", c.ID, "again")
}
