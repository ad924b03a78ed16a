package channels_test

import (
	"fmt"
	"testing"
	"time"

	"koine/channels"
	"koine/kg"
)

func TestHistory(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{}, kg.Options{Clock: clock.now})
	c := s.make(t, channels.Public, "bob")
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
		{channels.HistoryQuery{SinceSequence: at(100)}, "[]", ""},
		{channels.HistoryQuery{BeforeSequence: 4}, "[1 2 3]", ""},
		{channels.HistoryQuery{BeforeSequence: 4, SinceSequence: at(1), Descending: true}, "[3 2]", ""},
		{channels.HistoryQuery{SinceTime: times[0].Add(-1)}, "[1 2 3 4 5 6 7 8 9 10]", ""},
		{channels.HistoryQuery{SinceTime: times[4]}, after(times, times[4]), ""},
		{channels.HistoryQuery{SinceTime: times[5]}, after(times, times[5]), ""},
		{channels.HistoryQuery{SinceTime: times[9]}, "[]", ""},
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

func after(times []time.Time, t time.Time) string {
	out := []int64{}
	for i := range times {
		if times[i].After(t) {
			out = append(out, int64(i)+1)
		}
	}
	return fmt.Sprint(out)
}

// walk reads all pages.
func (s *server) walk(t *testing.T, by string, id channels.ChannelID, q channels.HistoryQuery) (out []int64, err error) {
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

// TestHistoryBeforeTime proves that an upper bound in time leaves out what is not
// earlier, and nothing else.
func TestHistoryBeforeTime(t *testing.T) {
	clock := startClock()
	s := serve(t, channels.Options{Clock: clock.now}, kg.Options{Clock: clock.now})
	id := s.make(t, channels.Private).ID
	var times []time.Time
	for i := range 6 {
		times = append(times, s.say(t, "ann", id, "%d", i+1).Time)
		clock.step(time.Minute)
	}
	for _, tt := range []struct {
		q    channels.HistoryQuery
		want string
	}{
		{channels.HistoryQuery{BeforeTime: times[0]}, "[]"},
		{channels.HistoryQuery{BeforeTime: times[3]}, "[1 2 3]"},
		{channels.HistoryQuery{BeforeTime: times[3].Add(time.Millisecond)}, "[1 2 3 4]"},
		{channels.HistoryQuery{BeforeTime: clock.now(), Descending: true}, "[6 5 4 3 2 1]"},
		{channels.HistoryQuery{BeforeTime: times[4], SinceTime: times[1]}, "[3 4]"},
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
