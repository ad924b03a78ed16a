package mailhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/delivery/mailhook"
	"koine/internal/logtest"
	"koine/internal/observertest"
	"koine/internal/tasks"
	"koine/kg"
)

const patience = time.Minute

var (
	alice = caller.Caller{Principal: kg.Principal{ID: "agent://alice", Method: "key"}}
	bob   = caller.Caller{Principal: kg.Principal{ID: "agent://bob", Method: "key"}}
	carol = caller.Caller{Principal: kg.Principal{ID: "agent://carol", Method: "key"}}
)

// office is a store with tasks, and a mailhook for those of bob and carol.
type office struct {
	t        *testing.T
	dir      string
	log      *logtest.Buffer
	store    *kg.Store
	tasks    *tasks.Service
	agents   *agents.Directory
	mailhook *mailhook.Service
	shut     atomic.Bool // no caller is admitted
}

// open hooks are on this machine.
func open() mailhook.Options {
	return mailhook.Options{Options: delivery.Options{AllowPrivate: true}}
}

func newOffice(t *testing.T, o mailhook.Options) *office {
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

func (f *office) open(o mailhook.Options) {
	f.t.Helper()
	o.Body = func(l *tasks.Letter) ([]byte, error) { return []byte(*l.Message.Parts[0].Text), nil }
	o.MayDeliver = func(kg.AgentID) bool { return !f.shut.Load() }
	if o.Pause == 0 {
		o.Pause = time.Millisecond
	}
	o.Logger = slog.New(slog.NewTextHandler(f.log, nil))
	var err error
	if f.store, err = kg.Open(f.dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: tasks.NewGuard(kg.AllowAll{})}}); err != nil {
		f.t.Fatal(err)
	}
	f.tasks = tasks.New(tasks.Options{Known: func(id kg.AgentID) bool { return id != alice.Principal.ID }})
	if err := f.tasks.Load(f.t.Context(), f.store); err != nil {
		f.t.Fatal(err)
	}
	f.agents = agents.NewDirectory(f.store, agents.DirectoryOptions{DeregisterTx: mailhook.Forget})
	f.mailhook = mailhook.New(o)
	if err := f.mailhook.Load(f.t.Context(), f.store, f.tasks); err != nil {
		f.t.Fatal(err)
	}
}

func (f *office) close() {
	f.mailhook.Close()
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

func (f *office) set(who caller.Caller, target delivery.Target) {
	f.t.Helper()
	if _, err := f.mailhook.Set(f.t.Context(), who, target); err != nil {
		f.t.Fatal(err)
	}
}

func (f *office) report(who caller.Caller, id tasks.TaskID, state tasks.State) {
	f.t.Helper()
	if _, err := f.tasks.Report(f.t.Context(), who, id, tasks.Report{State: state}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *office) eventually(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("it is not so that %s; log: %s", what, f.log)
		}
	}
}

// waits waits for how many letters are to be carried to an agent.
func (f *office) waits(who caller.Caller, n int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%d letters wait", n), func() bool {
		s, err := f.mailhook.State(f.t.Context(), who)
		return err == nil && s.Pending == n
	})
}

// door is the web hook of an agent.
type door struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex // guards the following fields
	answer func(text string, times int) int
	calls  []call
	times  map[string]int
}

// call is a letter that was accepted, or not.
type call struct {
	text, key string
	header    http.Header
	accepted  bool
}

// newDoor answers as it is told, with how often the same text came; nil accepts all.
func newDoor(t *testing.T, answer func(text string, times int) int) *door {
	d := &door{t: t, answer: answer, times: map[string]int{}}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		d.mu.Lock()
		d.times[b.String()]++
		answer, times, status := d.answer, d.times[b.String()], http.StatusNoContent
		d.mu.Unlock()
		if answer != nil {
			status = answer(b.String(), times)
		}
		d.mu.Lock()
		d.calls = append(d.calls, call{b.String(), r.Header.Get("Idempotency-Key"), r.Header.Clone(), status/100 == 2})
		d.mu.Unlock()
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *door) target() delivery.Target { return delivery.Target{URL: d.URL + "/hook"} }

func (d *door) answers(answer func(text string, times int) int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
}

// accepted lists the letters that were accepted, in order.
func (d *door) accepted() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		if c.accepted {
			out = append(out, c.text)
		}
	}
	return out
}

// expect waits for accepted calls.
func (d *door) expect(want ...string) {
	d.t.Helper()
	for end := time.Now().Add(patience); !slices.Equal(d.accepted(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("got %q, want %q", d.accepted(), want)
		}
	}
}

func code(t *testing.T, err error, want kg.Code) {
	t.Helper()
	if kg.CodeOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
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
