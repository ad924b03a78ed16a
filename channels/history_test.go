package channels_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/channels/receipts"
	"koine/kg"
)

func TestHistory(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{}, kg.Options{Clock: clock.now})
	c := s.make(t, channel.Public, "bob")
	var times []time.Time
	for i := range 10 {
		clock.step(time.Duration(i%3) * time.Millisecond) // some have the same
		times = append(times, s.say(t, []string{"ann", "bob"}[i%2], c.ID, "%d", i+1).Time)
	}
	for _, row := range []struct {
		q    channels.HistoryQuery
		want string
		code kg.Code
	}{
		{channels.HistoryQuery{}, "[1 2 3 4 5 6 7 8 9 10]", ""},
		{channels.HistoryQuery{Descending: true}, "[10 9 8 7 6 5 4 3 2 1]", ""},
		{channels.HistoryQuery{SinceSequence: at(7)}, "[8 9 10]", ""},
		{channels.HistoryQuery{SinceSequence: at(7), Descending: true}, "[10 9 8]", ""},
		{channels.HistoryQuery{SinceSequence: at(10)}, "[]", ""},
		{channels.HistoryQuery{SinceSequence: at(11)}, "", kg.CodeInvalid},
		{channels.HistoryQuery{BeforeSequence: 4}, "[1 2 3]", ""},
		{channels.HistoryQuery{BeforeSequence: 4, SinceSequence: at(1), Descending: true}, "[3 2]", ""},
		{channels.HistoryQuery{SinceTime: times[0].Add(-1)}, "[1 2 3 4 5 6 7 8 9 10]", ""},
		{channels.HistoryQuery{SinceTime: times[4]}, from(times, times[4]), ""},
		{channels.HistoryQuery{SinceTime: times[5]}, from(times, times[5]), ""},
		{channels.HistoryQuery{SinceTime: times[9]}, from(times, times[9]), ""},
		{channels.HistoryQuery{SinceTime: times[9].Add(1)}, "[]", ""},
		{channels.HistoryQuery{Authors: []kg.AgentID{"bob", "agent://eve"}}, "[2 4 6 8 10]", ""},
		{channels.HistoryQuery{Authors: []kg.AgentID{"eve"}}, "[]", ""},
		{channels.HistoryQuery{SinceSequence: at(1), SinceTime: times[0]}, "", kg.CodeInvalid},
		{channels.HistoryQuery{SinceSequence: at(-1)}, "", kg.CodeInvalid},
		{channels.HistoryQuery{PageToken: "x"}, "", kg.CodeCursorForeign},
		{channels.HistoryQuery{Authors: make([]kg.AgentID, channels.MaxAuthorIDs+1)}, "", kg.CodeLimitExceeded},
	} {
		for _, size := range []int{0, 1, 3, -5} {
			row.q.PageSize = size
			got, err := s.walk(t, "eve", c.ID, row.q)
			if fmt.Sprint(got) != row.want && row.code == "" || kg.CodeOf(err) != row.code {
				t.Errorf("%+v: got %v, %v; want %s %s", row.q, got, err, row.want, row.code)
			}
		}
	}
}

func from(times []time.Time, t time.Time) string {
	out := []int64{}
	for i := range times {
		if !times[i].Before(t) {
			out = append(out, int64(i)+1)
		}
	}
	return fmt.Sprint(out)
}

// walk reads all pages.
func (s *server) walk(t *testing.T, by string, id channel.ID, q channels.HistoryQuery) (out []int64, err error) {
	for {
		page, next, err := s.History(within(t), as(by), id, q)
		if err != nil {
			return out, err
		}
		out = append(out, sequences(page)...)
		if next == "" {
			return out, nil
		}
		q.PageToken = next
	}
}

// TestHistoryBeforeTime proves that an upper bound in time excludes exactly the messages
// that are not earlier.
func TestHistoryBeforeTime(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	id := s.make(t, channel.Private).ID
	var times []time.Time
	for i := range 6 {
		times = append(times, s.say(t, "ann", id, "%d", i+1).Time)
		clock.step(time.Minute)
	}
	for _, tt := range []struct {
		q    channels.HistoryQuery
		want string
	}{
		{channels.HistoryQuery{BeforeTime: times[0].Add(-1)}, "[]"},
		{channels.HistoryQuery{BeforeTime: times[0]}, "[1]"},
		{channels.HistoryQuery{BeforeTime: times[3]}, "[1 2 3 4]"},
		{channels.HistoryQuery{BeforeTime: times[3].Add(-1)}, "[1 2 3]"},
		{channels.HistoryQuery{BeforeTime: times[3].Add(time.Millisecond)}, "[1 2 3 4]"},
		{channels.HistoryQuery{BeforeTime: clock.now(), Descending: true}, "[6 5 4 3 2 1]"},
		{channels.HistoryQuery{BeforeTime: times[4], SinceTime: times[1]}, "[2 3 4 5]"},
		{channels.HistoryQuery{BeforeTime: times[1], SinceTime: times[4]}, "[]"},
	} {
		list, next, err := s.History(within(t), as("ann"), id, tt.q)
		if got := fmt.Sprint(sequences(list)); got != tt.want || next != "" || err != nil {
			t.Errorf("%+v: got %s, %q, %v, want %s", tt.q, got, next, err, tt.want)
		}
	}
	_, _, err := s.History(within(t), as("ann"), id, channels.HistoryQuery{BeforeTime: clock.now(), BeforeSequence: 2})
	wantCode(t, "two upper bounds", err, kg.CodeInvalid)
}

// A token of a page is good for the same channel, caller and query, and as it was given:
// not with another bound, filter or order, and not with a byte changed.
func TestPageTokens(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	c, other := s.make(t, channel.Public, "bob"), s.make(t, channel.Public, "bob")
	for _, id := range []channel.ID{c.ID, c.ID, c.ID, other.ID, other.ID, other.ID} {
		s.say(t, "ann", id, "hi")
	}
	read := func(by string, id channel.ID, q channels.HistoryQuery) (string, error) {
		_, next, err := s.History(within(t), as(by), id, q)
		return next, err
	}
	token, err := read("bob", c.ID, channels.HistoryQuery{PageSize: 1})
	if err != nil || token == "" {
		t.Fatal(token, err)
	}
	for _, size := range []int{1, 2, 0} {
		_, err = read("bob", c.ID, channels.HistoryQuery{PageSize: size, PageToken: token})
		wantCode(t, "the next page", err, "")
	}
	_, err = read("ann", c.ID, channels.HistoryQuery{PageToken: token})
	wantCode(t, "another caller", err, kg.CodeCursorForeign)
	_, err = read("bob", other.ID, channels.HistoryQuery{PageToken: token})
	wantCode(t, "another channel", err, kg.CodeCursorForeign)
	said := map[string]any{
		"SinceSequence": at(0), "SinceTime": time.UnixMilli(1), "BeforeSequence": int64(9), "BeforeTime": time.UnixMilli(1), "SinceMessage": message.ID("m"), "BeforeMessage": message.ID("m"),
		"Authors": []kg.AgentID{"ann"}, "Recipient": kg.AgentID("bob"), "Interaction": message.Request, "ContentType": message.Text, "Tag": "t", "Thread": "t",
		"Correlation": message.ID("m"), "Status": receipts.Read, "Descending": true,
	}
	for i := range reflect.TypeFor[channels.HistoryQuery]().NumField() {
		name := reflect.TypeFor[channels.HistoryQuery]().Field(i).Name
		if name == "PageSize" || name == "PageToken" || name == "Behind" || name == "Among" { // History sets Behind, and Among is of HistoryPage
			continue
		}
		q := channels.HistoryQuery{PageToken: token}
		if said[name] == nil {
			t.Errorf("%s: the test says nothing of it", name)
			continue
		}
		reflect.ValueOf(&q).Elem().Field(i).Set(reflect.ValueOf(said[name]))
		_, err = read("bob", c.ID, q)
		wantCode(t, name, err, kg.CodeCursorForeign)
	}
	for i := range token {
		changed := []byte(token)
		if changed[i] = 'A'; token[i] == 'A' {
			changed[i] = 'B'
		}
		if i == len(token)-1 {
			continue // of the last character some bits may say nothing
		}
		_, err = read("bob", c.ID, channels.HistoryQuery{PageToken: string(changed)})
		wantCode(t, fmt.Sprint("changed at ", i), err, kg.CodeCursorForeign)
	}
}
