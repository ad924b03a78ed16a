package agentchat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/caller"
	"koine/internal/dialect/agentchat"
	"koine/internal/following"
	"koine/internal/presence"
	"koine/internal/reputation"
	"koine/internal/search"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// server serves the protocol over its own store, in open mode: callers name themselves
// in X-Agent-ID, or have a key.
type server struct {
	deps    agentchat.Deps
	options agentchat.Options
	*httptest.Server
	t        testing.TB
	store    *kg.Store
	channels *channels.Service
	presence *presence.Tracker
	keys     *auth.Keys
	streams  *sse.Server
	tasks    *tasks.Service
	handler  *agentchat.Handler
}

// tierOfTests is the free tier whose bytes do not count the wrapping of content.
var tierOfTests = channels.Tier{Name: "free", MessagesPerMinute: 60, Streams: 2, Channels: 10, MessageBytes: channel.MaxMessageBytes}

func start(t testing.TB) *server {
	t.Helper()
	return startWith(t, agentchat.Options{Registration: agentchat.RegisterOpen}, channels.Options{})
}

func startWith(t testing.TB, o agentchat.Options, co channels.Options) *server {
	t.Helper()
	registry := agents.NewRegistry(nil)
	table := auth.NewTable()
	gate := auth.NewGate(auth.Options{Keys: table, Agents: registry})
	if co.Tiers == nil {
		co.Tiers = map[string]channels.Tier{agentchat.Role: tierOfTests, agentchat.RoleGuest: agentchat.GuestTier}
	}
	co.Agents = registry.Each
	tracker := presence.New(presence.Options{})
	co.Presence = func(ctx context.Context) (iter.Seq[channels.PresenceChange], error) {
		changes, err := tracker.Changes(ctx)
		return func(yield func(channels.PresenceChange) bool) {
			for c := range changes {
				if !yield(channels.PresenceChange{Agent: c.Agent, Status: string(c.Status), Since: c.Since}) {
					return
				}
			}
		}, err
	}
	rooms := channels.New(co)
	follow := func(c *kg.Commit) {
		registry.Follow(c)
		table.Follow(c)
		rooms.Follow(c)
		tracker.Follow(c)
	}
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: tasks.NewGuard(rooms.Guard(kg.AllowAll{})), OnSystemChange: follow}})
	if err != nil {
		t.Fatal(err)
	}
	work := tasks.New(tasks.Options{Known: registry.IsAvailable})
	for _, load := range []func(context.Context, *kg.Store) error{registry.Load, table.Load, rooms.Load, tracker.Load, work.Load} {
		if err := load(t.Context(), store); err != nil {
			t.Fatal(err)
		}
	}
	s := &server{t: t, store: store, channels: rooms, presence: tracker, keys: auth.NewKeys(store), tasks: work}
	directory := agents.NewDirectory(store, agents.DirectoryOptions{
		DeregisterTx: following.Forget,
		BeforeDeregister: func(ctx context.Context, id kg.AgentID) error {
			_, err := rooms.Members().RemoveAgent(ctx, channels.Caller{Principal: kg.SystemPrincipal()}, id)
			return err
		},
	})
	s.streams = sse.New(sse.Options{Admit: func(ctx context.Context) (func(), error) {
		who := caller.From(ctx)
		if who.Principal.Method == caller.MethodNone || who.Principal.ID == kg.Anonymous {
			return func() {}, nil
		}
		return tracker.Connect(who.Acting()), nil
	}})
	var made atomic.Int64 // ids in the order of registration, so that lists have one
	o.NewID = func() kg.AgentID { return kg.AgentID(fmt.Sprintf("agent://ag_%020d", made.Add(1))) }
	o.Admit, o.PublicURL = gate.Admit, "https://koine.example/agentchat"
	if o.QueryToken == nil {
		o.QueryToken = func(r *http.Request) string { return r.URL.Query().Get("token") }
	}
	texts, err := search.Open(store, search.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	texts.Start()
	s.deps = agentchat.Deps{Channels: rooms, Agents: directory, Presence: tracker, Keys: s.keys, Following: following.New(store, rooms), Reputation: reputation.New(store), Store: store, Streams: s.streams, Search: texts}
	s.options, s.handler = o, agentchat.NewHandler(s.deps, o)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := kg.Principal{ID: kg.Anonymous, Roles: []string{kg.RoleAdmin}, ActFor: []kg.AgentID{kg.Anybody}, Method: kg.MethodOpen}
		if name := r.Header.Get("X-Agent-ID"); name != "" {
			p.ID = kg.CanonicalAgent(name)
		}
		s.handler.ServeHTTP(w, r.WithContext(caller.With(r.Context(), caller.Caller{Principal: p, RequestID: "r1"})))
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
		if err := texts.Close(); err != nil {
			t.Error(err)
		}
		work.Close()
		rooms.Close()
		tracker.Close()
		registry.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask sends a request with a key, or with the name of an agent, and returns the answer.
func (s *server) ask(key, method, path, body string, headers ...string) (status int, answer string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	switch {
	case auth.IsKey(key):
		r.Header.Set("Authorization", "Bearer "+key)
	case key != "":
		r.Header.Set("X-Agent-ID", key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSuffix(string(raw), "\n")
}

// must sends a request that succeeds and decodes its answer.
func (s *server) must(into any, key, method, path, body string) {
	s.t.Helper()
	status, answer := s.ask(key, method, path, body)
	if status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(answer), into); err != nil {
			s.t.Fatal(err)
		}
	}
}

// stopSearch makes the server one without search.
func (s *server) stopSearch() {
	s.deps.Search = nil
	s.handler = agentchat.NewHandler(s.deps, s.options)
}

// register makes an agent and returns its id and key.
func (s *server) register(name string) (id, key string) {
	s.t.Helper()
	var made struct {
		ID  string `json:"agent_id"`
		Key string `json:"api_key"`
	}
	s.must(&made, "root", "POST", "/agents/register", `{"name":"`+name+`"}`)
	return made.ID, made.Key
}

// room creates a room and returns its id.
func (s *server) room(key, body string) string {
	s.t.Helper()
	var made struct{ ID string }
	s.must(&made, key, "POST", "/rooms", body)
	return made.ID
}

// peer is a client's socket.
type peer struct {
	t    testing.TB
	conn *websocket.Conn
}

// dial opens a socket without authentication.
func (s *server) dial(path string) *peer {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return &peer{s.t, conn}
}

// connect opens a socket with a key and reads its auth_ok.
func (s *server) connect(key, resume string) *peer {
	s.t.Helper()
	p := s.dial("/ws")
	if resume != "" {
		resume = `,"resume":` + resume
	}
	p.send(`{"type":"auth","token":"` + key + `"` + resume + `}`)
	p.await(`"type":"auth_ok"`)
	return p
}

func (p *peer) send(frame string) {
	p.t.Helper()
	if err := p.conn.Write(p.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) read() (string, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 8*time.Second)
	defer cancel()
	_, raw, err := p.conn.Read(ctx)
	return string(raw), err
}

// await reads until a frame has the text and returns it.
func (p *peer) await(text string) string {
	p.t.Helper()
	for {
		frame, err := p.read()
		if err != nil {
			p.t.Fatalf("waiting for %s: %v", text, err)
		}
		if strings.Contains(frame, text) {
			return frame
		}
	}
}

// awaitClose reads until the socket is closed and returns the code.
func (p *peer) awaitClose() websocket.StatusCode {
	p.t.Helper()
	for {
		if _, err := p.read(); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// startWithTiers starts a server whose agents have no limits of a tier.
func startWithTiers(t testing.TB) *server {
	t.Helper()
	return startWith(t, agentchat.Options{Registration: agentchat.RegisterOpen}, channels.Options{Tiers: map[string]channels.Tier{}})
}

// registerAs makes an agent from a body and returns its id and key.
func (s *server) registerAs(body string) (id, key string) {
	s.t.Helper()
	var made struct {
		ID  string `json:"agent_id"`
		Key string `json:"api_key"`
	}
	s.must(&made, "root", "POST", "/agents/register", body)
	return made.ID, made.Key
}

// keyWith returns a key of an agent with a role.
func (s *server) keyWith(name, role string) string {
	s.t.Helper()
	created, err := s.keys.Create(s.t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, auth.KeyRequest{Agent: kg.CanonicalAgent(name), Roles: []string{role}})
	if err != nil {
		s.t.Fatal(err)
	}
	return created.Secret
}
