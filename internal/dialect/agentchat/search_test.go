package agentchat_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
)

// Pages of the messages with words have all of them once, in both directions, and none beside.
func TestPagesOfMessagesWithWords(t *testing.T) {
	s := start(t)
	_, ann := s.register("ann")
	room := s.room(ann, `{"name":"lab"}`)
	var want []int
	for i := range 40 {
		content := "only pears"
		if i%3 == 0 || i%7 == 1 {
			content = "an apple a day"
			want = append(want, i+1)
		}
		s.must(nil, ann, http.MethodPost, "/rooms/"+room+"/messages", `{"content":"`+content+`"}`)
	}
	for _, backward := range []bool{false, true} {
		var got []int
		for at := map[bool]string{false: "&after=0", true: ""}[backward]; ; {
			var page struct {
				Messages []struct{ Sequence int }
				Next     string `json:"next_cursor"`
			}
			s.must(&page, ann, http.MethodGet, "/rooms/"+room+"/messages?limit=4&q=apples"+at, "")
			if backward {
				slices.Reverse(page.Messages)
			}
			for _, m := range page.Messages {
				got = append(got, m.Sequence)
			}
			if page.Next == "" {
				break
			}
			if at = "&after=" + page.Next; backward {
				at = "&before=" + page.Next
			}
		}
		if backward {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("backward %v: found %v, want %v", backward, got, want)
		}
	}
}

// Messages that a member may not read, and other rooms, change no byte of its answers.
func TestWordsOfHiddenMessages(t *testing.T) {
	s := start(t)
	annID, ann := s.register("ann")
	bobID, bob := s.register("bob")
	calID, cal := s.register("cal")
	room, other := s.room(ann, `{"name":"lab"}`), s.room(ann, `{"name":"other","type":"private"}`)
	for _, key := range []string{bob, cal} {
		s.must(nil, key, http.MethodPost, "/rooms/"+room+"/join", `{}`)
	}
	say := func(room, text, to string) message.ID {
		t.Helper()
		p := channels.Publication{Channel: channel.ID(room), Parts: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"text":%q}`, text))}, Envelope: message.Envelope{To: to}}
		receipt, err := s.channels.Publish(t.Context(), as(annID), p)
		if err != nil {
			t.Fatal(err)
		}
		return receipt.Message.ID
	}
	say(room, "the apples of the garden", "")
	gone := say(room, "no apples at all", "")
	s.must(nil, ann, http.MethodDelete, "/rooms/"+room+"/messages/"+string(gone), "")
	queries := []string{"apple", "applse", "appl*", "garden -unheardof", "unheardof"}
	ask := func(key, q string) string {
		_, answer := s.ask(key, http.MethodGet, "/rooms/"+room+"/messages?q="+strings.ReplaceAll(q, " ", "+"), "")
		return answer
	}
	before := map[string]string{}
	for _, q := range queries {
		before[q] = ask(bob, q)
	}
	if !strings.Contains(before["apple"], "garden") || strings.Contains(before["apple"], "no apples") || strings.Contains(before["unheardof"], "garden") {
		t.Fatalf("Bob finds %v", before)
	}
	for range 20 {
		say(room, strings.Repeat("apple applse unheardof garden ", 50), calID)
		say(other, strings.Repeat("apple applse unheardof garden ", 50), "")
	}
	for _, q := range queries {
		if got := ask(bob, q); got != before[q] {
			t.Errorf("%s (%s): Bob finds\n%s\nand before\n%s", q, bobID, got, before[q])
		}
	}
	if got := ask(cal, "unheardof"); strings.Count(got, `"sequence"`) != 20 {
		t.Errorf("Cal finds %s", got)
	}
}
