package channels_test

import (
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// plainly is a short text of an event.
func plainly(e channels.Event) string {
	switch {
	case e.Message != nil:
		return fmt.Sprint("message ", e.Message.Sequence)
	case e.Control.Agent != "":
		return fmt.Sprint(e.Control.Agent, " ", e.Control.Kind, " ", e.Control.Role, " ", e.Control.Version)
	}
	return fmt.Sprint(e.Control.Kind, " ", e.Control.Version)
}

// follow reads n events.
func (s *server) follow(t testing.TB, by string, id channel.ID, from *kg.Position, n int) (said []string, positions []kg.Position) {
	t.Helper()
	events, err := s.StreamEvents(within(t), as(by), id, from)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for e, err := range events.All() {
		if err != nil {
			t.Fatal(err)
		}
		said, positions = append(said, plainly(e)), append(positions, e.Position)
		if len(said) == n {
			break
		}
	}
	return said, positions
}

// Changes of a channel are delivered between its messages in the order of the log, and a
// stream resumes after any of them without a gap or a duplicate. The extension's own stream
// has messages only.
func TestEvents(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	plain := s.make(t, channel.Public)
	stream, err := s.Stream(within(t), as("ann"), plain.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	c := plain
	s.say(t, "ann", c.ID, "one")
	role := func(agent string, role channel.Role) {
		t.Helper()
		if _, err := s.Members().Add(within(t), as("ann"), c.ID, kg.AgentID(agent), role); err != nil {
			t.Fatal(err)
		}
	}
	role("bob", "")
	// A statement that a message asserts about the channel is no event of the channel.
	if _, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("two"), Patches: []kg.Patch{{
		Op: kg.Add, Quad: kg.Quad{Subject: c.ID.Entity(), Predicate: kg.IRI(kg.RDFType), Object: kg.IRI("urn:x:Room")},
	}}}); err != nil {
		t.Fatal(err)
	}
	role("bob", channel.Moderator)
	role("bob", channel.Moderator) // says nothing new
	topic := "cats"
	if _, err := s.Update(within(t), as("bob"), c.ID, channel.Update{ExpectedVersion: 3, Topic: &topic, Rights: nil}); err != nil {
		t.Fatal(err)
	}
	if err := s.Members().Mute(within(t), as("ann"), c.ID, "eve", time.Time{}); err != nil {
		t.Fatal(err)
	}
	role("cleo", channel.Observer)
	role("dora", "")
	if _, err := s.Members().RemoveAgent(within(t), admin("root"), "ann"); err != nil { // with a notice in the same commit
		t.Fatal(err)
	}
	s.say(t, "bob", c.ID, "four")
	want := []string{
		"created 1", "agent://ann joined owner 1", "message 1", "agent://bob joined member 2", "message 2", "agent://bob role moderator 3",
		"updated 4", "agent://cleo joined observer 5", "agent://dora joined member 6",
		"agent://ann left owner 7", "agent://bob role owner 7", "message 3", "message 4",
	}
	said, positions := s.follow(t, "eve", c.ID, new(kg.Position), len(want))
	if !slices.Equal(said, want) {
		t.Fatalf("got  %q\nwant %q", said, want)
	}
	for i := range want[1:] {
		if rest, _ := s.follow(t, "eve", c.ID, &positions[i], len(want)-i-1); !slices.Equal(rest, want[i+1:]) {
			t.Errorf("behind %q:\ngot  %q\nwant %q", want[i], rest, want[i+1:])
		}
	}
	_, err = s.StreamEvents(within(t), as("eve"), c.ID, &kg.Position{Epoch: positions[0].Epoch, Revision: 9999})
	wantCode(t, "a position that is not there yet", err, kg.CodePositionGone)
	next := int64(1)
	for m, err := range stream.Messages() {
		if err != nil || m.Sequence != next {
			t.Errorf("the stream tells %+v, %v", m, err)
		}
		if next++; next == 5 {
			break
		}
	}
}

// New events are delivered as they happen; a reader that loses the channel gets its end
// only, and readers until its deletion get the deletion.
func TestEventsEnd(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob", "cleo", "dora")
	next := map[string]func() (channels.Event, error, bool){}
	for _, who := range []string{"bob", "cleo", "dora", "ann"} {
		events, err := s.StreamEvents(within(t), as(who), c.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(events.Close)
		pull, stop := iter.Pull2(events.All())
		t.Cleanup(stop)
		next[who] = pull
	}
	_, err := s.StreamEvents(within(t), as("eve"), c.ID, nil)
	wantCode(t, "an outsider", err, kg.CodeChannelNotFound)
	want := func(who, says string, code kg.Code) {
		t.Helper()
		e, err, _ := next[who]()
		wantCode(t, who, err, code)
		if err == nil && plainly(e) != says {
			t.Errorf("%s: %s, want %s", who, plainly(e), says)
		}
	}
	if _, err := s.Members().Remove(within(t), as("ann"), c.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	want("bob", "", kg.CodeChannelNotFound)
	want("cleo", "agent://bob left member 2", "")
	want("dora", "agent://bob left member 2", "")
	want("ann", "agent://bob left member 2", "")
	if err := s.Members().Ban(within(t), admin("root"), channel.AllChannels, "cleo", time.Time{}); err != nil {
		t.Fatal(err)
	}
	want("cleo", "", kg.CodeChannelNotFound)
	s.say(t, "dora", c.ID, "hi")
	want("ann", "message 1", "")
	if err := s.Delete(within(t), as("ann"), c.ID); err != nil {
		t.Fatal(err)
	}
	want("ann", "deleted 3", "")
	want("ann", "", kg.CodeChannelNotFound)
	want("dora", "deleted 3", "") // a stream that was behind reads no message of it any more
	want("dora", "", kg.CodeChannelNotFound)
}

// The closing of a channel is delivered between its messages, whoever closed it.
func TestClosingIsAnEvent(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public)
	s.say(t, "ann", c.ID, "one")
	if _, err := s.CloseChannel(within(t), as("ann"), c.ID, "done"); err != nil {
		t.Fatal(err)
	}
	said, _ := s.follow(t, "eve", c.ID, new(kg.Position), 4)
	if len(said) != 4 || said[2] != "message 1" || said[3] != fmt.Sprintf("closed %d", mustGet(t, s, c.ID).Version) {
		t.Errorf("got %q", said)
	}
}

func mustGet(t testing.TB, s *server, id channel.ID) *channel.Channel {
	t.Helper()
	c, err := s.Get(within(t), as("ann"), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// changedDoubts is a Distrust of nobody that changed at a revision.
type changedDoubts struct{ at atomic.Uint64 }

func (*changedDoubts) Doubted() kg.Doubts { return nil }

func (d *changedDoubts) DoubtsChanged(after kg.Revision) (bool, kg.Revision) {
	return after < kg.Revision(d.at.Load()), after
}

// A quarantine does not concern messages and the records of channels: no stream of them ends
// by it, and streams begin before it.
func TestQuarantineEndsNoStream(t *testing.T) {
	doubts := new(changedDoubts)
	s := serve(t, channels.Options{}, kg.Options{Governor: kg.Governor{Distrust: doubts}})
	c := s.make(t, channel.Public)
	events, err := s.StreamEvents(within(t), as("ann"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	feed, err := s.StreamAll(within(t), as("ann"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	nextEvent, stopEvents := iter.Pull2(events.All())
	defer stopEvents()
	nextMessage, stopMessages := iter.Pull2(feed.Messages())
	defer stopMessages()
	for _, text := range []string{"before", "after"} {
		said := s.say(t, "ann", c.ID, "%s", text)
		if e, err, _ := nextEvent(); err != nil || e.Message == nil || e.Message.ID != said.ID {
			t.Fatalf("%s a quarantine the channel's event is %+v, %v", text, e, err)
		}
		if d, err, _ := nextMessage(); err != nil || d.ID != said.ID {
			t.Fatalf("%s a quarantine a message of all channels is %v, %v", text, d, err)
		}
		doubts.at.Store(uint64(s.store.Head().Revision) + 1)
	}
	if said, _ := s.follow(t, "ann", c.ID, &kg.Position{}, 4); !slices.Equal(said[2:], []string{"message 1", "message 2"}) {
		t.Errorf("from the beginning there is %q", said)
	}
}
