package channels_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/scope"
	"koine/kg"
)

// live is a stream that has delivered the first message of a channel, and follows new ones.
func (s *server) live(t *testing.T, by string, id channel.ID) (next func() (*message.Message, error, bool)) {
	t.Helper()
	stream, err := s.Stream(within(t), as(by), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(stream.Messages())
	t.Cleanup(func() { stop(); stream.Close() })
	for _, words := range []string{"it reads what stands", "and then what comes"} {
		m := s.say(t, "ann", id, "%s", words)
		if told, err, _ := next(); err != nil || told.Sequence != m.Sequence {
			t.Fatalf("told %+v, %v; want %d", told, err, m.Sequence)
		}
	}
	return next
}

// A stream that is behind by no more than the channel's retention continues without a gap.
// One that is further behind ends with the oldest message left, and a reader that resumes
// before that one misses none of those left.
func TestLaggardBehindEviction(t *testing.T) {
	const kept = 3
	for behind := 1; behind <= 2*kept; behind++ {
		t.Run(fmt.Sprint(behind), func(t *testing.T) {
			s := serve(t, channels.Options{}, kg.Options{})
			c, err := s.Create(within(t), as("ann"), channel.Draft{Members: []channel.Member{{Agent: "bob"}}, KeepMessages: kept})
			if err != nil {
				t.Fatal(err)
			}
			next := s.live(t, "bob", c.ID)
			for i := range behind {
				s.say(t, "ann", c.ID, "%d", i)
			}
			last := int64(2 + behind)
			expect := int64(3)
			if behind > kept {
				oldest := last - kept + 1
				m, err, _ := next()
				if m != nil {
					t.Errorf("told %+v", m)
				}
				wantGone(t, "the stream", err, oldest)
				again, err := s.Stream(within(t), as("bob"), c.ID, at(oldest-1))
				if err != nil {
					t.Fatal(err)
				}
				defer again.Close()
				pull, stop := iter.Pull2(again.Messages())
				defer stop()
				next, expect = pull, oldest
			}
			for ; expect <= last; expect++ {
				if m, err, _ := next(); err != nil || m.Sequence != expect || m.Withheld != "" {
					t.Fatalf("told %+v, %v; want %d", m, err, expect)
				}
			}
		})
	}
}

// The end of an intent evicts its messages without a new one. A stream that lags behind them tells
// none of what was evicted.
func TestLaggardBehindAnEndedIntent(t *testing.T) {
	const keep = time.Hour
	clock := startClock()
	s := serve(t, channels.Patient(channels.Options{Clock: clock.now, KeepEnded: keep}, time.Millisecond), kg.Options{Clock: clock.now})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Everybody: true}}).ID
	c, err := s.CreateIn(within(t), as("ann"), intent, channel.Draft{Name: "talk", MemberPolicy: channel.ByScope})
	if err != nil {
		t.Fatal(err)
	}
	next := s.live(t, "ann", c.ID)
	head := s.store.Head()
	feed, err := s.StreamScope(within(t), as("ann"), intent, &head)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	feedNext, stop := iter.Pull2(feed.Messages())
	defer stop()
	for i := range 3 {
		s.say(t, "ann", c.ID, "%d", i)
	}
	if _, err := s.Scopes().End(within(t), as("ann"), intent, scope.Completed, ""); err != nil {
		t.Fatal(err)
	}
	clock.step(keep)
	evicted := func() bool {
		page, _, _, err := s.HistoryPage(within(t), as("ann"), c.ID, channels.HistoryQuery{PageSize: channels.MaxPage})
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(page, func(m *message.Message) bool { return m.Withheld != message.Evicted })
	}
	for deadline := time.Now().Add(time.Minute); !evicted(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no message is evicted")
		}
	}
	if m, err, _ := next(); m != nil {
		t.Errorf("the stream told %+v, %v", m, err)
	}
	for range 3 {
		if d, err, _ := feedNext(); err == nil && d.Withheld != message.Evicted {
			t.Errorf("the feed told %+v", d.Message)
		} else if err != nil {
			break
		}
	}
}

// A stream whose log was cut behind it ends with the way out, and no message of its channel
// is lost: a replay does not need the log.
func TestLaggardBehindACutLog(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{RingCommits: 1})
	c := s.make(t, channel.Private, "bob")
	next := s.live(t, "bob", c.ID)
	for i := range 10 {
		s.say(t, "ann", c.ID, "%d", i)
	}
	if err := s.store.Maintenance().CutLog(context.Background(), s.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	told := int64(2)
	for {
		m, err, _ := next()
		if err != nil {
			wantCode(t, "the end", err, kg.CodeResync)
			break
		}
		if told++; m.Sequence != told || told == 12 {
			t.Fatalf("told %+v behind %d", m, told-1)
		}
	}
	again, err := s.Stream(within(t), as("bob"), c.ID, &told)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for m, err := range again.Messages() {
		if err != nil || m.Sequence != told+1 {
			t.Fatalf("back behind %d: %+v, %v", told, m, err)
		}
		if told = m.Sequence; told == 12 {
			break
		}
	}
}

// A request that RemoveAgent ends is withheld at once: a stream that is behind, in its
// channel, in all of a scope, or in the inbox of a recipient, does not deliver its content,
// though the log still has it.
func TestLaggardBehindRemoval(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	intent := s.scope(t, scope.Draft{Access: scope.Access{Agents: []kg.AgentID{"bob"}}})
	c := s.makeIn(t, intent.ID, "open", channel.ByScope)
	nexts := map[string]func() (*message.Message, error, bool){}
	feed := func(name string, f *channels.Feed, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		pull, stop := iter.Pull2(f.Messages())
		t.Cleanup(func() { stop(); f.Close() })
		nexts[name] = func() (*message.Message, error, bool) {
			d, err, more := pull()
			return d.Message, err, more
		}
	}
	for _, by := range []string{"ann", "bob"} {
		stream, err := s.Stream(within(t), as(by), c.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		pull, stop := iter.Pull2(stream.Messages())
		t.Cleanup(func() { stop(); stream.Close() })
		nexts[by] = pull
	}
	all, err := s.StreamScope(within(t), as("ann"), intent.ID, nil)
	feed("the scope", all, err)
	inbox, err := s.StreamInbox(within(t), as("bob"), nil)
	feed("the inbox", inbox, err)
	tell := func(check func(name string, m *message.Message)) {
		t.Helper()
		for name, next := range nexts {
			m, err, _ := next()
			if err != nil {
				t.Fatal(name, err)
			}
			check(name, m)
		}
	}
	for range 2 { // each reads the existing messages, and then new ones
		m := s.mustSend(t, "ann", c.ID, message.Envelope{To: "bob"})
		tell(func(name string, told *message.Message) {
			if told.ID != m.ID || told.Parts == nil {
				t.Errorf("%s: told %+v", name, told)
			}
		})
	}
	asked := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "bob"})
	if _, err := s.Members().RemoveAgent(within(t), admin("root"), "bob"); err != nil {
		t.Fatal(err)
	}
	tell(func(name string, told *message.Message) {
		if told.ID != asked.ID || told.Sequence != 3 || told.Parts != nil || told.Withheld != message.Expired {
			t.Errorf("%s: told %+v", name, told)
		}
	})
}

// A feed of many channels omits no evicted message: it delivers each as evicted, to resumed
// and to slow streams.
func TestFeedTellsWhatIsEvicted(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, err := s.Create(within(t), as("ann"), channel.Draft{Members: []channel.Member{{Agent: "bob"}}, KeepMessages: 2})
	if err != nil {
		t.Fatal(err)
	}
	live, err := s.StreamInbox(within(t), as("bob"), nil)
	if err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(live.Messages())
	defer func() { stop(); live.Close() }()
	for range 2 { // the existing messages, and then new ones
		m := s.say(t, "ann", c.ID, "read")
		if d, err, _ := next(); err != nil || d.Message.ID != m.ID {
			t.Fatalf("told %+v, %v", d.Message, err)
		}
	}
	const all = 6
	for range all - 2 {
		s.say(t, "ann", c.ID, "more")
	}
	check := func(m *message.Message, err error, want int64) {
		t.Helper()
		if err != nil || m.Sequence != want || (m.Withheld == message.Evicted) != (want <= all-2) || (m.Parts == nil) != (m.Withheld != "") {
			t.Errorf("told %+v, %v; want %d", m, err, want)
		}
	}
	for n := int64(3); n <= all; n++ {
		d, err, _ := next()
		check(d.Message, err, n)
	}
	back, err := s.StreamAll(within(t), as("bob"), new(kg.Position))
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	n := int64(0)
	for d, err := range back.Messages() {
		if n++; err != nil {
			t.Fatal(err)
		}
		if check(d.Message, nil, n); n == all {
			break
		}
	}
}
