package openintent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/dialect/openintent"
	"koine/internal/intents"
	"koine/internal/presence"
	"koine/internal/sse"
	"koine/kg"
)

// server serves the protocol over its own store.
type server struct {
	*httptest.Server
	t        testing.TB
	channels *channels.Service
	store    *kg.Store
	streams  *sse.Server
	ends     chan sse.End // what was reported
	soon     time.Time    // the last ${soon} of a conversation
}

// start serves callers that X-Agent-ID names. The key "many" may act for any agent.
func start(t testing.TB, o openintent.Options, streams ...func(*sse.Options)) *server {
	t.Helper()
	s := &server{t: t, ends: make(chan sse.End, 100)}
	s.channels = channels.New(channels.Options{})
	store, err := kg.Open(filepath.Join(t.TempDir(), "data"), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: s.channels.Guard(kg.AllowAll{}), OnSystemChange: s.channels.Follow}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.channels.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	s.store = store
	about := sse.Options{Ended: func(_ context.Context, e sse.End) { s.ends <- e }}
	for _, set := range streams {
		set(&about)
	}
	s.streams = sse.New(about)
	present := presence.New(presence.Options{})
	t.Cleanup(present.Close)
	if err := present.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	directory := agents.NewDirectory(store, agents.DirectoryOptions{BeforeDeregister: func(ctx context.Context, id kg.AgentID) error {
		_, err := s.channels.Members().RemoveAgent(ctx, channels.Caller{Principal: kg.SystemPrincipal()}, id)
		return err
	}})
	plans := intents.New(store, s.channels, intents.Options{})
	if err := plans.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := openintent.NewHandler(openintent.Deps{Channels: s.channels, Intents: plans, Agents: directory, Presence: present, Streams: s.streams, Positions: store}, o)
	discovery := openintent.NewDiscoveryHandler()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			discovery.ServeHTTP(w, r)
			return
		}
		p := kg.Principal{ID: kg.CanonicalAgent(r.Header.Get("X-Agent-ID")), Method: "key"}
		if r.Header.Get("X-API-Key") == "many" {
			p.ActFor = []kg.AgentID{kg.Anybody}
		}
		h.ServeHTTP(w, r.WithContext(caller.With(r.Context(), caller.Caller{Principal: p, RequestID: "r1"})))
	}))
	s.Config.ConnContext = sse.ConnContext
	s.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.streams.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		s.Close()
		plans.Close()
		s.channels.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
