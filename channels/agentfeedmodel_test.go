package channels_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/slowtest"
	"koine/kg"
)

// A feed tells exactly what the streams of the channels' events tell of the spans in which
// the agent was a member, in the order of the log; and a reader that stops anywhere,
// among restarts of the server, and resumes at its last position gets the same.
func TestFollowAgentModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := serve(t, channels.Options{}, kg.Options{})
	start := s.store.Head()
	var all []channel.ID
	var told []string // by the reader that stops
	at := start
	resume := func(n int) {
		t.Helper()
		feed := s.followAgent(t, "bob", &at)
		defer feed.end()
		for range n {
			e := feed.read()
			told, at = append(told, saying(e)), e.Position
		}
	}
	member := map[channel.ID]bool{}
	expected := 0 // events until now, at least
	steps := slowtest.Size(400, 120)
	for range steps {
		if len(all) < 3 || r.IntN(20) == 0 {
			c := s.make(t, channel.Public, []string{"cleo", "bob"}[r.IntN(2)])
			member[c.ID] = c.MemberRole("agent://bob") != ""
			all = append(all, c.ID)
			expected++
			continue
		}
		id := all[r.IntN(len(all))]
		var err error
		switch r.IntN(8) {
		case 0:
			if member[id] {
				err = s.Members().Leave(within(t), as("bob"), id)
			} else {
				_, err = s.Members().Add(within(t), as("ann"), id, "bob", channel.Ordinary)
			}
			member[id] = !member[id]
			expected++
		case 1:
			if _, err = s.Members().Add(within(t), as("ann"), id, "eve", []channel.Role{channel.Ordinary, channel.Moderator}[r.IntN(2)]); kg.CodeOf(err) == kg.CodePermissionDenied {
				err = nil
			}
		case 2:
			topic := fmt.Sprint(r.IntN(3))
			c, failed := s.Get(within(t), as("ann"), id)
			if failed != nil {
				t.Fatal(failed)
			}
			_, err = s.Update(within(t), as("ann"), id, channel.Update{ExpectedVersion: c.Version, Topic: &topic})
		case 3:
			if r.IntN(6) == 0 {
				s.restart(t)
			}
		case 4:
			if n := expected - len(told); n > 0 {
				resume(1 + r.IntN(n))
			}
		default:
			s.say(t, "ann", id, "hi")
			if member[id] {
				expected++
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	// The model: events of each channel, cut to the spans of membership.
	type placed struct {
		text string
		at   kg.Position
	}
	var want []placed
	end := s.make(t, channel.Public) // is told at the end
	for _, id := range all {
		events, err := s.StreamEvents(within(t), as("ann"), id, &kg.Position{})
		if err != nil {
			t.Fatal(err)
		}
		last := s.say(t, "ann", id, "the last")
		in, created := false, kg.Revision(0)
		for e, err := range events.All() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Message != nil && e.Message.ID == last.ID {
				break
			}
			if e.Control != nil && e.Control.Kind == channels.ChannelCreated {
				created = e.Position.Revision
			}
			mine := e.Control != nil && e.Control.Agent == "agent://bob" && (e.Control.Kind == channels.MemberJoined || e.Control.Kind == channels.MemberLeft)
			if mine {
				in = e.Control.Kind == channels.MemberJoined
				if in && e.Position.Revision == created { // with the members of the beginning
					for i := range want {
						if strings.HasPrefix(want[i].text, "?"+string(id)) {
							want[i].text = want[i].text[1:]
						}
					}
				}
			}
			text := saying(channels.AgentEvent{Message: e.Message, Control: e.Control})
			switch {
			case in || mine || e.Control != nil && e.Control.Kind == channels.ChannelCreated:
				want = append(want, placed{text, e.Position})
			case e.Position.Revision == created:
				want = append(want, placed{"?" + text, e.Position})
			}
		}
		events.Close()
	}
	want = slices.DeleteFunc(want, func(p placed) bool { return strings.HasPrefix(p.text, "?") })
	slices.SortStableFunc(want, func(a, b placed) int { return a.at.Compare(b.at) })
	texts := make([]string, len(want))
	for i := range want {
		texts[i] = want[i].text
	}
	texts = append(texts, string(end.ID)+" created")
	resume(len(texts) - len(told))
	compare := func(what string, got []string) {
		t.Helper()
		for i := range texts {
			if got[i] != texts[i] {
				t.Fatalf("%s: event %d is %q, want %q", what, i, got[i], texts[i])
			}
		}
	}
	compare("in pieces", told)
	told, at = nil, start
	resume(len(texts))
	compare("at once", told)
}

// Thousands of feeds over shared channels take little memory, and no goroutine of their
// own.
func TestManyAgentFeeds(t *testing.T) {
	slowtest.Long(t)
	const feeds, rooms, most = 500, 20, 32 << 10
	s := serve(t, channels.Options{MaxMembers: feeds + 1}, kg.Options{})
	var members []channel.Member
	for i := range feeds {
		members = append(members, channel.Member{Agent: kg.AgentID(fmt.Sprintf("agent://a%d", i))})
	}
	var ids []channel.ID
	for range rooms {
		c, err := s.Create(within(t), as("ann"), channel.Draft{Name: "x", Kind: channel.Room, Visibility: channel.Public, Members: members})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
	}
	threads := runtime.NumGoroutine()
	list := make([]*channels.AgentFeed, feeds)
	defer func() {
		for _, f := range list {
			if f != nil {
				f.Close()
			}
		}
	}()
	open := func() (each int64) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range list {
			var err error
			if list[i], err = s.FollowAgent(within(t), as(fmt.Sprintf("a%d", i)), nil); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		return (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / feeds
	}
	each := open()
	for again := 0; each > most && again < 2; again++ { // the store may have allocated too, once
		for _, f := range list {
			f.Close()
		}
		each = min(each, open())
	}
	if each > most {
		t.Errorf("a feed takes %d bytes, more than %d", each, most)
	} else {
		t.Logf("a feed takes %d bytes", each)
	}
	if got := runtime.NumGoroutine(); got > threads+10 {
		t.Errorf("%d goroutines for %d feeds", got-threads, feeds)
	}
	m := s.say(t, "ann", ids[0], "hi")
	for _, f := range list {
		for e, err := range f.All() {
			if err != nil || e.Message == nil || e.Message.ID != m.ID {
				t.Fatal(e, err)
			}
			break
		}
	}
}

// A feed is one of the caller's streams, and is given back.
func TestAgentFeedCounts(t *testing.T) {
	s := serve(t, channels.Options{Tier: channels.Tier{Streams: 2}, MaxListeners: 3}, kg.Options{})
	open := func(who string) (*channels.AgentFeed, error) { return s.FollowAgent(within(t), as(who), nil) }
	one, err := open("bob")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = open("bob"); err != nil {
		t.Fatal(err)
	}
	_, err = open("bob")
	wantCode(t, "past the tier", err, kg.CodeLimitExceeded)
	one.Close()
	if _, err = open("bob"); err != nil {
		t.Error("after one was closed:", err)
	}
	if _, err = open("cleo"); err != nil {
		t.Error(err)
	}
	_, err = open("dora")
	wantCode(t, "past the listeners", err, kg.CodeLimitExceeded)
	_, err = s.FollowAgent(within(t), as("eve"), &kg.Position{Epoch: s.store.Head().Epoch, Revision: s.store.Head().Revision + 1})
	wantCode(t, "ahead of the log", err, kg.CodePositionGone)
	other := s.store.Head()
	other.Epoch[0]++
	_, err = s.FollowAgent(within(t), as("eve"), &other)
	wantCode(t, "another log", err, kg.CodePositionGone)
}

// A slow reader misses the oldest signals, gets the latest presence of each agent, and the
// feed ends with its context.
func TestSlowAgentFeed(t *testing.T) {
	now, told := startClock(), make(chan channels.PresenceChange)
	s := serveAt(t, now, channels.Options{Presence: func(ctx context.Context) (iter.Seq[channels.PresenceChange], error) {
		return func(yield func(channels.PresenceChange) bool) {
			for {
				select {
				case one := <-told:
					if !yield(one) {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}, nil
	}})
	const extra = 5
	var names []string
	for i := range channels.MaxPresenceBacklog + extra {
		names = append(names, fmt.Sprintf("a%d", i))
	}
	c := s.make(t, channel.Private, append(names, "bob")...)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	feed, err := s.FollowAgent(ctx, as("bob"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for i := range channels.MaxSignalBacklog + extra {
		now.step(time.Second)
		wantCode(t, "a signal", s.Signal(within(t), as("ann"), c.ID, "n", fmt.Appendf(nil, `{"n":%d}`, i)), "")
	}
	for _, status := range []string{"IDLE", "BUSY"} {
		for _, name := range names {
			told <- channels.PresenceChange{Agent: kg.AgentID("agent://" + name), Status: status}
		}
	}
	told <- channels.PresenceChange{Agent: "agent://nobody"} // the ones before were passed on
	signals, present := 0, 0
	for e, err := range feed.All() {
		switch {
		case err != nil:
			if signals != channels.MaxSignalBacklog || present != channels.MaxPresenceBacklog || ctx.Err() == nil {
				t.Errorf("%d signals, %d presences, then %v", signals, present, err)
			}
			return
		case e.Signal != nil:
			want := 0
			if signals == 0 {
				want = extra
			}
			if e.Signal.Dropped != want || string(e.Signal.Data) != fmt.Sprintf(`{"n":%d}`, signals+extra) {
				t.Fatalf("signal %d: %+v", signals, e.Signal)
			}
			signals++
		case e.Presence != nil:
			if e.Presence.Status != "BUSY" || string(e.Presence.Agent) != "agent://"+names[present+extra] {
				t.Fatalf("presence %d: %+v", present, e.Presence)
			}
			if present++; present == channels.MaxPresenceBacklog {
				cancel()
			}
		}
	}
}
