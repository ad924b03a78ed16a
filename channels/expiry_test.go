package channels_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/slowtest"
	"koine/kg"
)

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for ctx := within(t); !holds(); {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within a minute", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// contents is how many contents of messages the store has now, and as of when.
func (s *server) contents(t testing.TB) (n uint64, at kg.Revision) {
	t.Helper()
	snapshot, err := s.store.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	if n, err = snapshot.Count(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "parts")}); err != nil {
		t.Fatal(err)
	}
	return n, snapshot.Revision()
}

// knowsDue waits until a number of messages are known to expire: otherwise earlier ones
// would be written in more than one commit.
func (s *server) knowsDue(t testing.TB, n int) {
	t.Helper()
	eventually(t, "it is known what expires", func() bool { return s.Due() == n })
}

// From its expiry time on a message is shown without its content, in histories and in
// streams, before anything is written; then one commit removes the content of due messages,
// in all channels, and records the time. Messages that are not due, and an answered
// request, stay.
func TestExpiry(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	a, b := s.make(t, channel.Private, "bob", "cleo"), s.make(t, channel.Private, "bob")
	due := clock.now().Add(time.Minute)
	stream, err := s.Stream(within(t), as("bob"), a.ID, new(int64))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	p := channels.Publication{Channel: a.ID, Parts: text("soon gone"), IdempotencyKey: "k", Envelope: message.Envelope{Tags: []string{"t"}, Thread: "th", ExpiresAt: due}}
	first, err := s.Publish(within(t), as("ann"), p)
	if err != nil {
		t.Fatal(err)
	}
	asked := s.mustSend(t, "ann", a.ID, message.Envelope{Interaction: message.Request, To: "bob", ExpiresAt: due})
	s.mustSend(t, "ann", a.ID, message.Envelope{Interaction: message.Request, To: "bob", ExpiresAt: due})
	s.mustSend(t, "bob", a.ID, message.Envelope{Interaction: message.Response, Correlation: asked.ID})
	s.mustSend(t, "ann", a.ID, message.Envelope{ExpiresAt: due.Add(time.Hour)})
	for range 20 {
		s.mustSend(t, "ann", b.ID, message.Envelope{ExpiresAt: due})
	}
	clock.step(59*time.Second + 999*time.Millisecond)
	want := func(when string) {
		t.Helper()
		page, _, err := s.History(within(t), as("bob"), a.ID, channels.HistoryQuery{})
		if err != nil || fmt.Sprint(sequences(page)) != "[1 2 3 4 5]" {
			t.Fatalf("%s: %v, %v", when, page, err)
		}
		for i, why := range []message.Withheld{message.Expired, "", message.Expired, "", ""} {
			if clock.now().Before(due) {
				why = ""
			}
			m := page[i]
			if m.Withheld != why || (m.Parts == nil) != (why != "") || m.Time.IsZero() || m.Author == "" || why != "" && (m.Thread != "" || m.Tags != nil || !m.ExpiresAt.Equal(due)) {
				t.Errorf("%s: message %d is %+v", when, i+1, m)
			}
		}
	}
	want("just before")
	before, head := s.contents(t)
	if before != 25 {
		t.Fatalf("there are %d contents", before)
	}
	s.knowsDue(t, 24)
	clock.step(time.Millisecond)
	want("at once")
	for m, err := range stream.Messages() {
		if err != nil || (m.Withheld == message.Expired) != (m.Sequence == 1 || m.Sequence == 3) || (m.Parts == nil) != (m.Withheld != "") {
			t.Errorf("the stream tells %+v, %v", m, err)
		}
		if m.Sequence == 5 {
			break
		}
	}
	eventually(t, "the content goes", func() bool { n, _ := s.contents(t); return n == 3 })
	want("afterwards")
	_, now := s.contents(t)
	if now != head+1 {
		t.Errorf("it took %d commits", now-head)
	}
	c, err := s.store.Commit(within(t), kg.SystemPrincipal(), now)
	if err != nil || c.Actor != kg.System || c.Justification == "" {
		t.Fatalf("%+v, %v", c, err)
	}
	marks := 0
	for _, ch := range c.Changes {
		if at, _ := ch.Quad.Object.DateTimeValue(); ch.Op == kg.Add && ch.Quad.Predicate == kg.IRI(kg.OwnVocabulary+"expiredAt") && at.Equal(due) {
			marks++
		}
	}
	if marks != 22 {
		t.Errorf("%d messages are said to have expired then, want 22", marks)
	}
	if r, err := s.Publish(within(t), as("ann"), p); err != nil || !r.Replayed || r.Message.ID != first.Message.ID || r.Message.Withheld != message.Expired || r.Message.Parts != nil {
		t.Errorf("the same again: %+v, %v", r, err)
	}
	s.store.MustCheck(within(t)) // a replay of the log has the same result
	s.restart(t)
	want("opened again")
	_, err = s.send(t, "bob", a.ID, message.Envelope{Interaction: message.Response, Correlation: asked.ID})
	wantCode(t, "another response", err, "")
}

// Messages due during a downtime are expired after the restart, and more than fit in memory
// are found in time.
func TestExpiryAfterRestart(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now, MaxQueuedExpiries: 2}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob")
	for i := range 7 {
		s.mustSend(t, "ann", c.ID, message.Envelope{To: []string{"*", "bob"}[i%2], ExpiresAt: clock.now().Add(time.Duration(7-i) * time.Minute)})
	}
	s.restart(t)
	clock.step(4 * time.Minute)
	eventually(t, "four expire", func() bool { n, _ := s.contents(t); return n == 3 })
	s.Close()
	s.Close() // is no harm
	clock.step(time.Hour)
	if n, _ := s.contents(t); n != 3 {
		t.Errorf("%d are left after the end", n)
	}
	s.restart(t)
	eventually(t, "all expire", func() bool { n, _ := s.contents(t); return n == 0 })
	page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{})
	if err != nil || len(page) != 7 {
		t.Fatalf("%v, %v", page, err)
	}
	for _, m := range page {
		if m.Withheld != message.Expired {
			t.Errorf("message %d is %+v", m.Sequence, m)
		}
	}
}

// One commit removes no more content than its bound, with any number of messages.
func TestExpiryInBoundedCommits(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Patient(channels.Options{Clock: clock.now}, time.Hour), kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob")
	const messages = 18 // a little less than 256 KiB each, past 4 MiB
	due := clock.now().Add(time.Minute)
	for range messages {
		_, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("%s", strings.Repeat("x", 250<<10)), Envelope: message.Envelope{ExpiresAt: due}})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, before := s.contents(t)
	s.knowsDue(t, messages)
	clock.step(time.Minute)
	s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: due.Add(time.Hour)}) // wakes it
	eventually(t, "all expire", func() bool { n, _ := s.contents(t); return n == 1 })
	if _, now := s.contents(t); now-before-1 != 2 {
		t.Errorf("%d commits, want 2", now-before-1)
	}
}

// A new message that is due before others, more of which wait than are kept in memory, does
// not wait for them.
func TestExpiryOfWhatComesLater(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now, MaxQueuedExpiries: 2}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob")
	for i := range 4 {
		s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: clock.now().Add(time.Duration(1+i) * time.Hour)})
	}
	soon := s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: clock.now().Add(time.Minute)})
	clock.step(2 * time.Minute)
	eventually(t, "the last expires", func() bool { n, _ := s.contents(t); return n == 4 })
	if now, err := s.Message(within(t), as("bob"), soon.ID); err != nil || now.Withheld != message.Expired {
		t.Errorf("%+v, %v", now, err)
	}
	clock.step(24 * time.Hour)
	eventually(t, "all expire", func() bool { n, _ := s.contents(t); return n == 0 })
}

// No read returns the content of an expired message, from its time on and before anything
// is written: not pages, new or open streams, feeds, inboxes, the message itself, or
// replies to another.
func TestExpiredIsNeverDelivered(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	s.StopExpiry()
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob"}}})
	c := s.makeIn(t, intent.ID, "room", channel.ByScope, "bob")
	type told func() (*message.Message, error, bool)
	tellers := map[string]told{}
	follow := func(name string) {
		t.Helper()
		stream, err := s.Stream(within(t), as("bob"), c.ID, nil)
		if name == "a stream that begins" {
			stream.Close()
			stream, err = s.Stream(within(t), as("bob"), c.ID, at(2))
		}
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(stream.Messages())
		t.Cleanup(func() { stop(); stream.Close() })
		tellers[name] = next
	}
	feed := func(name string, f *channels.Feed, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(f.Messages())
		t.Cleanup(func() { stop(); f.Close() })
		tellers[name] = func() (*message.Message, error, bool) {
			d, err, more := next()
			return d.Message, err, more
		}
	}
	follow("a stream")
	all, err := s.StreamAll(within(t), as("bob"), nil)
	feed("a feed", all, err)
	scope, err := s.StreamScope(within(t), as("bob"), intent.ID, nil)
	feed("that of a scope", scope, err)
	inbox, err := s.StreamInbox(within(t), as("bob"), nil)
	feed("an inbox", inbox, err)
	for range 2 { // each reads the existing messages, and then new ones
		m := s.say(t, "ann", c.ID, "read this")
		for name, next := range tellers {
			if told, err, _ := next(); err != nil || told.ID != m.ID {
				t.Fatalf("%s: told %+v, %v", name, told, err)
			}
		}
	}
	position := s.store.Head()
	m := s.mustSend(t, "ann", c.ID, message.Envelope{To: "bob", ReplyTo: s.only(t, c.ID, 1), Tags: []string{"secret"}, ExpiresAt: clock.now().Add(time.Minute)})
	clock.step(time.Minute)
	follow("a stream that begins")
	back, err := s.StreamInbox(within(t), as("bob"), &position)
	feed("an inbox that goes on", back, err)
	one := func(list []*message.Message, err error) told {
		return func() (*message.Message, error, bool) {
			if err != nil || len(list) != 1 {
				return nil, fmt.Errorf("%d messages, %v", len(list), err), false
			}
			return list[0], nil, true
		}
	}
	page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{SinceSequence: at(2)})
	tellers["a page"] = one(page, err)
	deliveries, _, _, err := s.Inbox(within(t), as("bob"), channels.InboxQuery{After: position})
	page = nil
	for _, d := range deliveries {
		page = append(page, d.Message)
	}
	tellers["a page of the inbox"] = one(page, err)
	alone, err := s.Message(within(t), as("bob"), m.ID)
	tellers["itself"] = one([]*message.Message{alone}, err)
	page, _, err = s.Replies(within(t), as("bob"), s.only(t, c.ID, 1), 10, "")
	tellers["replies"] = one(page, err)
	for name, next := range tellers {
		if told, err, _ := next(); err != nil || told.ID != m.ID || told.Withheld != message.Expired || told.Parts != nil || told.Tags != nil {
			t.Errorf("%s: told %+v, %v", name, told, err)
		}
	}
	if n, _ := s.contents(t); n != 3 {
		t.Errorf("%d contents: it was to be asked before that is written", n)
	}
}

// only is the id of a message by its number.
func (s *server) only(t testing.TB, id channel.ID, sequence int64) message.ID {
	t.Helper()
	page, _, err := s.History(within(t), as("ann"), id, channels.HistoryQuery{SinceSequence: at(sequence - 1), PageSize: 1})
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	return page[0].ID
}
