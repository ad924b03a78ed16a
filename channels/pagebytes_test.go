package channels_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/kg"
)

// TestPagesAreBoundedInBytes proves that a page of messages has no more content than
// MaxPageBytes, whichever way they are read, and that nothing is lost between pages.
func TestPagesAreBoundedInBytes(t *testing.T) {
	const fit = message.MaxPageBytes / channel.MaxMessageBytes // of the largest
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Private, "bob")
	first := s.say(t, "ann", c.ID, "small")
	part := func(size int) json.RawMessage {
		const frame = `{"type":"text","text":""}`
		return json.RawMessage(strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1))
	}
	const large = fit + 4
	for range large {
		_, err := s.Publish(within(t), as("ann"), channels.Publication{Channel: c.ID, Parts: []json.RawMessage{part(channel.MaxMessageBytes)}, Envelope: message.Envelope{ReplyTo: first.ID}})
		if err != nil {
			t.Fatal(err)
		}
	}
	var all, down []int64
	for n := int64(1); n <= large+1; n++ {
		all, down = append(all, n), append(down, large+2-n)
	}
	q := func(change func(*channels.HistoryQuery)) channels.HistoryQuery {
		q := channels.HistoryQuery{PageSize: channels.MaxPage, SinceSequence: at(1)}
		change(&q)
		return q
	}
	for name, row := range map[string]struct {
		q     channels.HistoryQuery
		pages []int
	}{
		"the largest":        {q(func(q *channels.HistoryQuery) {}), []int{fit, 4}},
		"with a small one":   {q(func(q *channels.HistoryQuery) { q.SinceSequence = nil }), []int{fit, 5}},
		"the newest first":   {q(func(q *channels.HistoryQuery) { q.Descending = true }), []int{fit, 4}},
		"all, newest first":  {q(func(q *channels.HistoryQuery) { q.Descending, q.SinceSequence = true, nil }), []int{fit, 5}},
		"as many as fit":     {q(func(q *channels.HistoryQuery) { q.BeforeSequence = fit + 2 }), []int{fit}},
		"fewer than fit":     {q(func(q *channels.HistoryQuery) { q.PageSize = fit - 1 }), []int{fit - 1, 5}},
		"what nobody wrote":  {q(func(q *channels.HistoryQuery) { q.Authors = []kg.AgentID{"bob"} }), nil},
		"what somebody says": {q(func(q *channels.HistoryQuery) { q.Authors = []kg.AgentID{"ann"} }), []int{fit, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			var pages []int
			var got []int64
			for q := row.q; ; {
				page, next, err := s.History(within(t), as("bob"), c.ID, q)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, sequences(page)...); len(page) > 0 {
					pages = append(pages, len(page))
				}
				if next == "" {
					break
				}
				q.PageToken = next
			}
			since := int64(0)
			if row.q.SinceSequence != nil {
				since = *row.q.SinceSequence
			}
			want := all[since:]
			if row.q.BeforeSequence > 0 {
				want = all[since : row.q.BeforeSequence-1]
			}
			if row.q.Descending {
				want = down[:len(down)-int(since)]
			}
			if row.pages == nil {
				want = nil
			}
			if fmt.Sprint(pages) != fmt.Sprint(row.pages) || !slices.Equal(got, want) {
				t.Errorf("pages of %v, want %v: %v", pages, row.pages, got)
			}
		})
	}
	t.Run("replies", func(t *testing.T) {
		var got []int64
		token, pages := "", 0
		for {
			page, next, err := s.Replies(within(t), as("bob"), first.ID, channels.MaxPage, token)
			if err != nil || len(page) > fit {
				t.Fatal(len(page), err)
			}
			got = append(got, sequences(page)...)
			if pages, token = pages+1, next; next == "" {
				break
			}
		}
		if pages != 2 || !slices.Equal(got, all[1:]) {
			t.Errorf("%d pages: %v", pages, got)
		}
	})
	t.Run("inbox", func(t *testing.T) {
		var got []int64
		for q := (channels.InboxQuery{PageSize: channels.MaxPage}); ; {
			page, next, more, err := s.Inbox(within(t), as("bob"), q)
			if err != nil || len(page) > fit+1 || more && len(page) < fit-1 {
				t.Fatal(len(page), more, err)
			}
			for _, d := range page {
				got = append(got, d.Sequence)
			}
			if q.After = next; !more {
				break
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("stream", func(t *testing.T) {
		since := int64(0)
		stream, err := s.Stream(within(t), as("bob"), c.ID, &since)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		var got []int64
		for m, err := range stream.Messages() {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, m.Sequence); len(got) == large {
				s.say(t, "ann", c.ID, "live")
			}
			if m.Sequence == large+2 {
				break
			}
		}
		if !slices.Equal(got[:large+1], all) {
			t.Errorf("got %v", got)
		}
	})
}
