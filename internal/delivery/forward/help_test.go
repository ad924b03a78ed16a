package forward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"koine/a2a/hub"
	"koine/internal/agents"
	"koine/internal/backoff"
	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/delivery/forward"
	"koine/internal/logtest"
	"koine/internal/observertest"
	"koine/internal/tasks"
	"koine/kg"
)

const patience = 30 * time.Second

var (
	alice = caller.Caller{Principal: kg.Principal{ID: "agent://alice", Method: "key"}}
	bob   = caller.Caller{Principal: kg.Principal{ID: "agent://bob", Method: "key"}}
	carol = caller.Caller{Principal: kg.Principal{ID: "agent://carol", Method: "key"}}
	admin = caller.Caller{Principal: kg.Principal{ID: "agent://root", Method: "key", Roles: []string{kg.RoleAdmin}}}
)

// office is a store with tasks, and the forwarding of those of bob and carol.
type office struct {
	t       *testing.T
	dir     string
	log     *logtest.Buffer
	store   *kg.Store
	tasks   *tasks.Service
	agents  *agents.Directory
	forward *forward.Service
	shut    atomic.Bool // no message may be forwarded
	most    int         // bytes that are read of a task
}

func newOffice(t *testing.T, o forward.Options) *office {
	f := &office{t: t, dir: t.TempDir(), log: new(logtest.Buffer)}
	observertest.Replay(t, f.dir)
	f.open(o)
	t.Cleanup(func() { f.close() })
	for _, who := range []caller.Caller{bob, carol} {
		if _, err := f.agents.Register(t.Context(), who, agents.Record{ID: who.Principal.ID}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// local permits upstreams on this machine.
func local() forward.Options { return forward.Options{AllowPrivate: true} }

func (f *office) open(o forward.Options) {
	f.t.Helper()
	o.Wire, o.MayForward = hub.Wire{}, func(kg.AgentID) bool { return !f.shut.Load() }
	if o.Retry.Min == 0 {
		o.Retry = backoff.Waits{Min: time.Millisecond, Max: 20 * time.Millisecond}
	}
	if o.Poll.Min == 0 {
		o.Poll = o.Retry
	}
	o.Logger = slog.New(slog.NewTextHandler(f.log, nil))
	var err error
	if f.store, err = kg.Open(f.dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: tasks.NewGuard(kg.AllowAll{})}}); err != nil {
		f.t.Fatal(err)
	}
	f.tasks = tasks.New(tasks.Options{MaxReadBytes: f.most, Known: func(id kg.AgentID) bool { return id != alice.Principal.ID }})
	if err := f.tasks.Load(f.t.Context(), f.store); err != nil {
		f.t.Fatal(err)
	}
	f.agents = agents.NewDirectory(f.store, agents.DirectoryOptions{DeregisterTx: forward.Forget})
	f.forward = forward.New(o)
	if err := f.forward.Load(f.t.Context(), f.store, f.tasks); err != nil {
		f.t.Fatal(err)
	}
}

func (f *office) close() {
	f.forward.Close()
	f.tasks.Close()
	if err := f.store.Close(); err != nil {
		f.t.Error(err)
	}
}

// send sends alice's text, in a new task or one more of a task.
func (f *office) send(to caller.Caller, text string, more ...tasks.TaskID) tasks.TaskID {
	f.t.Helper()
	s := tasks.SendRequest{To: to.Principal.ID, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart(text)}}}
	if len(more) > 0 {
		s.Task = more[0]
	}
	sent, err := f.tasks.Send(f.t.Context(), alice, s)
	if err != nil {
		f.t.Fatal(err)
	}
	return sent.Task.ID
}

// set sets an upstream of bob.
func (f *office) set(url string, d forward.Dialect, unary bool) {
	f.t.Helper()
	_, err := f.forward.Set(f.t.Context(), bob, bob.Principal.ID, forward.Setting{
		Target: delivery.Target{URL: url, Scheme: "Bearer", Credentials: "secret-key"}, Dialect: d, Unary: unary,
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *office) get(id tasks.TaskID) *tasks.Task {
	f.t.Helper()
	t, err := f.tasks.Get(f.t.Context(), alice, id, tasks.ReadAll)
	if err != nil {
		f.t.Fatal(err)
	}
	return t
}

// becomes waits for a state of a task.
func (f *office) becomes(id tasks.TaskID, state tasks.State) (t *tasks.Task) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("the task is %s", state), func() bool {
		t = f.get(id)
		return t.Status.State == state
	})
	return t
}

func (f *office) eventually(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("it is not so that %s; log: %s", what, f.log)
		}
	}
}

// empty waits until no letter waits for bob.
func (f *office) empty() {
	f.t.Helper()
	f.eventually("the mailbox is empty", func() bool {
		list, _, err := f.tasks.Notices(f.t.Context(), bob.Principal.ID)
		return err == nil && len(list) == 0
	})
}

// text is all that is stated, as one text.
func (f *office) text() string {
	f.t.Helper()
	s, err := f.store.View(f.t.Context(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		f.t.Fatal(err)
	}
	defer s.Close()
	var b strings.Builder
	for st, err := range s.Match(kg.Pattern{}) {
		if err != nil {
			f.t.Fatal(err)
		}
		raw, _ := json.Marshal(fmt.Sprint(st.Quad))
		b.Write(raw)
	}
	return b.String()
}

func statusText(t *tasks.Task) string {
	if m := t.Status.Message; m != nil {
		return textOf(m.Parts)
	}
	return ""
}

func textOf(parts []tasks.Part) string {
	var all []string
	for _, p := range parts {
		if p.Text != nil {
			all = append(all, *p.Text)
		}
	}
	return strings.Join(all, "|")
}

func code(t *testing.T, err error, want kg.Code) {
	t.Helper()
	if kg.CodeOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// server is an A2A server of the official library in both bindings, below /rpc and /http.
type server struct {
	*httptest.Server
	agent *agent

	mu    sync.Mutex // guards the following fields
	front func(http.ResponseWriter, *http.Request) bool
	calls []string // of JSON-RPC and HTTP+JSON, by the name in JSON-RPC
	heads []http.Header
}

// newServer returns a running server. Its front may answer in its place.
func newServer(t *testing.T, options ...a2asrv.RequestHandlerOption) *server {
	s := &server{agent: &agent{release: make(chan struct{}), ended: make(chan struct{}, 100)}}
	core := a2asrv.NewHandler(s.agent, options...)
	mux := http.NewServeMux()
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(core))
	mux.Handle("/http/", http.StripPrefix("/http", a2asrv.NewRESTHandler(core)))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		r.Body = http.NoBody
		r.Body = readCloser{&body}
		s.mu.Lock()
		s.calls, s.heads = append(s.calls, callOf(r, body.Bytes())), append(s.heads, r.Header.Clone())
		front := s.front
		s.mu.Unlock()
		if front != nil && front(w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

// callOf names the operation of a request.
func callOf(r *http.Request, body []byte) string {
	var rpc struct{ Method string }
	if r.URL.Path == "/rpc" {
		_ = json.Unmarshal(body, &rpc)
		return rpc.Method
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "message:send"):
		return "SendMessage"
	case strings.HasSuffix(path, "message:stream"):
		return "SendStreamingMessage"
	case strings.HasSuffix(path, ":cancel"):
		return "CancelTask"
	case strings.HasSuffix(path, ":subscribe"):
		return "SubscribeToTask"
	}
	return "GetTask"
}

func (s *server) setFront(front func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.front = front
}

// called counts the calls of an operation.
func (s *server) called(op string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c == op {
			n++
		}
	}
	return n
}

func (s *server) lastHead() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heads[len(s.heads)-1]
}

// agent does what the text of a message says.
type agent struct {
	release chan struct{} // lets "wait" go on
	ended   chan struct{} // "wait" was ended

	mu  sync.Mutex
	ids []string // of the messages
}

func (a *agent) messages() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.ids...)
}

func (a *agent) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	a.mu.Lock()
	a.ids = append(a.ids, x.Message.ID)
	a.mu.Unlock()
	text := x.Message.Parts[0].Text()
	say := func(state a2a.TaskState, text string) a2a.Event {
		return a2a.NewStatusUpdateEvent(x, state, a2a.NewMessageForTask(a2a.MessageRoleAgent, x, a2a.NewTextPart(text)))
	}
	return func(yield func(a2a.Event, error) bool) {
		all := func(events ...a2a.Event) bool {
			for _, e := range events {
				if !yield(e, nil) {
					return false
				}
			}
			return true
		}
		if text == "direct" {
			all(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("at once")))
			return
		}
		if x.StoredTask == nil && !all(a2a.NewSubmittedTask(x, x.Message)) {
			return
		}
		if !all(a2a.NewStatusUpdateEvent(x, a2a.TaskStateWorking, nil)) {
			return
		}
		switch {
		case x.StoredTask != nil:
			all(say(a2a.TaskStateCompleted, "you said "+text+" in "+x.ContextID))
		case text == "ask":
			all(say(a2a.TaskStateInputRequired, "which?"))
		case text == "fail":
			all(say(a2a.TaskStateFailed, "it went wrong"))
		case text == "wait":
			first := a2a.NewArtifactEvent(x, a2a.NewTextPart("a"))
			if !all(first) {
				return
			}
			select {
			case <-a.release:
				all(a2a.NewArtifactUpdateEvent(x, first.Artifact.ID, a2a.NewTextPart("b")), say(a2a.TaskStateCompleted, "done"))
			case <-ctx.Done():
				a.ended <- struct{}{}
			}
		default:
			first := a2a.NewArtifactEvent(x, a2a.NewTextPart("one"))
			first.Artifact.Name = "numbers"
			all(first, a2a.NewArtifactUpdateEvent(x, first.Artifact.ID, a2a.NewTextPart("two")), say(a2a.TaskStateCompleted, "did "+text))
		}
	}
}

func (a *agent) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}
