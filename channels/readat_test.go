package channels_test

import (
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/kg"
)

// A receipt has the time of the acknowledgement that first covered the message, whatever
// was read later, also after a restart.
func TestReadAt(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Private, "bob", "cleo")
	var ids []message.ID
	for range 9 {
		ids = append(ids, s.say(t, "ann", c.ID, "hi").ID)
	}
	want := map[message.ID]time.Time{}
	ack := func(state receipts.State, upTo int64, list ...message.ID) time.Time {
		t.Helper()
		clock.step(time.Minute)
		s.say(t, "ann", c.ID, "in between")
		if err := s.Receipts().Acknowledge(within(t), as("bob"), receipts.Acknowledgement{Channel: c.ID, UpTo: upTo, Messages: list, State: state}); err != nil {
			t.Fatal(err)
		}
		return clock.now()
	}
	check := func(what string) {
		t.Helper()
		for i, id := range ids {
			list, err := s.Receipts().List(within(t), as("ann"), c.ID, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				at := time.Time{}
				if r.Agent == "agent://bob" {
					at = want[id]
				}
				if !r.ReadAt.Equal(at.Truncate(time.Millisecond)) && !r.ReadAt.Equal(at) || (r.State == receipts.Read) == r.ReadAt.IsZero() {
					t.Errorf("%s: message %d at %s is %s at %v, want %v", what, i+1, r.Agent, r.State, r.ReadAt, at)
				}
			}
		}
	}
	check("unread")
	summary := func(what string) {
		t.Helper()
		page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{})
		if err != nil {
			t.Fatal(err)
		}
		sums, err := s.Receipts().Summaries(within(t), as("bob"), c.ID, page)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range page {
			if at, read := want[m.ID]; read && (sums[i].State != receipts.Read || sums[i].ReadAt.Truncate(time.Millisecond) != at.Truncate(time.Millisecond)) {
				t.Errorf("%s: the summary of message %d is %+v, want %v", what, m.Sequence, sums[i], at)
			}
		}
	}
	want[ids[6]] = ack(receipts.Read, 0, ids[6])
	at := ack(receipts.Read, 2)
	want[ids[0]], want[ids[1]] = at, at
	ack(receipts.Delivered, 8)
	check("two read, and one by itself")
	want[ids[2]] = ack(receipts.Read, 3)
	at = ack(receipts.Read, 6)
	want[ids[3]], want[ids[4]], want[ids[5]] = at, at, at
	ack(receipts.Read, 7) // what was read by itself keeps its time
	want[ids[7]] = ack(receipts.Read, 8)
	check("in steps")
	s.restart(t)
	check("after a restart")
	summary("after a restart")
}
