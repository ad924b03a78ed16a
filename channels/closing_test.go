package channels_test

import (
	"fmt"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/channels/scope"
	"koine/internal/slowtest"
	"koine/kg"
)

// However a channel closes, its unread messages expire for good, at once and in the same
// commit; its messages stay readable.
func TestClosingExpires(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"agent://bob", "agent://cleo"}}})
	due := func() *channel.Channel {
		c, err := s.Create(within(t), as("ann"), channel.Draft{ExpireAfter: time.Minute, Members: []channel.Member{{Agent: "agent://bob"}, {Agent: "agent://cleo"}}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, row := range map[string]struct {
		make  func() *channel.Channel
		close func(*channel.Channel)
	}{
		"closed": {func() *channel.Channel { return s.make(t, channel.Private, "bob", "cleo") }, func(c *channel.Channel) {
			_, err := s.CloseChannel(within(t), as("ann"), c.ID, "")
			wantCode(t, "close", err, "")
		}},
		"ended": {func() *channel.Channel { return s.makeIn(t, intent.ID, "lab", "", "bob", "cleo") }, func(*channel.Channel) {
			_, err := s.Scopes().End(within(t), as("ann"), intent.ID, scope.Completed, "")
			wantCode(t, "end", err, "")
		}},
		"by itself": {due, func(*channel.Channel) { clock.step(time.Minute) }},
		"by itself, and written down": {due, func(*channel.Channel) {
			before, err := s.countClosed(t)
			if err != nil {
				t.Fatal(err)
			}
			clock.step(time.Minute)
			eventually(t, "it is written down", func() bool { n, err := s.countClosed(t); return err == nil && n > before })
		}},
	} {
		c := row.make()
		id := c.ID
		all := s.say(t, "ann", id, "to all")
		one := s.mustSend(t, "ann", id, message.Envelope{To: "bob"})
		request := s.mustSend(t, "ann", id, message.Envelope{Interaction: message.Request, To: "bob", ExpiresAt: clock.now().Add(time.Hour)})
		answered := s.mustSend(t, "ann", id, message.Envelope{Interaction: message.Request, To: "bob", ExpiresAt: clock.now().Add(time.Hour)})
		s.mustSend(t, "bob", id, message.Envelope{Interaction: message.Response, Correlation: answered.ID})
		ack := func(by string, state receipts.State, upTo int64, messages ...message.ID) error {
			return s.Receipts().Acknowledge(within(t), as(by), receipts.Acknowledgement{Channel: id, UpTo: upTo, Messages: messages, State: state})
		}
		wantCode(t, name, ack("cleo", receipts.Read, 1), "")
		wantCode(t, name, ack("bob", receipts.Read, 0, answered.ID), "")
		wantCode(t, name, ack("bob", receipts.Delivered, 1), "")
		eventually(t, "delivered", func() bool { return s.got(t, "ann", id, all.ID) == "bob:delivered cleo:read" })
		head := s.store.Head().Revision
		row.close(c)
		if n := s.store.Head().Revision - head; n > 1 {
			t.Errorf("%s: it took %d commits", name, n)
		}
		check := func() {
			t.Helper()
			for m, want := range map[*message.Message]string{all: "bob:expired cleo:read", one: "bob:expired", request: "bob:expired", answered: "bob:read"} {
				if got := s.got(t, "cleo", id, m.ID); got != want {
					t.Errorf("%s: message %d is %q, want %q", name, m.Sequence, got, want)
				}
			}
			if own, err := s.Receipts().Own(within(t), as("bob"), id, one.ID); err != nil || own != receipts.Expired {
				t.Errorf("%s: bob's own is %q, %v", name, own, err)
			}
			for status, want := range map[receipts.State]string{receipts.Expired: "[1 2 3]", receipts.Read: "[4]", receipts.Pending: "[]", receipts.Delivered: "[]"} {
				if got, err := s.walk(t, "bob", id, channels.HistoryQuery{Status: status}); err != nil || fmt.Sprint(got) != want {
					t.Errorf("%s: bob has %v %s, %v; want %s", name, got, status, err, want)
				}
			}
			if n, err := s.Receipts().Unread(within(t), as("bob"), id); err != nil || n != (receipts.UnreadCount{}) {
				t.Errorf("%s: %+v unread, %v", name, n, err)
			}
			page, _, err := s.History(within(t), as("bob"), id, channels.HistoryQuery{})
			if err != nil || len(page) != 5 {
				t.Fatalf("%s: %d messages, %v", name, len(page), err)
			}
			for _, m := range page {
				if m.Withheld != "" || m.Parts == nil {
					t.Errorf("%s: %+v", name, m)
				}
			}
		}
		check()
		wantCode(t, name+": reads singly", ack("bob", receipts.Read, 0, one.ID), kg.CodeMessageExpired)
		wantCode(t, name+": reads all", ack("bob", receipts.Read, 5), kg.CodeMessageExpired)
		wantCode(t, name+": gets it", ack("bob", receipts.Delivered, 2), kg.CodeMessageExpired)
		_, err := s.send(t, "bob", id, message.Envelope{Interaction: message.Response, Correlation: request.ID})
		wantCode(t, name+": responds", err, kg.CodeChannelClosed)
		if _, err := s.Members().RemoveAgent(within(t), as("bob"), "bob"); err != nil {
			t.Error(err)
		}
		_, err = s.Members().Add(within(t), as("ann"), id, "bob", "")
		wantCode(t, name+": comes again", err, "")
		check()
		s.restart(t)
		check()
	}
}

// An acknowledgement whose commit comes after the closing of the channel is refused.
func TestClosingBeforeReceipts(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	m := s.say(t, "ann", c.ID, "read this")
	read := func() error {
		return s.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: c.ID, UpTo: 1, State: receipts.Read})
	}
	for i := range 2 { // the first lets the next wait for a second
		if err := s.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: c.ID, UpTo: 1, State: receipts.Delivered}); err != nil {
			t.Fatal(i, err)
		}
	}
	eventually(t, "delivered", func() bool { return s.got(t, "ann", c.ID, m.ID) == "bob:delivered" })
	waits := make(chan error)
	go func() { waits <- read() }()
	_, err := s.CloseChannel(within(t), as("ann"), c.ID, "")
	wantCode(t, "close", err, "")
	// Either may come first: the answer agrees with the state.
	switch err := <-waits; kg.CodeOf(err) {
	case "":
		if got := s.got(t, "ann", c.ID, m.ID); got != "bob:read" {
			t.Error(got)
		}
	case kg.CodeMessageExpired:
		if got := s.got(t, "ann", c.ID, m.ID); got != "bob:expired" {
			t.Error(got)
		}
	default:
		t.Error(err)
	}
	wantCode(t, "later", read(), kg.CodeMessageExpired)
}

// Asking ends with the closing of the channel.
func TestAskEndsWithItsChannel(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob"}}})
	expires, err := s.Create(within(t), as("ann"), channel.Draft{ExpireAfter: time.Hour, Members: []channel.Member{{Agent: "bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		c     *channel.Channel
		close func(channel.ID) error
	}{
		"closed": {s.make(t, channel.Private, "bob"), func(id channel.ID) error { _, err := s.CloseChannel(within(t), as("ann"), id, ""); return err }},
		"ended": {s.makeIn(t, intent.ID, "lab", "", "bob"), func(channel.ID) error {
			_, err := s.Scopes().End(within(t), as("ann"), intent.ID, scope.Abandoned, "")
			return err
		}},
		"by itself": {expires, func(channel.ID) error { clock.step(time.Hour); return nil }},
	} {
		type end struct {
			a   *channels.Answer
			err error
		}
		one, all := make(chan end, 1), make(chan end, 1)
		go func() {
			a, err := s.Ask(within(t), as("ann"), question(row.c.ID, "bob", channels.MaxAskTime))
			one <- end{a, err}
		}()
		go func() {
			a, err := s.AskAll(within(t), as("ann"), question(row.c.ID, "bob", channels.MaxAskTime))
			all <- end{a, err}
		}()
		eventually(t, "both ask", func() bool { c, err := s.Get(within(t), as("ann"), row.c.ID); return err == nil && c.Messages == 2 })
		wantCode(t, name, row.close(row.c.ID), "")
		got := <-one
		if wantCode(t, name, got.err, kg.CodeChannelClosed); got.a == nil || got.a.Message == nil || len(got.a.Responses) != 0 {
			t.Errorf("%s: %+v", name, got.a)
		}
		got = <-all
		if wantCode(t, name, got.err, ""); got.a == nil || got.a.Message == nil || len(got.a.Responses) != 0 {
			t.Errorf("%s: all: %+v", name, got.a)
		}
		_, err := s.AskAll(within(t), as("ann"), question(row.c.ID, "bob", time.Minute))
		wantCode(t, name+": asked later", err, kg.CodeChannelClosed)
	}
}

// Every reading shows an answered request as one that does not expire.
func TestAnsweredDoesNotExpire(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob", "cleo")
	stream, err := s.Stream(within(t), as("bob"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	due := clock.now().Add(time.Minute)
	p := channels.Publication{Channel: c.ID, Parts: text("well?"), IdempotencyKey: "k", Envelope: message.Envelope{Interaction: message.Request, To: "bob", ExpiresAt: due}}
	asked, err := s.Publish(within(t), as("ann"), p)
	if err != nil || !asked.Message.ExpiresAt.Equal(due) {
		t.Fatal(asked, err)
	}
	open := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "bob", ExpiresAt: due})
	r, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("well."), Envelope: message.Envelope{Interaction: message.Response, Correlation: asked.Message.ID}})
	if err != nil || r.Affected != 0 {
		t.Fatal(r, err)
	}
	s.mustSend(t, "bob", c.ID, message.Envelope{Interaction: message.Response, Correlation: asked.Message.ID}) // another one
	want := func(where string, m *message.Message, err error) {
		t.Helper()
		if err != nil || (m.ID == open.ID) != m.ExpiresAt.Equal(due) || (m.ID != open.ID) != m.ExpiresAt.IsZero() || m.Withheld != "" || m.Parts == nil {
			t.Errorf("%s: %+v, %v", where, m, err)
		}
	}
	page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{})
	for _, m := range page {
		want("history", m, err)
	}
	one, err := s.Message(within(t), as("ann"), asked.Message.ID)
	want("message", one, err)
	again, err := s.Publish(within(t), as("ann"), p)
	want("published again", again.Message, err)
	for m, err := range stream.Messages() { // which has fallen behind
		want("stream", m, err)
		if m.Sequence == 4 {
			break
		}
	}
	feed, err := s.StreamInbox(within(t), as("bob"), new(kg.Position))
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for m, err := range feed.Messages() {
		want("inbox", m.Message, err)
		if m.ID == open.ID {
			break
		}
	}
	snapshot, err := s.store.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "expiresAt")}) {
		if err != nil || st.Subject != open.ID.Entity() {
			t.Errorf("stated: %v, %v", st, err)
		}
	}
	clock.step(time.Minute)
	eventually(t, "the other one expires", func() bool { n, _ := s.contents(t); return n == 3 })
	one, err = s.Message(within(t), as("ann"), asked.Message.ID)
	want("later", one, err)
}
