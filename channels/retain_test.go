package channels_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// A channel keeps the content of the newest messages. Numbers, counts and the time of the
// last stay; a request before the oldest message left is an error with that message.
func TestKeepMessages(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	c, err := s.Create(within(t), as("ann"), channel.Draft{KeepMessages: 3})
	if err != nil || c.KeepMessages != 3 {
		t.Fatal(c, err)
	}
	keyed := channels.Publication{Channel: c.ID, Parts: text("1"), IdempotencyKey: "k", Metadata: []byte(`{"a":1}`)}
	first, err := s.Publish(within(t), as("ann"), keyed)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := s.Stream(within(t), as("ann"), c.ID, new(int64))
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	var last *message.Message
	var seventh time.Time
	for i := 2; i <= 10; i++ {
		clock.step(time.Second)
		if i == 7 {
			seventh = clock.now()
		}
		if last = s.say(t, "ann", c.ID, "%d", i); last.Sequence != int64(i) {
			t.Fatalf("%d has the number %d", i, last.Sequence)
		}
	}
	check := func() {
		t.Helper()
		if n, _ := s.contents(t); n != 3 {
			t.Errorf("%d contents are left", n)
		}
		got, err := s.Get(within(t), as("ann"), c.ID)
		if err != nil || got.Messages != 10 || !got.LastMessageAt.Equal(last.Time) {
			t.Errorf("%+v, %v", got, err)
		}
		for _, row := range []struct {
			q    channels.HistoryQuery
			want string
		}{
			{channels.HistoryQuery{}, "[8 9 10]"},
			{channels.HistoryQuery{Descending: true}, "[10 9 8]"},
			{channels.HistoryQuery{SinceSequence: at(7)}, "[8 9 10]"},
			{channels.HistoryQuery{SinceSequence: at(8)}, "[9 10]"},
			{channels.HistoryQuery{SinceTime: seventh.Add(1)}, "[8 9 10]"},
			{channels.HistoryQuery{SinceTime: last.Time.Add(1)}, "[]"},
			{channels.HistoryQuery{BeforeSequence: 5}, "[]"},
		} {
			page, next, err := s.History(within(t), as("ann"), c.ID, row.q)
			if err != nil || next != "" || fmt.Sprint(sequences(page)) != row.want {
				t.Errorf("%+v: %v, %q, %v; want %s", row.q, sequences(page), next, err, row.want)
			}
		}
		for field, list := range map[string][]channels.HistoryQuery{
			"sinceSequence":  {{SinceSequence: at(6)}, {SinceSequence: at(0)}, {SinceSequence: at(6), Descending: true}, {SinceSequence: at(1), BeforeSequence: 3}},
			"sinceTimestamp": {{SinceTime: first.Message.Time.Add(-1)}, {SinceTime: seventh}, {SinceTime: seventh, Descending: true}},
			"sinceMessageId": {{SinceMessage: first.Message.ID}},
		} {
			for _, q := range list {
				_, _, err = s.History(within(t), as("ann"), c.ID, q)
				if wantGone(t, field, err, 8); kg.AsError(err).Field != field {
					t.Errorf("%+v: %v", q, err)
				}
			}
		}
		_, err = s.Stream(within(t), as("ann"), c.ID, at(6))
		wantGone(t, "a stream", err, 8)
		kept, err := s.Stream(within(t), as("ann"), c.ID, at(7))
		if err != nil {
			t.Fatalf("a stream from what is left: %v", err)
		}
		kept.Close()
		if again, err := s.Publish(within(t), as("ann"), keyed); err != nil || !again.Replayed || again.Message.ID != first.Message.ID || again.Message.Sequence != 1 {
			t.Errorf("the key of what is gone: %+v, %v", again, err)
		}
	}
	check()
	for _, err := range behind.Messages() {
		wantGone(t, "a stream that is behind", err, 8)
		break
	}
	s.restart(t)
	check()
}

func wantGone(t testing.TB, what string, err error, oldest int64) {
	t.Helper()
	wantCode(t, what, err, kg.CodePositionGone)
	var e *kg.Error
	if errors.As(err, &e); e == nil || e.OldestSequence != oldest {
		t.Errorf("%s: %+v, want the oldest to be %d", what, e, oldest)
	}
}

// A lowered bound is reached a few messages at a time; a page that was begun before
// continues, or is an error.
func TestKeepFewerMessages(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	for i := range 20 {
		s.say(t, "bob", c.ID, "%d", i)
	}
	_, token, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{PageSize: 5})
	if err != nil {
		t.Fatal(err)
	}
	keep := func(by string, n int64, want kg.Code) {
		t.Helper()
		got, err := s.Get(within(t), as("ann"), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Update(within(t), as(by), c.ID, channel.Update{ExpectedVersion: got.Version, KeepMessages: &n})
		wantCode(t, fmt.Sprint(n), err, want)
	}
	keep("bob", 1, kg.CodePermissionDenied)
	keep("ann", -1, kg.CodeInvalid)
	keep("ann", channel.MaxKeepMessages+1, kg.CodeLimitExceeded)
	keep("ann", channel.MaxKeepMessages, "")
	keep("ann", 1, "")
	if n, _ := s.contents(t); n != 20 {
		t.Errorf("%d contents before a message comes", n)
	}
	s.say(t, "bob", c.ID, "next")
	if n, _ := s.contents(t); n != 17 {
		t.Errorf("%d contents after one", n)
	}
	if page, _, err := s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{PageSize: 5, PageToken: token}); err != nil || fmt.Sprint(sequences(page)) != "[6 7 8 9 10]" {
		t.Errorf("the next page: %v, %v", sequences(page), err)
	}
	for range 6 {
		s.say(t, "bob", c.ID, "next")
	}
	if n, _ := s.contents(t); n != 1 {
		t.Errorf("%d contents in the end", n)
	}
	_, _, err = s.History(within(t), as("bob"), c.ID, channels.HistoryQuery{PageSize: 5, PageToken: token})
	wantGone(t, "the next page", err, 27)
	keep("ann", 0, "")
	s.say(t, "bob", c.ID, "next")
	if n, _ := s.contents(t); n != 2 {
		t.Errorf("%d contents when all are kept again", n)
	}
}
