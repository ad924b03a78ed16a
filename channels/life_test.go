package channels_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/internal/slowtest"
	"koine/kg"
)

// A closed channel accepts no message, stays readable, and its streams end after the last
// message; the key of an earlier publication still returns it.
func TestCloseChannel(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	live, err := s.Stream(within(t), as("bob"), c.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	keyed := channels.Publication{Channel: c.ID, Parts: text("first"), IdempotencyKey: "k"}
	first, err := s.Publish(within(t), as("bob"), keyed)
	if err != nil {
		t.Fatal(err)
	}
	s.say(t, "ann", c.ID, "second")
	_, err = s.CloseChannel(within(t), as("bob"), c.ID, "")
	wantCode(t, "a member closes it", err, kg.CodePermissionDenied)
	_, err = s.CloseChannel(within(t), as("eve"), c.ID, "")
	wantCode(t, "an outsider", err, kg.CodeChannelNotFound)
	_, err = s.CloseChannel(within(t), as("ann"), c.ID, strings.Repeat("x", channels.MaxReasonRunes+1))
	wantCode(t, "a reason too long", err, kg.CodeLimitExceeded)
	closed, err := s.CloseChannel(within(t), as("ann"), c.ID, strings.Repeat("ä", channels.MaxReasonRunes))
	if err != nil || closed.Status() != channel.Closed || closed.ClosedAt.IsZero() || closed.CloseReason == "" || closed.Version != c.Version+1 || closed.Messages != 2 {
		t.Fatalf("closed: %+v, %v", closed, err)
	}
	_, err = s.CloseChannel(within(t), as("ann"), c.ID, "")
	wantCode(t, "again", err, kg.CodeChannelClosed)
	check := func() {
		t.Helper()
		_, err = s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: text("third")})
		wantCode(t, "publishes", err, kg.CodeChannelClosed)
		_, err = s.Publish(within(t), as("eve"), channels.Publication{Channel: c.ID, Parts: text("third")})
		wantCode(t, "an outsider publishes", err, kg.CodeChannelNotFound)
		fact := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1), Graph: c.ID.FactsGraph()}}
		_, err = s.store.Update(within(t), kg.Meta{Principal: as("bob").Principal}, func(tx *kg.Tx) error { return tx.Apply(fact) })
		wantCode(t, "asserts the first fact", err, kg.CodeGraphNotFound)
		again, err := s.Publish(within(t), as("bob"), keyed)
		if err != nil || !again.Replayed || again.Message.ID != first.Message.ID {
			t.Errorf("the same key: %+v, %v", again, err)
		}
		if page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{}); err != nil || len(page) != 2 {
			t.Errorf("%d messages, %v", len(page), err)
		}
		if got, err := s.Get(within(t), as("bob"), c.ID); err != nil || got.Status() != channel.Closed || !got.ClosedAt.Equal(closed.ClosedAt) {
			t.Errorf("%+v, %v", got, err)
		}
		replay, err := s.Stream(within(t), as("bob"), c.ID, new(int64))
		if err != nil {
			t.Fatal(err)
		}
		defer replay.Close()
		wantStream(t, replay, "[1 2]", kg.CodeChannelClosed)
	}
	check()
	wantStream(t, live, "[1 2]", kg.CodeChannelClosed)
	_, err = s.Members().Add(within(t), as("ann"), c.ID, "finn", "")
	wantCode(t, "who reads it is still managed", err, "")
	if n, err := s.Members().RemoveAgent(within(t), as("finn"), "finn"); n != 1 || err != nil {
		t.Errorf("finn goes: %d, %v", n, err)
	}
	s.restart(t)
	check()
	wantCode(t, "deleted", s.Delete(within(t), as("ann"), c.ID), "")
}

// wantStream reads a stream to its end.
func wantStream(t testing.TB, stream *channels.Stream, want string, end kg.Code) {
	t.Helper()
	var got []int64
	for m, err := range stream.Messages() {
		if err != nil {
			wantCode(t, "the end", err, end)
			break
		}
		got = append(got, m.Sequence)
	}
	if fmt.Sprint(got) != want {
		t.Errorf("the stream tells %v, want %s", got, want)
	}
}

// Ending an intent ends its tasks and closes all of their channels in one commit, whose
// time they all have; nothing new is added to it.
func TestEndScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Coordinator: "cleo", Access: scope.Access{Everybody: true}})
	task := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Everybody: true}})
	done := s.scope(t, scope.Draft{Parent: intent.ID, Access: scope.Access{Everybody: true}})
	other := s.scope(t, scope.Draft{Access: scope.Access{Everybody: true}})
	a, b, d := s.makeIn(t, intent.ID, "a", channel.ByScope), s.makeIn(t, task.ID, "b", channel.ByScope), s.makeIn(t, done.ID, "d", channel.ByScope)
	e, gone, early := s.makeIn(t, other.ID, "e", channel.ByScope), s.makeIn(t, intent.ID, "gone", ""), s.makeIn(t, intent.ID, "early", "")
	wantCode(t, "delete", s.Delete(within(t), as("ann"), gone.ID), "")
	_, err := s.CloseChannel(within(t), as("ann"), early.ID, "early")
	wantCode(t, "close", err, "")
	end := func(by string, id scope.ID, status scope.Status, want kg.Code) *scope.Scope {
		t.Helper()
		sc, err := s.Scopes().End(within(t), as(by), id, status, "why")
		wantCode(t, "end", err, want)
		return sc
	}
	end("ann", intent.ID, scope.Active, kg.CodeInvalid)
	end("bob", intent.ID, scope.Completed, kg.CodePermissionDenied)
	end("ann", "none", scope.Completed, kg.CodeScopeNotFound)
	end("cleo", done.ID, scope.Completed, "")
	if got, _ := s.Get(within(t), as("ann"), a.ID); got.Status() != channel.Open {
		t.Error("the end of a task closes a channel of the intent")
	}
	head := s.store.Head().Revision
	ended := end("cleo", intent.ID, scope.Abandoned, "")
	if n := s.store.Head().Revision - head; n != 1 {
		t.Errorf("it took %d commits", n)
	}
	if ended.Status != scope.Abandoned || ended.EndedAt.IsZero() || ended.EndReason != "why" {
		t.Errorf("ended: %+v", ended)
	}
	end("cleo", intent.ID, scope.Completed, kg.CodeScopeEnded)
	for _, row := range []struct {
		c      *channel.Channel
		at     time.Time
		reason string
	}{{a, ended.EndedAt, "its scope has ended"}, {b, ended.EndedAt, "its scope has ended"}, {early, time.Time{}, "early"}, {d, time.Time{}, "its scope has ended"}} {
		got, err := s.Get(within(t), as("ann"), row.c.ID)
		if err != nil || got.Status() != channel.Closed || got.CloseReason != row.reason || !row.at.IsZero() && !got.ClosedAt.Equal(row.at) {
			t.Errorf("%s: %+v, %v", row.c.Name, got, err)
		}
	}
	for id, want := range map[scope.ID]scope.Status{task.ID: scope.Abandoned, done.ID: scope.Completed, other.ID: scope.Active} {
		if sc, err := s.Scopes().Get(within(t), as("bob"), id); err != nil || sc.Status != want {
			t.Errorf("%+v, %v", sc, err)
		}
	}
	s.say(t, "bob", e.ID, "elsewhere life goes on")
	_, err = s.CreateIn(within(t), as("ann"), task.ID, channel.Draft{Name: "new"})
	wantCode(t, "a channel", err, kg.CodeScopeEnded)
	_, err = s.Scopes().Create(within(t), as("ann"), scope.Draft{Parent: intent.ID})
	wantCode(t, "a task", err, kg.CodeScopeEnded)
	_, err = s.PublishByName(within(t), as("ann"), intent.ID, "new", channels.Publication{Parts: text("hi")})
	wantCode(t, "a message of a new name", err, kg.CodeScopeEnded)
	_, err = s.PublishByName(within(t), as("ann"), intent.ID, "a", channels.Publication{Parts: text("hi")})
	wantCode(t, "a message", err, kg.CodeChannelClosed)
}

// Of many concurrent first messages to a name one creates the channel, and all are in it.
func TestPublishByName(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob", "cleo"}}})
	for round := range 5 {
		name := fmt.Sprint("room ", round)
		head := s.store.Head().Revision
		const publishers = 48
		where := make([]channel.ID, publishers)
		var done sync.WaitGroup
		for i := range where {
			done.Go(func() {
				r, err := s.PublishByName(within(t), as([]string{"ann", "bob", "cleo"}[i%3]), intent.ID, name, channels.Publication{Parts: text("%d", i)})
				if err != nil {
					t.Error(err)
					return
				}
				where[i] = r.Message.Channel
			})
		}
		done.Wait()
		slices.Sort(where)
		if where = slices.Compact(where); len(where) != 1 {
			t.Fatalf("they went to %v", where)
		}
		c, err := s.Get(within(t), as("bob"), where[0])
		if err != nil || c.Messages != publishers || c.Name != name || c.MemberPolicy != channel.ByScope {
			t.Errorf("%+v, %v", c, err)
		}
		if n := s.store.Head().Revision - head; n != publishers {
			t.Errorf("it took %d commits", n)
		}
	}
	if list, _, err := s.List(within(t), as("cleo"), channel.ListQuery{Scope: intent.ID}); err != nil || len(list) != 5 {
		t.Errorf("%d channels, %v", len(list), err)
	}
	publish := func(by string, scope scope.ID, name string, p channels.Publication, want kg.Code) *channels.Receipt {
		t.Helper()
		r, err := s.PublishByName(within(t), as(by), scope, name, p)
		wantCode(t, name, err, want)
		return r
	}
	hi := channels.Publication{Parts: text("hi")}
	publish("eve", intent.ID, "room 1", hi, kg.CodeScopeNotFound)
	publish("eve", "none", "room 1", hi, kg.CodeScopeNotFound)
	publish("bob", intent.ID, "", hi, kg.CodeInvalid)
	publish("bob", intent.ID, strings.Repeat("x", channel.MaxNameRunes+1), hi, kg.CodeLimitExceeded)
	publish("bob", intent.ID, "no parts", channels.Publication{}, kg.CodeInvalid)
	publish("bob", intent.ID, "both", channels.Publication{Channel: "c", Parts: text("hi")}, kg.CodeInvalid)
	s.makeIn(t, intent.ID, "explicit", "")
	publish("bob", intent.ID, "explicit", hi, kg.CodeChannelNotFound)
	// Facts come with a first message too, and the key of it is known again.
	fact := kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(1)}}
	p := channels.Publication{Parts: text("see"), Patches: []kg.Patch{fact}, IdempotencyKey: "k"}
	r := publish("bob", intent.ID, "facts", p, "")
	if r.Affected != 1 || r.Message.Sequence != 1 {
		t.Errorf("with facts: %+v", r)
	}
	if again := publish("bob", intent.ID, "facts", p, ""); !again.Replayed || again.Message.ID != r.Message.ID {
		t.Errorf("again: %+v", again)
	}
}

// A channel expires after its last message, at once in decisions and reads, and soon in the
// store, with the time at which it was due.
func TestExpireAfter(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	made, err := s.Create(within(t), as("ann"), channel.Draft{ExpireAfter: time.Minute})
	if err != nil || made.ExpireAfter != time.Minute {
		t.Fatal(made, err)
	}
	idle, err := s.Create(within(t), as("ann"), channel.Draft{ExpireAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	clock.step(59 * time.Second)
	m := s.say(t, "ann", made.ID, "one")
	clock.step(59 * time.Second)
	if c, err := s.Get(within(t), as("ann"), made.ID); err != nil || c.Status() != channel.Open {
		t.Errorf("before: %+v, %v", c, err)
	}
	head := s.store.Head().Revision
	stream, err := s.Stream(within(t), as("ann"), made.ID, new(int64))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	clock.step(2 * time.Second)
	due := m.Time.Add(time.Minute)
	c, err := s.Get(within(t), as("ann"), made.ID)
	if err != nil || !c.ClosedAt.Equal(due) || c.CloseReason != "expired" || c.Messages != 1 || !c.LastMessageAt.Equal(m.Time) {
		t.Errorf("at once: %+v, %v", c, err)
	}
	_, err = s.Publish(within(t), as("ann"), channels.Publication{Channel: made.ID, Parts: text("two")})
	wantCode(t, "a message", err, kg.CodeChannelClosed)
	wantStream(t, stream, "[1]", kg.CodeChannelClosed) // tells that it is written down
	if n := s.store.Head().Revision - head; n != 1 {
		t.Errorf("it took %d commits", n)
	}
	commit, err := s.store.Commit(within(t), kg.SystemPrincipal(), head+1)
	if err != nil || commit.Actor != kg.System || commit.Justification == "" {
		t.Errorf("%+v, %v", commit, err)
	}
	if c, err = s.Get(within(t), as("ann"), made.ID); err != nil || !c.ClosedAt.Equal(due) || c.Version != made.Version+1 {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
	// Channels due during a downtime close after the start, as of their time.
	clock.step(time.Hour)
	s.restart(t)
	eventually(t, "closed after the start", func() bool {
		n, err := s.countClosed(t)
		return err == nil && n == 2
	})
	if c, err = s.Get(within(t), as("ann"), idle.ID); err != nil || !c.ClosedAt.Equal(idle.CreatedAt.Add(time.Hour)) {
		t.Errorf("after the start: %+v, %v", c, err)
	}
}

// countClosed is the number of channels that are closed in the store.
func (s *server) countClosed(t testing.TB) (uint64, error) {
	snapshot, err := s.store.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	return snapshot.Count(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "channelClosedAt")})
}

func TestChangeExpireAfter(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob")
	clock.step(time.Hour)
	version := c.Version
	update := func(by string, d time.Duration, want kg.Code) *channel.Channel {
		t.Helper()
		now, err := s.Update(within(t), as(by), c.ID, channel.Update{ExpectedVersion: version, ExpireAfter: &d})
		wantCode(t, fmt.Sprint(d), err, want)
		if err == nil {
			version = now.Version
		}
		return now
	}
	update("bob", time.Hour, kg.CodePermissionDenied)
	update("ann", channel.MinExpireAfter-time.Millisecond, kg.CodeInvalid)
	update("ann", channel.MinExpireAfter+time.Microsecond, kg.CodeInvalid)
	update("ann", channel.MaxExpireAfter+time.Second, kg.CodeLimitExceeded)
	update("ann", channel.MaxExpireAfter, "")
	if now := update("ann", channel.MinExpireAfter, ""); now.Status() != channel.Open {
		t.Error("it expired before it was said that it would")
	}
	if now := update("ann", 0, ""); now.ExpireAfter != 0 {
		t.Errorf("for ever: %+v", now)
	}
	clock.step(time.Hour)
	s.say(t, "bob", c.ID, "still here")
	update("ann", channel.MinExpireAfter, "")
	clock.step(channel.MinExpireAfter)
	_, err := s.Publish(within(t), as("bob"), channels.Publication{Channel: c.ID, Parts: text("too late")})
	wantCode(t, "past its time", err, kg.CodeChannelClosed)
	eventually(t, "it is written down", func() bool {
		n, err := s.countClosed(t)
		return err == nil && n == 1
	})
	got, err := s.Get(within(t), as("ann"), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	version = got.Version
	update("ann", 0, kg.CodeChannelClosed)
}
