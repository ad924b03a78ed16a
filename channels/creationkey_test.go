package channels_test

import (
	"strings"
	"sync"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// A repeated request to create a channel under its key returns the channel of the first
// one, also after a restart; other content is a conflict, and other callers have keys of
// their own.
func TestChannelsAreMadeOnce(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	draft := func() channel.Draft {
		return channel.Draft{
			Name: "lab", Metadata: []byte(`{"a": 1, "b": [2]}`), IdempotencyKey: "k1",
			Members: []channel.Member{{Agent: "bob"}, {Agent: "cleo", Role: channel.Moderator}},
		}
	}
	create := func(by string, d channel.Draft) *channel.Channel {
		t.Helper()
		c, err := s.Create(within(t), as(by), d)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := create("ann", draft())
	if first.Replayed {
		t.Error("the first request was taken for a repetition")
	}
	again := draft()
	again.Metadata = []byte(`{"b":[2],"a":1}`)
	again.Members = []channel.Member{{Agent: "agent://cleo", Role: channel.Moderator}, {Agent: "agent://bob", Role: channel.Ordinary}}
	revision := s.store.Head().Revision
	if c := create("ann", again); c.ID != first.ID || !c.Replayed {
		t.Errorf("sent again: %+v, want channel %s", c, first.ID)
	}
	if s.store.Head().Revision != revision {
		t.Error("a repetition made a commit")
	}
	s.restart(t)
	if c := create("ann", draft()); c.ID != first.ID || !c.Replayed {
		t.Errorf("sent again after a restart: %+v, want channel %s", c, first.ID)
	}
	other := draft()
	other.Topic = "another"
	_, err := s.Create(within(t), as("ann"), other)
	wantCode(t, "another channel under the key", err, kg.CodeIdempotencyConflict)
	if c := create("bob", draft()); c.ID == first.ID || c.Replayed {
		t.Error("the key of another agent answered its channel")
	}
	unkeyed := draft()
	unkeyed.IdempotencyKey = ""
	if a, b := create("ann", unkeyed), create("ann", unkeyed); a.ID == b.ID {
		t.Error("requests without a key made one channel")
	}
	// The key lives as long as the channel, and is useless for callers that do not see the
	// channel.
	if err := s.Delete(within(t), as("ann"), first.ID); err != nil {
		t.Fatal(err)
	}
	_, err = s.Create(within(t), as("ann"), draft())
	wantCode(t, "the channel was deleted", err, kg.CodeChannelNotFound)
}

// Twenty repetitions at once make one channel.
func TestRepetitionsAtOnceMakeOneChannel(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	var all sync.WaitGroup
	made := make([]channel.ID, 20)
	for i := range made {
		all.Go(func() {
			c, err := s.Create(within(t), as("ann"), channel.Draft{Kind: channel.Room, Name: "lab", IdempotencyKey: "k"})
			if err != nil {
				t.Error(err)
				return
			}
			made[i] = c.ID
		})
	}
	all.Wait()
	for _, id := range made {
		if id != made[0] {
			t.Fatalf("channels %s and %s", made[0], id)
		}
	}
}

// Scopes, and the channels in them, are created once under a key. The name of the first one
// does not prevent its repetition.
func TestScopesAreMadeOnce(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	scope := func(title string) (*scope.Scope, error) {
		return s.Scopes().Create(within(t), as("ann"), scope.Draft{Title: title, IdempotencyKey: "k"})
	}
	first, err := scope("research")
	if err != nil {
		t.Fatal(err)
	}
	room := func() *channel.Channel {
		t.Helper()
		c, err := s.CreateIn(within(t), as("ann"), first.ID, channel.Draft{Name: "lab", IdempotencyKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	made := room()
	s.restart(t)
	if sc, err := scope("research"); err != nil || sc.ID != first.ID || !sc.Replayed {
		t.Errorf("sent again: %+v, %v", sc, err)
	}
	if c := room(); c.ID != made.ID || !c.Replayed {
		t.Errorf("sent again: %+v", c)
	}
	_, err = scope("development")
	wantCode(t, "another scope under the key", err, kg.CodeIdempotencyConflict)
	// The same request outside of the scope is another one.
	_, err = s.Create(within(t), as("ann"), channel.Draft{Name: "lab", IdempotencyKey: "k"})
	wantCode(t, "the same name outside of the scope", err, kg.CodeIdempotencyConflict)
}

func TestKeysOfRequestsAreBounded(t *testing.T) {
	s := serve(t, channels.Options{}, kg.Options{})
	most := strings.Repeat("ä", channels.MaxKeyRunes)
	if _, err := s.Create(within(t), as("ann"), channel.Draft{IdempotencyKey: most}); err != nil {
		t.Error(err)
	}
	if _, err := s.Scopes().Create(within(t), as("ann"), scope.Draft{IdempotencyKey: most}); err != nil {
		t.Error(err)
	}
	_, err := s.Create(within(t), as("ann"), channel.Draft{IdempotencyKey: most + "ä"})
	wantCode(t, "one character more", err, kg.CodeLimitExceeded)
	_, err = s.Scopes().Create(within(t), as("ann"), scope.Draft{IdempotencyKey: most + "ä"})
	wantCode(t, "one character more", err, kg.CodeLimitExceeded)
}
