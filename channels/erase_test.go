package channels_test

import (
	"fmt"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/internal/slowtest"
	"koine/kg"
)

// Erased messages keep their numbers, which are not assigned again, and are shown as
// erased: in histories, in streams, and one by one.
func TestErased(t *testing.T) {
	slowtest.Long(t)
	for _, row := range []struct {
		name   string
		erase  func(m *message.Message) kg.EraseOptions
		author kg.AgentID
	}{
		{"the message", func(m *message.Message) kg.EraseOptions {
			return kg.EraseOptions{Pattern: kg.Pattern{Subject: m.ID.Entity(), Graph: m.Channel.MessagesGraph()}}
		}, ""},
		{"its number by name", func(m *message.Message) kg.EraseOptions {
			return kg.EraseOptions{Pattern: kg.Pattern{Predicate: kg.Sequence, Graph: m.Channel.MessagesGraph()}}
		}, "agent://bob"},
		{"what its author said", func(m *message.Message) kg.EraseOptions {
			return kg.EraseOptions{Source: "agent://bob", Pattern: kg.Pattern{Graph: m.Channel.MessagesGraph()}}
		}, ""},
		{"its parts", func(m *message.Message) kg.EraseOptions {
			return kg.EraseOptions{Pattern: kg.Pattern{Subject: m.ID.Entity(), Predicate: kg.Parts, Graph: m.Channel.MessagesGraph()}}
		}, "agent://bob"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := serve(t, channels.Options{CountBatch: 1000}, kg.Options{})
			c := s.make(t, channel.Private, "bob")
			s.say(t, "ann", c.ID, "one")
			two := s.say(t, "bob", c.ID, "two")
			s.say(t, "ann", c.ID, "three")
			o := row.erase(two)
			s.erase(t, o)
			if next := s.say(t, "ann", c.ID, "four"); next.Sequence != 4 {
				t.Errorf("the next has the number %d", next.Sequence)
			}
			gone := o.Pattern.Predicate != kg.Sequence
			check := func(where string, m *message.Message) {
				t.Helper()
				erased := m.Sequence == 2 && gone
				if (m.Withheld == message.Erased) != erased || (m.Parts == nil) != erased || !m.Time.Equal(two.Time) && m.Sequence == 2 || m.Sequence == 2 && (m.ID != two.ID || m.Author != row.author) {
					t.Errorf("%s: %+v", where, m)
				}
			}
			page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{})
			if err != nil || fmt.Sprint(sequences(page)) != "[1 2 3 4]" {
				t.Fatalf("history: %v, %v", sequences(page), err)
			}
			for _, m := range page {
				check("history", m)
			}
			if page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{SinceTime: two.Time.Add(-1)}); err != nil || len(page) < 3 {
				t.Errorf("since its time: %v, %v", sequences(page), err)
			}
			stream, err := s.Stream(within(t), as("bob"), c.ID, new(int64))
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			for m, err := range stream.Messages() {
				if err != nil {
					t.Fatal(err)
				}
				if check("stream", m); m.Sequence == 4 {
					break
				}
			}
			one, err := s.Message(within(t), as("bob"), two.ID)
			if err != nil {
				t.Fatal(err)
			}
			check("alone", one)
			counts, err := s.Counts(within(t), as("bob"), c.ID, channels.CountQuery{})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range counts {
				if n.Author == "" {
					t.Errorf("counted: %+v", n)
				}
			}
			s.store.MustCheck(within(t))
		})
	}
}

// The oldest message left is known after the erasure of evicted ones.
func TestErasedWhereEvicted(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	c, err := s.Create(within(t), as("ann"), channel.Draft{KeepMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		s.say(t, "ann", c.ID, "%d", i)
	}
	s.erase(t, kg.EraseOptions{Pattern: kg.Pattern{Graph: c.ID.MessagesGraph()}})
	s.say(t, "ann", c.ID, "last")
	page, _, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{})
	if err != nil || fmt.Sprint(sequences(page)) != "[9]" {
		t.Errorf("%v, %v", sequences(page), err)
	}
}

// erase erases while the store is closed.
func (s *server) erase(t testing.TB, o kg.EraseOptions) {
	t.Helper()
	s.Close()
	s.store.MustClose()
	r, err := kg.Erase(within(t), s.dir, o)
	if err != nil || r.Changes == 0 && o.Pattern.Predicate != kg.Sequence {
		t.Fatalf("erased: %+v, %v", r, err)
	}
	s.restart(t)
}

// A channel closes by itself so long after its last message, also where that was erased;
// and a message that took another back is still known to have done so.
func TestErasedIsTheLast(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c, err := s.Create(within(t), as("ann"), channel.Draft{ExpireAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	m := s.say(t, "ann", c.ID, "one")
	clock.step(40 * time.Minute)
	taken, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: m.ID})
	if err != nil {
		t.Fatal(err)
	}
	s.erase(t, kg.EraseOptions{Pattern: kg.Pattern{Subject: taken.Message.ID.Entity(), Graph: c.ID.MessagesGraph()}})
	again, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: m.ID})
	if err != nil || !again.Replayed || again.Message.ID != taken.Message.ID || again.Message.Sequence != 2 || !again.Message.Time.Equal(taken.Message.Time) {
		t.Errorf("again: %+v, %v", again, err)
	}
	clock.step(40 * time.Minute)
	if now, err := s.Get(within(t), as("ann"), c.ID); err != nil || now.Status() != channel.Open {
		t.Errorf("%+v, %v", now, err)
	}
	s.say(t, "ann", c.ID, "more") // is decided in a commit
}

// Messages erased before they were counted do not stop the counts of others.
func TestErasedIsNotCounted(t *testing.T) {
	slowtest.Long(t)
	const every, most = 4, 20 // messages, and times so many that are not counted yet
	s := serve(t, channels.Options{CountBatch: every}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	s.say(t, "ann", c.ID, "one")
	two := s.say(t, "bob", c.ID, "two")
	s.erase(t, kg.EraseOptions{Pattern: kg.Pattern{Subject: two.ID.Entity(), Graph: c.ID.MessagesGraph()}})
	for range 2 * every * most {
		s.say(t, "ann", c.ID, "more")
	}
	var counts []channels.AuthorCount
	eventually(t, "they are counted", func() bool {
		var err error
		counts, err = s.Counts(within(t), as("ann"), c.ID, channels.CountQuery{})
		return err == nil
	})
	n := int64(0)
	for _, of := range counts {
		if n += of.Messages; of.Author != "agent://ann" {
			t.Errorf("counted: %+v", of)
		}
	}
	if n != 1+2*every*most {
		t.Errorf("%d are counted", n)
	}
}

// The channels of an erased scope are inaccessible: they do not become public, nor do its
// tasks become intents.
func TestErasedScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	access := scope.Access{Agents: []kg.AgentID{"bob"}}
	intent := s.scope(t, scope.Draft{Access: access})
	task := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Everybody: true}})
	var ids []channel.ID
	for _, scope := range []scope.ID{intent.ID, task.ID} {
		for _, policy := range []channel.MemberPolicy{channel.ByScope, channel.Explicit} {
			ids = append(ids, s.makeIn(t, scope, fmt.Sprint("of ", policy, " in ", scope), policy, "bob").ID)
		}
	}
	for _, id := range ids {
		s.say(t, "ann", id, "secret")
	}
	s.erase(t, kg.EraseOptions{Pattern: kg.Pattern{Graph: intent.ID.RecordGraph()}})
	for _, who := range []string{"ann", "bob", "eve"} {
		for _, id := range ids {
			_, err := s.Get(within(t), as(who), id)
			wantCode(t, who+" finds it", err, kg.CodeChannelNotFound)
			_, err = s.Publish(within(t), as(who), channels.Publication{Channel: id, Parts: text("hi")})
			wantCode(t, who+" publishes", err, kg.CodeChannelNotFound)
		}
		for _, scope := range []scope.ID{intent.ID, task.ID} {
			_, err := s.Scopes().Get(within(t), as(who), scope)
			wantCode(t, who+" sees the scope", err, kg.CodeScopeNotFound)
			_, err = s.CreateIn(within(t), as(who), scope, channel.Draft{Name: "new"})
			wantCode(t, who+" makes another", err, kg.CodeScopeNotFound)
		}
		if list, _, err := s.List(within(t), as(who), channel.ListQuery{}); err != nil || len(list) != 0 {
			t.Errorf("%s lists %v, %v", who, list, err)
		}
		if page, _, _, err := s.Inbox(within(t), as(who), channels.InboxQuery{}); err != nil || len(page) != 0 {
			t.Errorf("%s is told %v, %v", who, page, err)
		}
		snapshot, err := s.store.View(within(t), kg.View{Principal: as(who).Principal, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := snapshot.Count(kg.Pattern{Predicate: kg.Parts}); err != nil || n != 0 {
			t.Errorf("%s counts %d contents, %v", who, n, err)
		}
		snapshot.Close()
	}
	snapshot, err := s.store.View(within(t), kg.View{Principal: admin("root").Principal, AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	if n, err := snapshot.Count(kg.Pattern{Predicate: kg.Parts}); err != nil || n != uint64(len(ids)) {
		t.Errorf("an administrator counts %d contents, %v", n, err)
	}
	s.make(t, channel.Private) // the others go on
}

// A channel whose record is erased does not exist any more; a direct one begins anew, after
// the assigned numbers.
func TestErasedRecord(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public, "bob")
	s.say(t, "bob", c.ID, "secret")
	psst := channels.Publication{To: "bob", Parts: text("secret")}
	direct, err := s.Publish(within(t), as("ann"), psst)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []channel.ID{c.ID, direct.Message.Channel} {
		s.erase(t, kg.EraseOptions{Pattern: kg.Pattern{Graph: id.RecordGraph()}})
	}
	for _, by := range []channels.Caller{as("ann"), as("bob"), as("eve"), admin("root")} {
		_, err := s.Get(within(t), by, c.ID)
		wantCode(t, "finds it", err, kg.CodeChannelNotFound)
		_, err = s.Publish(within(t), by, channels.Publication{Channel: c.ID, Parts: text("hi")})
		wantCode(t, "publishes", err, kg.CodeChannelNotFound)
		snapshot, err := s.store.View(within(t), kg.View{Principal: by.Principal, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := snapshot.Count(kg.Pattern{Predicate: kg.Parts}); err != nil || n != 0 {
			t.Errorf("%s counts %d contents, %v", by.Principal.ID, n, err)
		}
		snapshot.Close()
	}
	again, err := s.Publish(within(t), as("bob"), channels.Publication{To: "ann", Parts: text("anew")})
	if err != nil || again.Message.Channel != direct.Message.Channel || again.Message.Sequence != 2 {
		t.Errorf("anew: %+v, %v", again, err)
	}
}
