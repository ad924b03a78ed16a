package channels_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/channels/message"
	"koine/internal/observertest"
	"koine/kg"
	"koine/kg/kgtest"
)

// server is a store with channels on top.
type server struct {
	*channels.Service
	store *kgtest.Store
	dir   string
}

func serve(t testing.TB, o channels.Options, so kg.Options) *server {
	t.Helper()
	if so.Access == nil {
		so.Access = kg.AllowAll{}
	}
	s, dir := new(server), filepath.Join(t.TempDir(), "data")
	open := func() (*kg.Store, error) { // with a service that knows nothing yet
		s.Service = channels.New(o)
		options := so
		options.ReserveBytes = max(1, options.ReserveBytes)
		options.Access, options.OnSystemChange = s.Guard(so.Access), s.Follow
		return kg.Open(dir, options)
	}
	compare := observertest.AtEnd(t, func() (observertest.Observers, func()) {
		so.Rebuild = true
		store, err := open()
		if err == nil {
			err = s.Load(context.Background(), store)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s.observers(), func() { s.Close(); _ = store.Close() }
	})
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	s.store, s.dir = kgtest.NewStore(t, store, open), dir
	compare(s.observers)
	if err := s.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *server) observers() observertest.Observers {
	return observertest.Observers{"channels": s.Service}
}

// restart opens the store again, with another service.
func (s *server) restart(t testing.TB) {
	t.Helper()
	s.Close()
	s.store.Reopen()
	if err := s.Load(t.Context(), s.store.Store); err != nil {
		t.Fatal(err)
	}
}

// as is an agent that calls for itself.
func as(name string) channels.Caller {
	return channels.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent(name), Method: "key"}}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// make makes a channel of ann's with these members.
func (s *server) make(t testing.TB, visibility channel.Visibility, members ...string) *channel.Channel {
	t.Helper()
	d := channel.Draft{Name: "lab", Visibility: visibility}
	for _, m := range members {
		d.Members = append(d.Members, channel.Member{Agent: kg.CanonicalAgent(m)})
	}
	c, err := s.Create(within(t), as("ann"), d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func text(format string, args ...any) []json.RawMessage {
	raw, err := json.Marshal(map[string]string{"type": "text", "text": fmt.Sprintf(format, args...)})
	if err != nil {
		panic(err)
	}
	return []json.RawMessage{raw}
}

// say publishes a text.
func (s *server) say(t testing.TB, by string, id channel.ID, format string, args ...any) *message.Message {
	t.Helper()
	r, err := s.Publish(within(t), as(by), channels.Publication{Channel: id, Parts: text(format, args...)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Message
}

func wantCode(t testing.TB, what string, err error, want kg.Code) {
	t.Helper()
	if got := kg.CodeOf(err); got != want {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
	}
}

func sequences(list []*message.Message) (out []int64) {
	for _, m := range list {
		out = append(out, m.Sequence)
	}
	return out
}
