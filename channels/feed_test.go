package channels_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// Filters select by attributes, and withheld messages reveal none.
func TestHistoryFilters(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c, other := s.make(t, channel.Private, "bob", "cleo"), s.make(t, channel.Private, "bob")
	s.role(t, "critic", "bob")
	send := func(by string, e message.Envelope) *message.Message { return s.mustSend(t, by, c.ID, e) }
	m := []*message.Message{nil,
		send("ann", message.Envelope{Tags: []string{"x"}, Thread: "th"}),                               // 1
		send("ann", message.Envelope{Interaction: message.Request, To: "role:critic"}),                 // 2
		send("cleo", message.Envelope{To: "ann", Tags: []string{"x", "y"}, ContentType: message.Text}), // 3
	}
	m = append(m,
		send("bob", message.Envelope{Interaction: message.Response, Correlation: m[2].ID}),                                     // 4
		send("bob", message.Envelope{Interaction: message.BroadcastAll, Thread: "th"}),                                         // 5
		send("ann", message.Envelope{Tags: []string{"x"}, ContentType: message.Action, ExpiresAt: clock.now().Add(time.Hour)}), // 6
	)
	elsewhere := s.say(t, "ann", other.ID, "elsewhere")
	clock.step(time.Hour)
	for _, row := range []struct {
		by   string
		q    channels.HistoryQuery
		want string
		code kg.Code
	}{
		{"bob", channels.HistoryQuery{SinceMessage: m[2].ID}, "[3 4 5 6]", ""},
		{"bob", channels.HistoryQuery{BeforeMessage: m[2].ID}, "[1]", ""},
		{"bob", channels.HistoryQuery{SinceMessage: m[1].ID, BeforeMessage: m[5].ID, Descending: true}, "[4 3 2]", ""},
		{"bob", channels.HistoryQuery{SinceMessage: elsewhere.ID}, "", kg.CodeInvalid},
		{"bob", channels.HistoryQuery{BeforeMessage: "no such"}, "", kg.CodeInvalid},
		{"bob", channels.HistoryQuery{SinceMessage: m[1].ID, SinceSequence: at(1)}, "", kg.CodeInvalid},
		{"bob", channels.HistoryQuery{BeforeMessage: m[1].ID, BeforeSequence: 1}, "", kg.CodeInvalid},
		{"bob", channels.HistoryQuery{Recipient: "bob"}, "[1 2 6]", ""},
		{"ann", channels.HistoryQuery{Recipient: "ann"}, "[3 4 5]", ""},
		{"bob", channels.HistoryQuery{Recipient: "cleo"}, "[1 5 6]", ""},
		{"bob", channels.HistoryQuery{Interaction: message.Request}, "[2]", ""},
		{"ann", channels.HistoryQuery{Tag: "x"}, "[1 3]", ""}, // 6 has expired
		{"bob", channels.HistoryQuery{Tag: "x"}, "[1]", ""},   // 3 is for ann
		{"ann", channels.HistoryQuery{ContentType: message.Text}, "[3]", ""},
		{"ann", channels.HistoryQuery{Thread: "th", Descending: true}, "[5 1]", ""},
		{"ann", channels.HistoryQuery{Correlation: m[2].ID}, "[4]", ""},
		{"cleo", channels.HistoryQuery{Correlation: m[2].ID}, "[]", ""}, // was not asked
	} {
		for _, size := range []int{0, 1} {
			row.q.PageSize = size
			got, err := s.walk(t, row.by, c.ID, row.q)
			if (row.code == "" && fmt.Sprint(got) != row.want) || kg.CodeOf(err) != row.code {
				t.Errorf("%s, %+v: got %v, %v; want %s %s", row.by, row.q, got, err, row.want, row.code)
			}
		}
	}
	_, next, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{PageSize: 1, Tag: "x"})
	if err != nil || next == "" {
		t.Fatalf("%q, %v", next, err)
	}
	_, _, err = s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{PageSize: 1, Tag: "y", PageToken: next})
	wantCode(t, "a token of another filter", err, kg.CodeCursorForeign)
}

// An inbox has the messages to its agent, of all its channels, in the order of the log; it
// is read page by page from any position, and continues as a stream.
func TestInbox(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	a, b, c := s.make(t, channel.Private, "bob", "cleo"), s.make(t, channel.Public, "cleo"), s.make(t, channel.Public, "bob")
	s.role(t, "critic", "bob")
	var want []message.ID
	send := func(mine bool, by string, id channel.ID, e message.Envelope) {
		if m := s.mustSend(t, by, id, e); mine {
			want = append(want, m.ID)
		}
	}
	send(true, "ann", a.ID, message.Envelope{To: "bob"})
	send(false, "ann", b.ID, message.Envelope{}) // is no member there
	send(true, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "role:critic"})
	send(false, "bob", a.ID, message.Envelope{})
	send(false, "ann", a.ID, message.Envelope{To: "cleo"})
	send(true, "cleo", a.ID, message.Envelope{Interaction: message.BroadcastAll})
	direct, err := s.Publish(within(t), as("ann"), channels.Publication{To: "bob", Parts: text("you")})
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, direct.Message.ID)
	read := func(size int) (got []message.ID, at kg.Position) {
		for more := true; more; {
			var page []channels.Delivery
			page, at, more, err = s.Inbox(within(t), as("bob"), channels.InboxQuery{After: at, PageSize: size})
			if err != nil || len(page) > max(size, 1) && size != 0 {
				t.Fatalf("%v, %v", page, err)
			}
			for _, d := range page {
				got = append(got, d.ID)
				if d.Withheld != "" || d.Parts == nil {
					t.Errorf("got %+v", d.Message)
				}
			}
		}
		return got, at
	}
	for _, size := range []int{0, 1, 2, -1} {
		if got, _ := read(size); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", size, got, want)
		}
	}
	_, at := read(0)
	stream, err := s.StreamInbox(within(t), as("bob"), &at)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	want = nil
	send(true, "ann", a.ID, message.Envelope{To: "bob"})
	if _, err := s.Members().Add(within(t), as("ann"), b.ID, "bob", channel.Ordinary); err != nil {
		t.Fatal(err)
	}
	send(true, "ann", b.ID, message.Envelope{})
	made := s.make(t, channel.Private, "bob")
	send(true, "ann", made.ID, message.Envelope{})
	if _, err := s.Members().Remove(within(t), as("ann"), a.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	send(false, "ann", a.ID, message.Envelope{})
	send(true, "cleo", b.ID, message.Envelope{})
	want = want[1:] // messages of a channel that he left are unreadable
	var got []message.ID
	for d, err := range stream.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, d.ID); len(got) == len(want) {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the stream told %v, want %v", got, want)
	}
	foreign := at
	foreign.Epoch[0]++
	ahead := s.store.Head()
	ahead.Revision++
	for _, p := range []kg.Position{foreign, ahead} {
		_, err := s.StreamAll(within(t), as("bob"), &p)
		wantCode(t, "a foreign position", err, kg.CodePositionGone)
		_, _, _, err = s.Inbox(within(t), as("bob"), channels.InboxQuery{After: p})
		wantCode(t, "a foreign position", err, kg.CodePositionGone)
	}
}

// For any start and resumption of a feed of all channels, while others publish, join and
// create channels, it delivers every message after its start once and in the order of the
// log.
func TestFeedMeetsLive(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	var ids []channel.ID
	for range 4 {
		ids = append(ids, s.make(t, channel.Private, "bob").ID)
	}
	const rounds = 60
	var mu sync.Mutex
	var all []message.ID
	s.say(t, "ann", ids[0], "first")
	page, _, err := s.History(within(t), as("ann"), ids[0], channels.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, page[0].ID)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var publishing, following sync.WaitGroup
	publishing.Go(func() {
		for i := range rounds {
			id := ids[rand.IntN(len(ids))]
			if i%10 == 5 { // one that is new
				id = s.make(t, channel.Private, "bob").ID
			}
			m := s.say(t, "ann", id, "%d", i)
			mu.Lock()
			all = append(all, m.ID)
			mu.Unlock()
		}
		m := s.say(t, "ann", ids[0], "last")
		mu.Lock()
		all = append(all, m.ID)
		mu.Unlock()
	})
	for range 8 {
		following.Go(func() {
			var got []message.ID
			at := kg.Position{}
			for len(got) < rounds+2 {
				f, err := s.StreamAll(ctx, as("bob"), &at)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				stop := 1 + rand.IntN(20)
				for d, err := range f.Messages() {
					if err != nil {
						t.Errorf("after %d: %v", len(got), err)
						return
					}
					got, at = append(got, d.ID), d.Position
					if stop--; stop == 0 || len(got) == rounds+2 {
						break
					}
				}
			}
			publishing.Wait()
			if !slices.Equal(got, all) {
				t.Errorf("got %v\nwant %v", got, all)
			}
		})
	}
	publishing.Wait()
	following.Wait()
}

// A feed of a scope has all messages that its reader may read there and in its tasks, later
// channels and tasks included, and no others; that of a task has none of its intent.
func TestStreamScope(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	access := scope.Access{Agents: []kg.AgentID{"agent://bob"}}
	sc, other := s.scope(t, scope.Draft{Access: access}), s.scope(t, scope.Draft{Access: access})
	task, hidden := s.scope(t, scope.Draft{Parent: sc.ID, Access: access}), s.scope(t, scope.Draft{Parent: sc.ID})
	open, closed := s.makeIn(t, sc.ID, "open", channel.ByScope), s.makeIn(t, sc.ID, "closed", channel.Explicit)
	inTask, inHidden := s.makeIn(t, task.ID, "open in task", channel.ByScope), s.makeIn(t, hidden.ID, "open in hidden", channel.ByScope)
	inOther := s.makeIn(t, other.ID, "open", channel.ByScope)
	elsewhere := s.make(t, channel.Private, "bob")
	f, err := s.StreamScope(within(t), as("bob"), sc.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []message.ID{s.say(t, "ann", open.ID, "one").ID}
	s.say(t, "ann", closed.ID, "not for bob")
	s.say(t, "ann", elsewhere.ID, "not of a scope")
	s.say(t, "ann", inOther.ID, "of another")
	s.say(t, "ann", inHidden.ID, "of a task that is not for bob")
	ofTask := []message.ID{s.say(t, "ann", inTask.ID, "of a task").ID}
	want = append(want, ofTask...)
	later := s.makeIn(t, sc.ID, "later", channel.ByScope)
	want = append(want, s.say(t, "ann", later.ID, "two").ID, s.say(t, "ann", open.ID, "three").ID)
	laterTask := s.scope(t, scope.Draft{Parent: sc.ID, Access: access})
	first, err := s.PublishByName(within(t), as("ann"), laterTask.ID, "first", channels.Publication{Parts: text("of a later task")})
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, first.Message.ID)
	ofTask = append(ofTask, s.say(t, "ann", inTask.ID, "the last of the task").ID)
	want = append(want, ofTask[1])
	check := func(f *channels.Feed, want []message.ID) {
		t.Helper()
		defer f.Close()
		var got []message.ID
		for d, err := range f.Messages() {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, d.ID); len(got) == len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	check(f, want)
	for id, want := range map[scope.ID][]message.ID{sc.ID: want, task.ID: ofTask} {
		again, err := s.StreamScope(within(t), as("bob"), id, new(kg.Position))
		if err != nil {
			t.Fatal(err)
		}
		check(again, want)
	}
	_, err = s.StreamScope(within(t), as("eve"), sc.ID, nil)
	_, absent := s.StreamScope(within(t), as("eve"), "no-such-scope", nil)
	if err == nil || fmt.Sprint(err) != fmt.Sprint(absent) {
		t.Errorf("an outsider gets %v, and %v of what is not there", err, absent)
	}
}

// A feed counts as a stream of its caller's, until it is closed; a page of an inbox
// does not.
func TestFeedsAreStreams(t *testing.T) {
	s := serve(t, channels.Options{Tier: channels.Tier{Streams: 1}}, kg.Options{})
	s.make(t, channel.Private, "bob")
	for range 2 {
		f, err := s.StreamAll(within(t), as("bob"), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.StreamInbox(within(t), as("bob"), nil)
		wantCode(t, "a second feed", err, kg.CodeLimitExceeded)
		_, _, _, err = s.Inbox(within(t), as("bob"), channels.InboxQuery{})
		wantCode(t, "a page", err, "")
		f.Close()
		f.Close()
	}
}

// A live feed of a scope includes channels and tasks created later.
func TestStreamScopeLive(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	access := scope.Access{Agents: []kg.AgentID{"bob"}}
	intent := s.scope(t, scope.Draft{Access: access})
	c := s.makeIn(t, intent.ID, "room", channel.ByScope)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	feed, err := s.StreamScope(ctx, as("bob"), intent.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	came := make(chan message.ID)
	go func() { // which waits for new events all the time
		defer close(came)
		for d, err := range feed.Messages() {
			if err != nil {
				return
			}
			came <- d.ID
		}
	}()
	told := func(what string, m *message.Message) {
		t.Helper()
		if id := <-came; id != m.ID { // "" at the end
			t.Fatalf("%s: told %q, want %s", what, id, m.ID)
		}
	}
	first := func(scope scope.ID, name string) *message.Message {
		t.Helper()
		r, err := s.PublishByName(within(t), as("ann"), scope, name, channels.Publication{Parts: text("first")})
		if err != nil {
			t.Fatal(err)
		}
		return r.Message
	}
	told("what stands", s.say(t, "ann", c.ID, "one"))
	told("what comes", s.say(t, "ann", c.ID, "two"))
	told("a later channel", first(intent.ID, "later"))
	told("behind it", s.say(t, "ann", c.ID, "behind"))
	task := s.scope(t, scope.Draft{Parent: intent.ID, Access: access})
	m := first(task.ID, "of a task")
	told("a channel of a later task", m)
	told("what comes there", s.say(t, "ann", m.Channel, "two"))
	first(s.scope(t, scope.Draft{Access: access}).ID, "elsewhere")
	told("and not what comes elsewhere", s.say(t, "ann", c.ID, "three"))
	cancel()
	<-came
}
