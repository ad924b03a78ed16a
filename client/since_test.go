package client_test

import (
	"errors"
	"fmt"
	"testing"

	"koine/client"
)

// A subscription to messages with a sequence number begins after it, and delivers each
// message once although the server is killed, also to a program that is restarted and
// resumes.
func TestSubscribeSinceSequence(t *testing.T) {
	s := start(t)
	ctx, ann := bounded(t), open(t, s.URL, "ann")
	channel, err := ann.CreateChannel(ctx, client.NewChannel{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	say := func(n int) {
		t.Helper()
		for range n {
			said++
			if _, err := ann.Publish(ctx, client.Publication{Channel: channel.ID, Parts: []any{client.TextPart(fmt.Sprint(said))}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	query := func(args string) string {
		return `subscription { messagePublished(where: {channelId: "` + channel.ID + `"}` + args + `) { __typename } }`
	}
	say(4)
	at := ""
	subscription := client.Subscription{Query: query(", sinceSequence: 2"), OnPosition: func(from string) { at = from }}
	// follow reads the messages from the first to the last, which are published once the
	// first was delivered and the server was replaced.
	follow := func(first, last int) {
		t.Helper()
		next := first
		for change, err := range ann.Subscribe(ctx, subscription) {
			if err != nil {
				t.Fatalf("ends in front of message %d: %v", next, err)
			}
			if got := numberOf(change.Statement.Object.Value); got != next {
				t.Fatalf("message %d, want %d", got, next)
			}
			if next == first {
				s.Restart()
				say(last - said)
			}
			if next++; next > last {
				return
			}
		}
	}
	follow(3, 7)
	if at == "" {
		t.Fatal("no position to go on from")
	}
	// The program did not ask for more after the last: it is delivered again.
	subscription.From = at
	follow(7, 9)
	// A start of the caller's own that is another one is refused.
	for _, err := range ann.Subscribe(ctx, client.Subscription{Query: query(", sinceSequence: 2"), From: client.Earliest}) {
		if !errors.Is(err, client.Invalid) {
			t.Error(err)
		}
		break
	}
}

// A live subscription has its start position at once, so that one that is cut off before
// the first event misses none.
func TestSubscribeCutOffAtOnce(t *testing.T) {
	s := start(t)
	ctx, dora := bounded(t), open(t, s.URL, "dora")
	moved, seen := make(chan string, 1), make(chan *client.Change, 1)
	done := following(t, dora.Subscribe(ctx, client.Subscription{
		Query: `subscription { statementChanged(where: {predicate: {eq: "lab:seen"}}) { __typename } }`,
		OnPosition: func(from string) {
			select {
			case moved <- from:
			default: // it was told
			}
		},
	}), 1, seen)
	select {
	case <-moved:
	case err := <-done:
		t.Fatal(err)
	}
	s.Restart()
	if _, err := open(t, s.URL, "eve").Update(ctx, client.Update{Patches: []client.Patch{client.Add("finding:1", "lab:seen", client.Value(7))}}); err != nil {
		t.Fatal(err)
	}
	select {
	case change := <-seen:
		if got := numberOf(change.Statement.Object.Value); got != 7 {
			t.Errorf("told %d", got)
		}
	case err := <-done:
		t.Fatal(err)
	}
}
