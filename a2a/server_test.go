package a2a_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"koine/a2a"
	"koine/channels"
	"koine/graph"
	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/delivery/push"
	"koine/internal/observertest"
	"koine/internal/operation"
	"koine/internal/search"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// testServer serves the protocol over its own store.
type testServer struct {
	*httptest.Server
	store   *kg.Store
	rooms   *channels.Service
	tasks   *tasks.Service
	push    *push.Service
	own     int // watchers of the server itself
	streams *sse.Server
	clock   atomic.Int64 // seconds since its beginning
	querier *notingQuerier
	rights  atomic.Pointer[func(kg.Principal) (kg.Principal, error)] // of senders to koine; nil keeps them
}

// currentRights returns the rights that a sender still has.
func (s *testServer) currentRights(p kg.Principal) (kg.Principal, error) {
	if rights := s.rights.Load(); rights != nil {
		return (*rights)(p)
	}
	return p, nil
}

// notingQuerier records the contexts of subscriptions, which end with their streams.
type notingQuerier struct {
	a2a.Querier
	established chan context.Context
}

func (q *notingQuerier) Subscribe(ctx context.Context, r operation.Request) (operation.Subscription, error) {
	select {
	case q.established <- ctx:
	default:
	}
	return q.Querier.Subscribe(ctx, r)
}

// established returns the context of the first subscription.
func (s *testServer) established(t *testing.T) context.Context {
	t.Helper()
	select {
	case ctx := <-s.querier.established:
		return ctx
	case <-time.After(patience):
		t.Fatal("no subscription")
		return nil
	}
}

// dawn is the start of a test's clock.
var dawn = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newTestServer(t testing.TB) *testServer {
	return newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{})
}

func newTestServerWith(t testing.TB, store kg.Options, streams sse.Options, options a2a.Options) *testServer {
	t.Helper()
	s := &testServer{streams: sse.New(streams)}
	rooms := channels.New(channels.Options{Agents: func(fn func(kg.AgentID) bool) { fn("agent://known") }})
	if store.Access == nil {
		store.Access = kg.AllowAll{}
	}
	s.rooms = rooms
	also := store.OnSystemChange
	store.Access, store.OnSystemChange = push.NewGuard(tasks.NewGuard(rooms.Guard(store.Access))), func(c *kg.Commit) {
		if also != nil {
			also(c)
		}
		rooms.Follow(c)
	}
	store.Clock = func() time.Time { return dawn.Add(time.Duration(s.clock.Load()) * time.Second) }
	store.FreeBytes = func(string) (uint64, error) { return 1 << 40, nil }
	dir := t.TempDir()
	observertest.Replay(t, dir)
	var err error
	if s.store, err = kg.Open(dir, store); err != nil {
		t.Fatal(err)
	}
	if err := rooms.Load(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	s.tasks = tasks.New(tasks.Options{Known: func(id kg.AgentID) bool { return id == "agent://known" }, CurrentRights: s.currentRights, DeleteTx: push.Forget})
	s.tasks.Handle(kg.System, testAgent{})
	s.push = push.New(push.Options{Body: a2a.Notification, WantsFullTask: a2a.NotifiesWhole, Options: delivery.Options{AllowPrivate: true}, Pause: time.Millisecond, FlushEvery: time.Hour})
	prefixes, err := kg.NewPrefixes(nil)
	if err != nil {
		t.Fatal(err)
	}
	var texts *search.Service
	if options.Recall {
		if texts, err = search.Open(s.store, search.Options{Dir: t.TempDir()}); err != nil {
			t.Fatal(err)
		}
		texts.Start()
		t.Cleanup(func() {
			if err := texts.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	engine := graph.NewEngine(graph.Deps{Store: s.store, Prefixes: prefixes, Channels: rooms, Search: texts}, graph.Options{})
	s.querier = &notingQuerier{engine, make(chan context.Context, 1)}
	deps := a2a.Deps{Store: s.store, Querier: s.querier, Channels: rooms, Tasks: s.tasks, Push: s.push, Streams: s.streams, Prefixes: prefixes}
	mux := http.NewServeMux()
	handler := a2a.NewHandler(deps, options)
	mux.Handle("/", handler)
	mux.Handle("/a2a/http/", handler.HTTP("/a2a/http"))
	mux.Handle("/known", handler.For("agent://known"))
	mux.Handle("/known/http/", handler.For("agent://known").HTTP("/known/http"))
	bare := a2a.NewHandler(a2a.Deps{Store: s.store, Querier: s.querier, Tasks: s.tasks, Streams: s.streams, Prefixes: prefixes}, a2a.Options{})
	mux.Handle("/bare", bare)
	mux.Handle("/bare/http/", bare.HTTP("/bare/http"))
	mux.Handle("/self", handler.For("agent://self"))
	s.tasks.Handle("agent://self", handler.Self())
	if err := s.tasks.Load(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	if err := s.push.Load(t.Context(), s.store, s.tasks); err != nil {
		t.Fatal(err)
	}
	s.own = s.store.Stats().Watchers
	mux.Handle("/changes", a2a.NewChangesHandler(deps, options))
	s.Server = httptest.NewUnstartedServer(asCaller(mux))
	s.Config.ConnContext = sse.ConnContext
	s.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.streams.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		s.Close()
		s.push.Close()
		s.tasks.Close()
		rooms.Close()
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// asCaller stands for the middleware that identifies the caller.
func asCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := caller.Caller{Principal: kg.Principal{ID: kg.Anonymous, ActFor: []kg.AgentID{kg.Anybody}, Method: "open"}, RequestID: "r1"}
		if name := r.Header.Get("X-Agent-ID"); name != "" {
			c.Principal.ID = kg.CanonicalAgent(name)
		}
		next.ServeHTTP(w, r.WithContext(caller.With(r.Context(), c)))
	})
}

// serve calls a handler without a network. The query of the body is the member that the
// method names.
func serve(h http.Handler, body, method string) (status int, answer string) {
	if method == "knowledge/subscribe" {
		body = strings.Replace(body, `"query"`, `"subscriptionQuery"`, 1)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}
