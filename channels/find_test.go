package channels_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/slowtest"
	"koine/kg"
)

// Readers of the channel find a message by its id; for others it does not exist.
func TestMessageByID(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	m := s.say(t, "ann", c.ID, "hello")
	for _, who := range []string{"ann", "bob"} {
		got, err := s.Message(within(t), as(who), m.ID)
		if err != nil || got.ID != m.ID || got.Channel != c.ID || got.Sequence != 1 || string(got.Parts[0]) != string(m.Parts[0]) {
			t.Errorf("%s: %+v, %v", who, got, err)
		}
	}
	var said []string
	for _, id := range []message.ID{m.ID, "0192aaaa-0000-7000-8000-000000000000", "no such / id", ""} {
		_, err := s.Message(within(t), as("eve"), id)
		wantCode(t, string(id), err, kg.CodeNotFound)
		_, _, other := s.Replies(within(t), as("eve"), id, 0, "")
		said = append(said, fmt.Sprint(err, other))
	}
	if slices.Sort(said); len(slices.Compact(said)) != 1 {
		t.Errorf("eve is told %q", said)
	}
	if message.IDOf(m.ID.Entity()) != m.ID || channel.IDOf(c.ID.Entity()) != c.ID {
		t.Error("the ids of the entities are others")
	}
	for _, other := range []kg.Term{kg.String(m.ID.Entity().Value()), kg.IRI("urn:other"), c.ID.RecordGraph()} {
		if message.IDOf(other) != "" || channel.IDOf(other) != "" {
			t.Errorf("%v has an id", other)
		}
	}
}

// Replies have the order of their sequence, on every page, and end at MaxReplies.
func TestReplies(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	m, other := s.say(t, "ann", c.ID, "a"), s.say(t, "ann", c.ID, "b")
	for i := range 12 {
		to := m.ID
		if i%3 == 0 {
			to = other.ID
		}
		if _, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("%d", i), Envelope: message.Envelope{ReplyTo: to}}); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	for page := ""; ; {
		list, next, err := s.Replies(within(t), as("ann"), m.ID, 3, page)
		if err != nil || len(list) > 3 {
			t.Fatal(list, err)
		}
		got = append(got, sequences(list)...)
		if page = next; page == "" {
			break
		}
		_, _, err = s.Replies(within(t), as("ann"), other.ID, 3, page)
		wantCode(t, "a token of another message", err, kg.CodeCursorForeign)
		_, _, err = s.Replies(within(t), as("bob"), m.ID, 3, page)
		wantCode(t, "a token of another caller", err, kg.CodeCursorForeign)
	}
	if want := []int64{4, 5, 7, 8, 10, 11, 13, 14}; !slices.Equal(got, want) {
		t.Errorf("replies %v, want %v", got, want)
	}
}

// Of more replies than are looked at, those are read that were published first.
func TestRepliesAreBounded(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private)
	m := s.say(t, "ann", c.ID, "well?")
	reply := func() {
		if _, err := s.send(t, "ann", c.ID, message.Envelope{ReplyTo: m.ID}); err != nil {
			t.Error(err)
		}
	}
	var replying sync.WaitGroup
	for range 50 { // at once: they share commits
		replying.Go(func() {
			for range channels.MaxReplies / 50 {
				reply()
			}
		})
	}
	replying.Wait()
	looked := func(what string) {
		t.Helper()
		list, err := s.RepliesTo(within(t), as("ann"), m.ID)
		if err != nil || len(list) != channels.MaxReplies || list[0] != 2 || list[len(list)-1] != channels.MaxReplies+1 {
			t.Errorf("%s: %d are looked at, %v", what, len(list), err)
		}
	}
	looked("at the bound")
	reply()
	looked("past it")
}
