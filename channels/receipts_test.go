package channels_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/internal/slowtest"
	"koine/kg"
)

// got lists the receipts of the messages of a channel, as "bob:read" and so on.
func (s *server) got(t testing.TB, by string, id channel.ID, m message.ID) string {
	t.Helper()
	list, err := s.Receipts().List(within(t), as(by), id, m)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		out = append(out, strings.TrimPrefix(string(r.Agent), "agent://")+":"+string(r.State))
	}
	return strings.Join(out, " ")
}

// A receipt goes from pending over delivered to read; only recipients acknowledge, and
// never expired messages. Markers and counts follow.
func TestReceipts(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob", "cleo")
	ack := func(by string, state receipts.State, upTo int64, messages ...message.ID) error {
		return s.Receipts().Acknowledge(within(t), as(by), receipts.Acknowledgement{Channel: c.ID, UpTo: upTo, Messages: messages, State: state})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	unread := func(who string, want int) {
		t.Helper()
		if n, err := s.Receipts().Unread(within(t), as(who), c.ID); err != nil || n.Count != want || n.More {
			t.Errorf("%s has %+v unread, %v; want %d", who, n, err, want)
		}
	}
	all := s.say(t, "ann", c.ID, "to all")                                                                   // 1
	one := s.mustSend(t, "ann", c.ID, message.Envelope{To: "bob"})                                           // 2
	soon := s.mustSend(t, "ann", c.ID, message.Envelope{To: "bob", ExpiresAt: clock.now().Add(time.Minute)}) // 3
	soonToo := s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: clock.now().Add(time.Minute)})         // 4
	for who, n := range map[string]int{"ann": 0, "bob": 4, "cleo": 2} {
		unread(who, n)
	}
	want := func(when string, m *message.Message, states string) {
		t.Helper()
		if got := s.got(t, "ann", c.ID, m.ID); got != states {
			t.Errorf("%s: message %d is %q, want %q", when, m.Sequence, got, states)
		}
	}
	want("at first", all, "bob:pending cleo:pending")
	want("at first", one, "bob:pending")
	must(ack("bob", receipts.Delivered, 4))
	eventually(t, "delivered", func() bool { return s.got(t, "ann", c.ID, all.ID) == "bob:delivered cleo:pending" })
	want("delivered", soon, "bob:delivered")
	unread("bob", 4)
	must(ack("bob", receipts.Read, 0, soon.ID))
	want("read", soon, "bob:read")
	want("read", one, "bob:delivered")
	unread("bob", 3)
	must(ack("cleo", receipts.Read, 4))
	want("read", soonToo, "bob:delivered cleo:read")
	want("read", all, "bob:delivered cleo:read")
	unread("cleo", 0)
	for _, row := range []struct {
		name, by string
		a        receipts.Acknowledgement
		code     kg.Code
	}{
		{"what is for another", "cleo", receipts.Acknowledgement{Messages: []message.ID{one.ID}, State: receipts.Read}, kg.CodePermissionDenied},
		{"one's own", "ann", receipts.Acknowledgement{Messages: []message.ID{all.ID}, State: receipts.Read}, kg.CodePermissionDenied},
		{"nothing", "bob", receipts.Acknowledgement{State: receipts.Read}, kg.CodeInvalid},
		{"both", "bob", receipts.Acknowledgement{UpTo: 1, Messages: []message.ID{all.ID}, State: receipts.Read}, kg.CodeInvalid},
		{"before the channel", "bob", receipts.Acknowledgement{UpTo: -1, State: receipts.Read}, kg.CodeInvalid},
		{"behind the channel", "bob", receipts.Acknowledgement{UpTo: 5, State: receipts.Read}, kg.CodeInvalid},
		{"no such message", "bob", receipts.Acknowledgement{Messages: []message.ID{"x"}, State: receipts.Read}, kg.CodeInvalid},
		{"another state", "bob", receipts.Acknowledgement{UpTo: 1, State: receipts.Expired}, kg.CodeInvalid},
		{"too many", "bob", receipts.Acknowledgement{Messages: make([]message.ID, receipts.MaxAcknowledged+1), State: receipts.Read}, kg.CodeLimitExceeded},
		{"an outsider", "eve", receipts.Acknowledgement{UpTo: 1, State: receipts.Read}, kg.CodeChannelNotFound},
	} {
		row.a.Channel = c.ID
		wantCode(t, row.name, s.Receipts().Acknowledge(within(t), as(row.by), row.a), row.code)
	}
	for status, seq := range map[receipts.State]string{receipts.Read: "[3]", receipts.Delivered: "[1 2 4]", receipts.Pending: "[]"} {
		if got, err := s.walk(t, "bob", c.ID, channels.HistoryQuery{Status: status}); err != nil || fmt.Sprint(got) != seq {
			t.Errorf("bob has %v %s, %v; want %s", got, status, err, seq)
		}
	}
	clock.step(time.Minute)
	check := func(when string) {
		t.Helper()
		want(when, soon, "bob:read")
		want(when, soonToo, "bob:expired cleo:read")
	}
	check("at once")
	wantCode(t, "an expired one", ack("bob", receipts.Read, 0, soonToo.ID), kg.CodeMessageExpired)
	unread("bob", 2)
	must(ack("bob", receipts.Read, 4))
	check("after reading on")
	want("after reading on", one, "bob:read")
	unread("bob", 0)
	must(ack("bob", receipts.Read, 1)) // does not go back
	if n, err := s.Receipts().ReadMarker(within(t), as("bob"), c.ID); err != nil || n != 4 {
		t.Errorf("the marker is at %d, %v", n, err)
	}
	eventually(t, "the content goes", func() bool { n, _ := s.contents(t); return n == 2 })
	check("expired")
	s.restart(t)
	check("opened again")
	want("opened again", one, "bob:read")
	if got, err := s.walk(t, "bob", c.ID, channels.HistoryQuery{Status: receipts.Expired}); err != nil || fmt.Sprint(got) != "[4]" {
		t.Errorf("bob has %v expired, %v", got, err)
	}
	_, err := s.Receipts().List(within(t), as("ann"), c.ID, "no such")
	wantCode(t, "receipts of nothing", err, kg.CodeNotFound)
	_, err = s.Receipts().List(within(t), as("eve"), c.ID, one.ID)
	wantCode(t, "an outsider's receipts", err, kg.CodeChannelNotFound)
	_, err = s.Receipts().Unread(within(t), as("eve"), c.ID)
	wantCode(t, "an outsider's count", err, kg.CodeChannelNotFound)
	_, err = s.Receipts().ReadMarker(within(t), as("eve"), c.ID)
	wantCode(t, "an outsider's marker", err, kg.CodeChannelNotFound)
}

// Acknowledgements that come together share commits, at most one a second and
// channel, and those that wait are written when the service is closed.
func TestReceiptsAreGathered(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{MaxReceipts: 30}, kg.Options{})
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	c := s.make(t, channel.Private, names...)
	for range 40 {
		s.say(t, "ann", c.ID, "read this")
	}
	_, before := s.contents(t)
	start := time.Now()
	var reading sync.WaitGroup
	for i, name := range names {
		reading.Go(func() {
			for _, upTo := range []int64{10, 20 + int64(i)/3} {
				if err := s.Receipts().Acknowledge(within(t), as(name), receipts.Acknowledgement{Channel: c.ID, UpTo: upTo, State: receipts.Read}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reading.Wait()
	_, after := s.contents(t)
	if most := kg.Revision(time.Since(start)/time.Second) + 2; after-before > most || after == before {
		t.Errorf("%d commits in %v", after-before, time.Since(start))
	}
	// The last commit was just now: these wait.
	for i := range 30 {
		if err := s.Receipts().Acknowledge(within(t), as(names[i]), receipts.Acknowledgement{Channel: c.ID, UpTo: 40, State: receipts.Delivered}); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Receipts().Acknowledge(within(t), as(names[0]), receipts.Acknowledgement{Channel: c.ID, UpTo: 40, State: receipts.Read})
	if code := kg.CodeOf(err); code != kg.CodeOverloaded && code != "" {
		t.Errorf("one too many: %v", err)
	}
	s.Close()
	wantCode(t, "after the end", s.Receipts().Acknowledge(within(t), as(names[0]), receipts.Acknowledgement{Channel: c.ID, UpTo: 40, State: receipts.Read}), kg.CodeClosed)
	s.restart(t)
	page, _, err := s.History(within(t), as("ann"), c.ID, channels.HistoryQuery{SinceSequence: at(39)})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.got(t, "ann", c.ID, page[0].ID); strings.Count(got, ":delivered")+strings.Count(got, ":read") != 30 {
		t.Errorf("after the end: %s", got)
	}
	unread, err := s.Receipts().Unread(within(t), as(names[3]), c.ID)
	if err != nil || unread.Count != 19 {
		t.Errorf("%+v unread, %v", unread, err)
	}
}

// Counting unread messages has a bounded cost.
func TestUnreadIsBounded(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	var publishing sync.WaitGroup
	for i := range 17 {
		publishing.Go(func() {
			for range (receipts.MaxUnread + 2 + 16 - i) / 17 {
				s.say(t, "ann", c.ID, "much")
			}
		})
	}
	publishing.Wait()
	for _, row := range []struct {
		read int64
		want receipts.UnreadCount
	}{{0, receipts.UnreadCount{Count: receipts.MaxUnread, More: true}}, {2, receipts.UnreadCount{Count: receipts.MaxUnread}}, {receipts.MaxUnread, receipts.UnreadCount{Count: 2}}} {
		if row.read > 0 {
			if err := s.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: c.ID, UpTo: row.read, State: receipts.Read}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := s.Receipts().Unread(within(t), as("bob"), c.ID); err != nil || n != row.want {
			t.Errorf("behind %d: got %+v, %v; want %+v", row.read, n, err, row.want)
		}
	}
}

// TestOwnReceipt proves that a recipient sees its own receipt of a message, and none for a
// message that is not addressed to it.
func TestOwnReceipt(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	id := s.make(t, channel.Private, "bob", "cy").ID
	m := s.say(t, "ann", id, "hello")
	own := func(who string) receipts.State {
		t.Helper()
		state, err := s.Receipts().Own(within(t), as(who), id, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	if got := own("bob"); got != receipts.Pending {
		t.Errorf("at first it is %q", got)
	}
	if err := s.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: id, UpTo: 1, State: receipts.Read}); err != nil {
		t.Fatal(err)
	}
	if a, b, c := own("ann"), own("bob"), own("cy"); a != "" || b != receipts.Read || c != receipts.Pending {
		t.Errorf("the author %q, who read it %q, the other %q", a, b, c)
	}
	_, err := s.Receipts().Own(within(t), as("bob"), id, "01890a5d-ac96-774b-bcce-b302099a8057")
	wantCode(t, "no message", err, kg.CodeNotFound)
	_, err = s.Receipts().Own(within(t), as("eve"), id, m.ID)
	wantCode(t, "for others", err, kg.CodeChannelNotFound)
}

// A message past its time is expired for recipients that have not read it, regardless of
// its content: receipts, history and acknowledgements agree. Until then it is not.
func TestReceiptsOfWhatIsGone(t *testing.T) {
	slowtest.Long(t)
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c, err := s.Create(within(t), as("ann"), channel.Draft{Members: []channel.Member{{Agent: "bob"}, {Agent: "cleo"}}, KeepMessages: 2})
	if err != nil {
		t.Fatal(err)
	}
	read := func(by string, m *message.Message) error {
		return s.Receipts().Acknowledge(within(t), as(by), receipts.Acknowledgement{Channel: c.ID, Messages: []message.ID{m.ID}, State: receipts.Read})
	}
	due := clock.now().Add(time.Minute)
	evicted := s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: due})
	retracted := s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: due})
	if _, err := s.Retract(within(t), as("ann"), channels.Retraction{Channel: c.ID, Message: retracted.ID}); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*message.Message{evicted, retracted} {
		wantCode(t, "read in time", read("cleo", m), "")
		if got := s.got(t, "ann", c.ID, m.ID); got != "bob:pending cleo:read" {
			t.Errorf("before its time, message %d is %q", m.Sequence, got)
		}
	}
	clock.step(time.Minute)
	check := func() {
		t.Helper()
		for _, m := range []*message.Message{evicted, retracted} {
			if got := s.got(t, "ann", c.ID, m.ID); got != "bob:expired cleo:read" {
				t.Errorf("past its time, message %d is %q", m.Sequence, got)
			}
			wantCode(t, "read too late", read("bob", m), kg.CodeMessageExpired)
		}
		for status, want := range map[receipts.State]string{receipts.Pending: "[3]", receipts.Expired: "[2]"} {
			if got, err := s.walk(t, "bob", c.ID, channels.HistoryQuery{Status: status}); err != nil || fmt.Sprint(got) != want {
				t.Errorf("bob has %v %s, %v; want %s", got, status, err, want)
			}
		}
		for m, want := range map[*message.Message]message.Withheld{evicted: message.Evicted, retracted: message.Retracted} {
			if got, err := s.Message(within(t), as("bob"), m.ID); err != nil || got.Withheld != want {
				t.Errorf("bob sees %+v, %v; want %s", got, err, want)
			}
		}
	}
	check()
	s.restart(t)
	check()
}

// A read message stays read when the request expires because its recipient is removed.
func TestReadStaysRead(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	s.role(t, "dev", "bob", "cleo")
	c := s.make(t, channel.Private, "bob", "cleo")
	m := s.mustSend(t, "ann", c.ID, message.Envelope{Interaction: message.Request, To: "role:dev"})
	if err := s.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: c.ID, UpTo: 1, State: receipts.Read}); err != nil {
		t.Fatal(err)
	}
	for _, who := range []kg.AgentID{"cleo", "bob"} {
		if _, err := s.Members().RemoveAgent(within(t), admin("root"), who); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := s.Message(within(t), as("ann"), m.ID); err != nil || now.Withheld != message.Expired {
		t.Errorf("the request is %+v, %v", now, err)
	}
	if got := s.got(t, "ann", c.ID, m.ID); got != "bob:read cleo:expired" {
		t.Errorf("receipts are %q", got)
	}
}

// afterTrial is a verifier that has nothing against anything, and lets something be done
// once between the trial of an acknowledgement and its commit.
type afterTrial struct{ do func() }

func (a *afterTrial) Verify(_ context.Context, of kg.Judgement) (kg.Verdict, error) {
	if do := a.do; do != nil && of.Meta.Method == "channels/acknowledge" {
		a.do = nil
		do()
	}
	return kg.Verdict{}, nil
}

// The commit of an acknowledgement decides about concurrent changes of the message, the
// channel or the reader: it is refused there, and nothing of it is written.
func TestAcknowledgedTooLate(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(t *testing.T, s *server, clock *clock, id channel.ID)
		want kg.Code
	}{
		{"it expires", func(_ *testing.T, _ *server, clock *clock, _ channel.ID) { clock.step(time.Minute) }, kg.CodeMessageExpired},
		{"its channel closes", func(t *testing.T, s *server, _ *clock, id channel.ID) {
			_, err := s.CloseChannel(within(t), as("ann"), id, "")
			wantCode(t, "closed", err, "")
		}, kg.CodeMessageExpired},
		{"its reader goes", func(t *testing.T, s *server, _ *clock, id channel.ID) {
			_, err := s.Members().Remove(within(t), as("ann"), id, "bob")
			wantCode(t, "removed", err, "")
		}, kg.CodeChannelNotFound},
		{"nothing", func(*testing.T, *server, *clock, channel.ID) {}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			clock, hook := startClock(), new(afterTrial)
			s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now, Governor: kg.Governor{Verifier: hook}})
			s.StopExpiry()
			c := s.make(t, channel.Private, "bob")
			m := s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: clock.now().Add(time.Minute)})
			hook.do = func() { row.do(t, s, clock, c.ID) }
			err := s.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: c.ID, Messages: []message.ID{m.ID}, State: receipts.Read})
			wantCode(t, "acknowledged", err, row.want)
			if hook.do != nil {
				t.Error("nothing came between")
			}
			snapshot, err := s.store.View(within(t), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
			if err != nil {
				t.Fatal(err)
			}
			defer snapshot.Close()
			if n, err := snapshot.Count(kg.Pattern{Graph: c.ID.ReceiptsGraph()}); err != nil || (n > 0) != (row.want == "") {
				t.Errorf("%d statements of receipts, %v", n, err)
			}
		})
	}
}

// Delivered behind read is read: receipts do not go back, message by message or up to a
// sequence, whether the message expires or not.
func TestReadIsNotDeliveredAgain(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	plain, soon := s.say(t, "ann", c.ID, "plain"), s.mustSend(t, "ann", c.ID, message.Envelope{ExpiresAt: time.Now().Add(time.Hour)})
	both := []message.ID{plain.ID, soon.ID}
	for _, a := range []receipts.Acknowledgement{
		{Messages: both, State: receipts.Read},
		{Messages: both, State: receipts.Delivered}, {UpTo: 2, State: receipts.Delivered},
		{UpTo: 2, State: receipts.Read}, {UpTo: 1, State: receipts.Read}, // written behind those before
	} {
		a.Channel = c.ID
		if err := s.Receipts().Acknowledge(within(t), as("bob"), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []*message.Message{plain, soon} {
		if got := s.got(t, "ann", c.ID, m.ID); got != "bob:read" {
			t.Errorf("message %d is %q", m.Sequence, got)
		}
	}
	if n, err := s.Receipts().ReadMarker(within(t), as("bob"), c.ID); err != nil || n != 2 {
		t.Errorf("the marker is at %d, %v", n, err)
	}
}

// A channel's receipts are written at most once a second, at any rate of acknowledgements.
func TestReceiptsAreASecondApart(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	const times = 3
	c := s.make(t, channel.Private, "bob")
	for range times {
		s.say(t, "ann", c.ID, "read this")
	}
	start := time.Now()
	for n := range int64(times) {
		if err := s.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: c.ID, UpTo: n + 1, State: receipts.Read}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < (times-1)*time.Second {
		t.Errorf("%d commits in %v", times, took)
	}
}
