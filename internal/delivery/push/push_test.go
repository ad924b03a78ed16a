package push_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/delivery/push"
	"koine/internal/logtest"
	"koine/internal/observertest"
	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

const patience = time.Minute

var (
	alice = caller.Caller{Principal: kg.Principal{ID: "agent://alice", Method: "key"}}
	bob   = caller.Caller{Principal: kg.Principal{ID: "agent://bob", Method: "key"}}
	carol = caller.Caller{Principal: kg.Principal{ID: "agent://carol", Method: "key"}}
	admin = caller.Caller{Principal: kg.Principal{ID: "agent://root", Method: "key", Roles: []string{kg.RoleAdmin}}}
	idle  = caller.Caller{Principal: kg.Principal{ID: "agent://root", Method: kg.MethodOpen, Roles: []string{kg.RoleAdmin}}}
)

// desk is a store with tasks and push notifications.
type desk struct {
	t     *testing.T
	dir   string
	log   *logtest.Buffer
	store *kg.Store
	tasks *tasks.Service
	push  *push.Service
	most  int // bytes that are read of a task
}

// body is the state or the artifact.
func body(form string, t *tasks.Task, e *tasks.Event) ([]byte, error) {
	if form == "whole" || e == nil {
		return fmt.Appendf(nil, "%s with %d", t.Status.State, len(t.Artifacts)), nil
	}
	if e.Chunk != nil {
		return fmt.Appendf(nil, "artifact %s", e.Chunk.ID), nil
	}
	return fmt.Appendf(nil, "%s", e.Status.State), nil
}

// open hooks are on this machine.
func open() push.Options {
	return push.Options{Options: delivery.Options{AllowPrivate: true}}
}

func newDesk(t *testing.T, o push.Options) *desk {
	d := &desk{t: t, dir: t.TempDir(), log: new(logtest.Buffer)}
	observertest.Replay(t, d.dir)
	d.open(o)
	t.Cleanup(d.close)
	return d
}

func (d *desk) open(o push.Options) {
	d.t.Helper()
	o.Body, o.WantsFullTask = body, func(form string) bool { return form == "whole" }
	if o.Pause == 0 {
		o.Pause = time.Millisecond
	}
	o.Logger = slog.New(slog.NewTextHandler(d.log, nil))
	var err error
	if d.store, err = kg.Open(d.dir, kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: push.NewGuard(tasks.NewGuard(kg.AllowAll{}))}}); err != nil {
		d.t.Fatal(err)
	}
	d.tasks = tasks.New(tasks.Options{MaxReadBytes: d.most, Known: func(id kg.AgentID) bool { return id == bob.Principal.ID }, DeleteTx: push.Forget})
	if err := d.tasks.Load(d.t.Context(), d.store); err != nil {
		d.t.Fatal(err)
	}
	d.push = push.New(o)
	if err := d.push.Load(d.t.Context(), d.store, d.tasks); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) close() {
	d.push.Close()
	d.tasks.Close()
	if err := d.store.Close(); err != nil {
		d.t.Error(err)
	}
}

// give is a task of alice's for bob.
func (d *desk) give(along ...push.Config) *tasks.Task {
	d.t.Helper()
	return d.giveAs(alice, along...)
}

func (d *desk) giveAs(by caller.Caller, along ...push.Config) *tasks.Task {
	d.t.Helper()
	sending := tasks.SendRequest{To: bob.Principal.ID, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("do it")}}}
	if len(along) > 0 {
		var err error
		if sending.WriteAlso, err = d.push.PrepareConfig(along[0]); err != nil {
			d.t.Fatal(err)
		}
	}
	sent, err := d.tasks.Send(d.t.Context(), by, sending)
	if err != nil {
		d.t.Fatal(err)
	}
	return sent.Task
}

func (d *desk) set(c push.Config) {
	d.t.Helper()
	if _, err := d.push.Set(d.t.Context(), alice, c); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) report(task *tasks.Task, state tasks.State, artifacts ...string) {
	d.t.Helper()
	r := tasks.Report{State: state}
	for _, id := range artifacts {
		r.Artifacts = append(r.Artifacts, tasks.Chunk{Artifact: tasks.Artifact{ID: id, Parts: []tasks.Part{tasks.TextPart("x")}}})
	}
	if _, err := d.tasks.Report(d.t.Context(), bob, task.ID, r); err != nil {
		d.t.Fatal(err)
	}
}

// ear notes the calls that it receives.
type ear struct {
	*httptest.Server
	came   chan string
	answer func(n int, r *http.Request) int // the status of the nth call
	mu     sync.Mutex
	header http.Header
	calls  int
}

func newWebhook(t *testing.T, answer func(n int, r *http.Request) int) *ear {
	w := &ear{came: make(chan string, 2000), answer: answer}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		w.mu.Lock()
		w.calls++
		n := w.calls
		w.header = r.Header.Clone()
		w.mu.Unlock()
		status := 200
		if w.answer != nil {
			status = w.answer(n, r)
		}
		if status >= 300 && status < 400 {
			rw.Header().Set("Location", "/elsewhere")
		}
		rw.WriteHeader(status)
		if status == 200 {
			w.came <- b.String()
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// expect waits for the expected calls, in order.
func (w *ear) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, one := range want {
		select {
		case got := <-w.came:
			if got != one {
				t.Fatalf("got %q, want %q", got, one)
			}
		case <-time.After(patience):
			t.Fatalf("%q did not come", one)
		}
	}
}

// wait waits for a text in the log.
func (d *desk) wait(text string) {
	d.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(d.log.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("%q was not logged: %s", text, d.log)
		}
	}
}

func code(t *testing.T, err error, want kg.Code) {
	t.Helper()
	if kg.CodeOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Events after the commit that sets a hook are delivered, in order, with the credentials of
// the server; earlier ones are not.
func TestDelivered(t *testing.T) {
	d, w := newDesk(t, open()), newWebhook(t, nil)
	task := d.give()
	d.report(task, tasks.Working)
	d.set(push.Config{Task: task.ID, URL: w.URL, Token: "the-token", Scheme: "Bearer", Credentials: "the-credentials"})
	d.set(push.Config{Task: task.ID, ID: "w", URL: w.URL + "/whole", Form: "whole"})
	if err := d.push.Delete(t.Context(), alice, task.ID, "w"); err != nil {
		t.Fatal(err)
	}
	d.report(task, "", "a", "b")
	d.report(task, tasks.Completed, "c")
	w.expect(t, "artifact a", "artifact b", "artifact c", "COMPLETED")
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, want := range map[string]string{
		"X-A2A-Notification-Token": "the-token", "A2A-Notification-Token": "the-token", "Authorization": "Bearer the-credentials", "Content-Type": "application/json",
	} {
		if got := w.header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// A hook that is set with the message that makes a task misses nothing of it. A form
// that shows the whole task is told once of a commit.
func TestSetWithTheMessage(t *testing.T) {
	d, w := newDesk(t, open()), newWebhook(t, nil)
	task := d.give(push.Config{URL: w.URL, Form: "whole"})
	d.report(task, tasks.Working, "a", "b")
	w.expect(t, "WORKING with 2")
	d.report(task, tasks.Completed)
	w.expect(t, "COMPLETED with 2")
}

// A task that is too large is delivered without its artifacts.
func TestLargeTasksAreDelivered(t *testing.T) {
	d, w := newDesk(t, open()), newWebhook(t, nil)
	d.close()
	d.most = 1
	d.open(open())
	task := d.give(push.Config{URL: w.URL, Form: "whole"})
	d.report(task, tasks.Working, "a")
	w.expect(t, "WORKING with 0")
	d.report(task, tasks.Completed)
	w.expect(t, "COMPLETED with 0")
}

// A transient failure is retried, in order; a permanent refusal, and an event that fails
// too often, is given up, and later ones are delivered.
func TestTriedAgain(t *testing.T) {
	statuses := []int{500, 408, 429, 200 /* a */, 404 /* b */, 302 /* c */, 503, 503, 503, 503, 503, 503 /* d */}
	d := newDesk(t, open())
	w := newWebhook(t, func(n int, r *http.Request) int {
		if r.URL.Path == "/elsewhere" {
			t.Error("a redirect was followed")
		}
		if n <= len(statuses) {
			return statuses[n-1]
		}
		return 200
	})
	task := d.give(push.Config{URL: w.URL + "/?key=secret-in-url", Token: "secret-token", Scheme: "Bearer", Credentials: "secret-credentials"})
	d.report(task, tasks.Completed, "a", "b", "c", "d")
	w.expect(t, "artifact a", "COMPLETED")
	for _, want := range []string{"status 404", "status 302", "status 503"} {
		d.wait(want)
	}
	if text := d.log.String(); strings.Contains(text, "secret") || strings.Contains(text, w.URL) {
		t.Errorf("the log has secrets: %s", text)
	}
}

// The events of a suspended creator wait, for more attempts than a hook that fails has, and
// are delivered in order when it is no longer suspended. Those of other creators go on.
func TestSuspendedCreator(t *testing.T) {
	var shut atomic.Bool
	var refused atomic.Int32
	shut.Store(true)
	o := open()
	o.MayDeliver = func(creator kg.AgentID) bool {
		if creator != alice.Principal.ID || !shut.Load() {
			return true
		}
		refused.Add(1)
		return false
	}
	d, w, other := newDesk(t, o), newWebhook(t, nil), newWebhook(t, nil)
	task := d.give(push.Config{URL: w.URL})
	d.report(task, tasks.Working, "a")
	d.report(d.giveAs(carol, push.Config{URL: other.URL}), tasks.Completed)
	other.expect(t, "COMPLETED")
	for end := time.Now().Add(patience); refused.Load() <= push.MaxTries; time.Sleep(time.Millisecond) {
		if len(w.came) > 0 || time.Now().After(end) {
			t.Fatalf("%d calls for a suspended creator, after %d refusals", len(w.came), refused.Load())
		}
	}
	if len(w.came) > 0 {
		t.Errorf("%d calls for a suspended creator", len(w.came))
	}
	shut.Store(false)
	w.expect(t, "artifact a", "WORKING")
	if text := d.log.String(); strings.Contains(text, "giving up") {
		t.Errorf("an event was given up: %s", text)
	}
}

// A task that ends as soon as it has a hook is told of, whichever is seen first.
func TestEndedAtOnce(t *testing.T) {
	d, w := newDesk(t, open()), newWebhook(t, nil)
	for range 100 {
		d.report(d.give(push.Config{URL: w.URL}), tasks.Completed)
		w.expect(t, "COMPLETED")
	}
}

// A hook on a private network is not called, however its name is written.
func TestPrivateAddressesAreNotCalled(t *testing.T) {
	d, w := newDesk(t, push.Options{}), newWebhook(t, nil)
	task := d.give()
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost", "10.1.2.3", "169.254.169.254", "[::ffff:10.0.0.1]", "0.0.0.0", "100.64.1.1", "[64:ff9b::a00:1]", "[fe80::1]", "[fc00::1]"} {
		_, err := d.push.Set(t.Context(), alice, push.Config{Task: task.ID, URL: "http://" + host + "/"})
		code(t, err, kg.CodeInvalid)
	}
	// One that is there, as a name may lead there, is looked at when it is dialed.
	d.close()
	d.open(open())
	d.set(push.Config{Task: task.ID, URL: w.URL})
	d.close()
	d.open(push.Options{})
	d.report(task, tasks.Completed)
	d.wait("address is not public")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls > 0 {
		t.Error("a private address was called")
	}
}

// Delivery continues after the last event, after a restart too; events in between are
// delivered.
func TestGoesOnAfterARestart(t *testing.T) {
	d, w := newDesk(t, push.Options{Options: delivery.Options{AllowPrivate: true}, FlushEvery: time.Hour}), newWebhook(t, nil)
	task := d.give(push.Config{URL: w.URL})
	other := d.give(push.Config{URL: w.URL})
	d.report(task, tasks.Working, "a")
	w.expect(t, "artifact a", "WORKING")
	d.push.Close()
	d.report(task, "", "b")
	d.tasks.Close()
	if err := d.store.Close(); err != nil {
		t.Fatal(err)
	}
	d.open(open())
	// An interrupted delivery may be repeated, and nothing before it.
	select {
	case got := <-w.came:
		if got == "WORKING" {
			w.expect(t, "artifact b")
		} else if got != "artifact b" {
			t.Fatalf("got %q", got)
		}
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	d.report(task, tasks.Completed)
	w.expect(t, "COMPLETED")
	d.report(other, tasks.Rejected)
	w.expect(t, "REJECTED")
}

// A hook whose position is no longer in the log, at its start or during its life, gets the
// present task and then new events.
func TestBehindACutLog(t *testing.T) {
	d := newDesk(t, open())
	called, let := make(chan struct{}), make(chan struct{})
	w := newWebhook(t, func(n int, _ *http.Request) int {
		if n == 2 {
			close(called)
			<-let
		}
		return 200
	})
	other := newWebhook(t, nil)
	cut := func() {
		t.Helper()
		if err := d.store.Maintenance().CutLog(t.Context(), d.store.Head().Revision); err != nil {
			t.Fatal(err)
		}
	}
	task, quiet := d.give(push.Config{URL: w.URL}), d.give(push.Config{URL: w.URL + "/quiet"})
	d.report(task, tasks.Working)
	w.expect(t, "WORKING")
	d.push.Close()
	d.report(task, "", "a")
	d.report(task, tasks.Working, "b")
	d.tasks.Close()
	cut()
	if err := d.store.Close(); err != nil {
		t.Fatal(err)
	}
	d.open(open())
	d.set(push.Config{Task: task.ID, ID: "other", URL: other.URL})
	select {
	case <-called:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	d.report(task, "", "c", "d") // while it is told how the task was
	d.report(task, tasks.InputRequired)
	other.expect(t, "artifact c", "artifact d", "INPUT_REQUIRED") // the log was read so far
	cut()
	close(let)
	w.expect(t, "WORKING with 2", "INPUT_REQUIRED with 4")
	d.report(task, tasks.Completed, "e")
	w.expect(t, "artifact e", "COMPLETED")
	d.report(quiet, tasks.Rejected)
	w.expect(t, "REJECTED") // to which nothing had happened
}

// The creator of a task sets and removes its hooks, the creator and administrators see
// them, and no other caller; a hidden hook does not exist.
func TestWhoMay(t *testing.T) {
	d := newDesk(t, open())
	task := d.give()
	c := push.Config{Task: task.ID, URL: "http://127.0.0.1:1/", Token: "t", Scheme: "Bearer", Credentials: "c"}
	d.set(c)
	for _, row := range []struct {
		who            caller.Caller
		set, get, gone kg.Code
	}{
		{bob, kg.CodePermissionDenied, kg.CodePermissionDenied, kg.CodePermissionDenied},
		{carol, kg.CodeTaskNotFound, kg.CodeTaskNotFound, kg.CodeTaskNotFound},
		{idle, kg.CodeTaskNotFound, kg.CodeTaskNotFound, kg.CodeTaskNotFound},
		{admin, kg.CodePermissionDenied, "", ""},
		{alice, "", kg.CodeTaskNotFound, ""}, // the administrator has deleted it
	} {
		_, err := d.push.Get(t.Context(), row.who, task.ID, "")
		code(t, err, row.get)
		code(t, d.push.Delete(t.Context(), row.who, task.ID, ""), row.gone)
		_, err = d.push.Set(t.Context(), row.who, c)
		code(t, err, row.set)
	}
	for who, sees := range map[*caller.Caller]bool{&alice: true, &bob: false, &carol: false, &admin: true, &idle: false} {
		s, err := d.store.View(t.Context(), kg.View{Principal: who.Principal, AllGraphs: true})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range s.Match(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "pushKey")}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n > 0 != sees {
			t.Errorf("%s sees %d configurations", who.Principal.ID, n)
		}
		s.Close()
	}
}

// The creator gets back the URL and the token that it set, also if it is an administrator.
// Other administrators get neither.
func TestSecretsAreTheCreators(t *testing.T) {
	d := newDesk(t, push.Options{})
	task := d.give()
	c := push.Config{Task: task.ID, ID: "mine", URL: "https://hooks.example:8443/secret-path?key=secret-key#secret", Token: "secret-token", Scheme: "Bearer", Credentials: "secret-credentials", Form: "f"}
	d.set(c)
	administers := alice
	administers.Principal.Roles = []string{kg.RoleAdmin}
	forAlice := admin
	forAlice.Actor, forAlice.Principal.ActFor = alice.Principal.ID, []kg.AgentID{alice.Principal.ID}
	shown := push.Config{Task: task.ID, ID: "mine", URL: "https://hooks.example:8443", Scheme: "Bearer", Form: "f"}
	for _, row := range []struct {
		name string
		who  caller.Caller
		want push.Config
	}{{"the creator", alice, c}, {"the creator as administrator", administers, c}, {"for the creator", forAlice, c}, {"another administrator", admin, shown}} {
		got, err := d.push.Get(t.Context(), row.who, task.ID, "mine")
		if err != nil || *got != row.want {
			t.Errorf("%s gets %+v, %v", row.name, got, err)
		}
		list, err := d.push.List(t.Context(), row.who, task.ID)
		if err != nil || len(list) != 1 || list[0] != row.want {
			t.Errorf("%s lists %+v, %v", row.name, list, err)
		}
	}
}

// No statement has an address or a secret of a hook in the clear.
func TestSealed(t *testing.T) {
	d := newDesk(t, push.Options{})
	task := d.give()
	want := push.Config{Task: task.ID, ID: "mine", URL: "https://secret.example/secret", Token: "secret-token", Scheme: "secret-scheme", Credentials: "secret-credentials", Form: "f"}
	d.set(want)
	s, err := d.store.View(t.Context(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for st, err := range s.Match(kg.Pattern{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(fmt.Sprint(st.Quad), "secret") {
			t.Errorf("%v", st.Quad)
		}
	}
	if got, err := d.push.Get(t.Context(), alice, task.ID, "mine"); err != nil || *got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBounds(t *testing.T) {
	d := newDesk(t, push.Options{Options: delivery.Options{AllowPrivate: true}})
	task := d.give()
	base := "http://127.0.0.1:1/"
	for _, row := range []struct {
		name string
		c    push.Config
		want kg.Code
	}{
		{"an id at the bound", push.Config{ID: strings.Repeat("x", push.MaxIDBytes), URL: base}, ""},
		{"an id past it", push.Config{ID: strings.Repeat("x", push.MaxIDBytes+1), URL: base}, kg.CodeLimitExceeded},
		{"an address at the bound", push.Config{URL: base + strings.Repeat("x", delivery.MaxURLBytes-len(base))}, ""},
		{"an address past it", push.Config{URL: base + strings.Repeat("x", delivery.MaxURLBytes-len(base)+1)}, kg.CodeLimitExceeded},
		{"a token at the bound", push.Config{URL: base, Token: strings.Repeat("x", delivery.MaxTokenBytes)}, ""},
		{"a token past it", push.Config{URL: base, Token: strings.Repeat("x", delivery.MaxTokenBytes+1)}, kg.CodeLimitExceeded},
		{"credentials at the bound", push.Config{URL: base, Scheme: strings.Repeat("x", delivery.MaxSchemeBytes), Credentials: strings.Repeat("x", delivery.MaxCredentialsBytes)}, ""},
		{"credentials past it", push.Config{URL: base, Scheme: "x", Credentials: strings.Repeat("x", delivery.MaxCredentialsBytes+1)}, kg.CodeLimitExceeded},
		{"a scheme past it", push.Config{URL: base, Scheme: strings.Repeat("x", delivery.MaxSchemeBytes+1)}, kg.CodeLimitExceeded},
		{"credentials without a scheme", push.Config{URL: base, Credentials: "x"}, kg.CodeInvalid},
		{"a header in the token", push.Config{URL: base, Token: "x\r\nHost: y"}, kg.CodeInvalid},
		{"no address", push.Config{}, kg.CodeInvalid},
		{"another scheme", push.Config{URL: "file:///etc/passwd"}, kg.CodeInvalid},
		{"no host", push.Config{URL: "http:///x"}, kg.CodeInvalid},
		{"a password in the address", push.Config{URL: "http://u:p@127.0.0.1/"}, kg.CodeInvalid},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.c.Task = task.ID
			_, err := d.push.Set(t.Context(), alice, row.c)
			code(t, err, row.want)
			if err == nil {
				code(t, d.push.Delete(t.Context(), alice, task.ID, row.c.ID), "")
			}
		})
	}
}

// awaitActive waits until so many hooks run.
func (d *desk) awaitActive(want int) {
	d.t.Helper()
	for end := time.Now().Add(patience); d.push.Active() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("%d hooks are active, want %d", d.push.Active(), want)
		}
	}
}

// The hooks of a creator are at most half of those that the others leave. Replacing one and
// configurations of ended tasks are no further ones. What ended is free for others, and what
// a restart finds goes on, also past the share.
func TestShareOfHooks(t *testing.T) {
	d := newDesk(t, push.Options{Options: delivery.Options{AllowPrivate: true}, MaxActive: 8, FlushEvery: time.Millisecond})
	w := newWebhook(t, nil)
	fill := func(by caller.Caller, task *tasks.Task, want int) {
		t.Helper()
		before := d.push.Active()
		for i := range want {
			_, err := d.push.Set(t.Context(), by, push.Config{Task: task.ID, ID: fmt.Sprint(i), URL: w.URL})
			code(t, err, "")
			d.awaitActive(before + i + 1)
		}
		_, err := d.push.Set(t.Context(), by, push.Config{Task: task.ID, ID: "more", URL: w.URL})
		code(t, err, kg.CodeOverloaded)
		if e := kg.AsError(err); e.Hint == "" || !strings.Contains(e.Message, "share of the 8") {
			t.Errorf("%+v", e)
		}
	}
	ended := d.give()
	d.report(ended, tasks.Completed)
	task, other := d.give(), d.giveAs(carol)
	fill(alice, task, 4)
	fill(carol, other, 2)
	write, err := d.push.PrepareConfig(push.Config{URL: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.tasks.Send(t.Context(), alice, tasks.SendRequest{To: bob.Principal.ID, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}, WriteAlso: write})
	code(t, err, kg.CodeOverloaded)
	d.set(push.Config{Task: task.ID, ID: "0", URL: w.URL + "/replaced"})
	d.set(push.Config{Task: ended.ID, URL: w.URL})
	d.awaitActive(6)
	d.close()
	d.open(push.Options{Options: delivery.Options{AllowPrivate: true}, MaxActive: 2, FlushEvery: time.Millisecond})
	if n := d.push.Active(); n != 6 {
		t.Errorf("%d hooks after a restart", n)
	}
	_, err = d.push.Set(t.Context(), alice, push.Config{Task: task.ID, ID: "more", URL: w.URL})
	code(t, err, kg.CodeOverloaded)
	d.report(task, tasks.Completed)
	w.expect(t, "COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED")
	d.awaitActive(2)
	if err := d.tasks.Delete(t.Context(), carol, other.ID); err != nil {
		t.Fatal(err)
	}
	d.awaitActive(0)
	d.set(push.Config{Task: d.give().ID, URL: w.URL})
}

func TestConfigsOfATask(t *testing.T) {
	d := newDesk(t, open())
	task := d.give()
	for i := range push.MaxConfigs {
		d.set(push.Config{Task: task.ID, ID: fmt.Sprint(i), URL: "http://127.0.0.1:1/"})
	}
	_, err := d.push.Set(t.Context(), alice, push.Config{Task: task.ID, ID: "more", URL: "http://127.0.0.1:1/"})
	code(t, err, kg.CodeLimitExceeded)
	d.set(push.Config{Task: task.ID, ID: "3", URL: "http://127.0.0.1:2/"})
	list, err := d.push.List(t.Context(), alice, task.ID)
	if err != nil || len(list) != push.MaxConfigs || list[3].URL != "http://127.0.0.1:2/" {
		t.Errorf("%v, %v", list, err)
	}
}

// The configurations of a task are gone as soon as it is deleted: active ones, ended ones
// that no hook is left of, and those that a restart does not load. Those of other tasks stay.
func TestDeletedWithTheTask(t *testing.T) {
	d, w := newDesk(t, push.Options{Options: delivery.Options{AllowPrivate: true}, FlushEvery: time.Millisecond}), newWebhook(t, nil)
	give := func(ended bool) *tasks.Task {
		t.Helper()
		task := d.give(push.Config{URL: w.URL})
		d.set(push.Config{Task: task.ID, ID: "other", URL: w.URL})
		if ended {
			d.report(task, tasks.Completed)
			w.expect(t, "COMPLETED", "COMPLETED")
		}
		return task
	}
	give(false)
	for _, row := range []struct {
		name           string
		ended, restart bool
	}{{"active", false, false}, {"ended", true, false}, {"ended before a restart", true, true}} {
		task := give(row.ended)
		if row.ended {
			d.awaitOpen(2)
		}
		if row.restart {
			d.close()
			d.open(open())
		}
		if err := d.tasks.Delete(t.Context(), alice, task.ID); err != nil {
			t.Fatal(err)
		}
		if n := d.countOf("pushKey"); n != 2 {
			t.Fatalf("%s: %d configurations are left, want those of the other task", row.name, n)
		}
		if n := d.countOf("pushURL"); n != 2 {
			t.Fatalf("%s: %d sealed URLs are left, want those of the other task", row.name, n)
		}
	}
}

// countOf is how many configurations have a property.
func (d *desk) countOf(property string) (n int) {
	s, err := d.store.View(context.Background(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	for range s.Match(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + property)}) {
		n++
	}
	return n
}

// awaitOpen waits until of so many configurations something may be told.
func (d *desk) awaitOpen(want int) {
	d.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		n := d.countOf("pushSet")
		if n == want {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("%d configurations are open, want %d", n, want)
		}
	}
}

// markAsOlder leaves configurations that have ended in the state of older builds.
func (d *desk) markAsOlder() {
	d.t.Helper()
	_, err := d.store.Update(d.t.Context(), kg.Meta{Principal: kg.SystemPrincipal()}, func(tx *kg.Tx) error {
		for st, err := range tx.MatchOwn(kg.Pattern{Predicate: kg.IRI(kg.OwnVocabulary + "pushDone")}) {
			if err != nil {
				return err
			}
			set := kg.Quad{Subject: st.Subject, Predicate: kg.IRI(kg.OwnVocabulary + "pushSet"), Object: kg.String("before"), Graph: st.Graph}
			if err := tx.ApplyOwn(kg.Patch{Op: kg.Add, Quad: set}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// Where more than MaxPending commits wait for a hook, it is told the task as it is.
func TestMaxPending(t *testing.T) {
	slowtest.Long(t)
	release := make(chan struct{})
	d := newDesk(t, open())
	w := newWebhook(t, func(int, *http.Request) int { <-release; return 200 })
	task := d.give(push.Config{URL: w.URL})
	for i := range push.MaxPending + 1 {
		d.report(task, []tasks.State{tasks.Working, tasks.InputRequired}[i%2])
	}
	d.wait("too many commits wait")
	d.report(task, tasks.Working, "a")
	close(release)
	w.expect(t, "WORKING", "WORKING with 1") // the first was on its way
	d.report(task, tasks.Completed)
	w.expect(t, "COMPLETED")
}

// Of the hooks of a creator, half of MaxConcurrent are called at a time, and the next one
// when a call is over. The hook of another creator does not wait for them.
func TestMaxConcurrent(t *testing.T) {
	const most, hooks = 2, 6
	d := newDesk(t, push.Options{Options: delivery.Options{AllowPrivate: true, MaxConcurrent: 2 * most, Timeout: time.Hour}})
	came, release := make(chan int32, hooks), make(chan struct{})
	var now atomic.Int32
	w := newWebhook(t, func(int, *http.Request) int {
		came <- now.Add(1)
		<-release
		now.Add(-1)
		return 200
	})
	t.Cleanup(func() { close(release) }) // before the server is closed, which waits for it
	expect := func() {
		t.Helper()
		select {
		case n := <-came:
			if n > most {
				t.Errorf("%d calls at a time", n)
			}
		case <-time.After(patience):
			t.Fatal("no call came")
		}
	}
	for range hooks {
		d.report(d.give(push.Config{URL: w.URL}), tasks.Completed)
	}
	for range most {
		expect()
	}
	other := d.give()
	for range 100 { // time for the others to be called
		d.report(other, tasks.Working)
	}
	if n := len(came); n > 0 {
		t.Errorf("%d calls more came while %d were under way", n, most)
	}
	quick := newWebhook(t, nil)
	for range hooks {
		d.report(d.giveAs(carol, push.Config{URL: quick.URL}), tasks.Completed)
		quick.expect(t, "COMPLETED")
	}
	for range hooks - most {
		release <- struct{}{}
		expect()
	}
}

// A start reads the configurations of which something may be told, and no others.
func TestStartReadsOpenConfigs(t *testing.T) {
	slowtest.Long(t)
	d, w := newDesk(t, push.Options{Options: delivery.Options{AllowPrivate: true}, FlushEvery: time.Millisecond}), newWebhook(t, nil)
	restart := func() (read uint64) {
		t.Helper()
		d.close()
		d.open(open())
		return d.store.Stats().KeysRead
	}
	goesOn := d.give(push.Config{URL: w.URL})
	few := restart()
	const ended = 30
	for range ended {
		task := d.give(push.Config{URL: w.URL})
		d.report(task, tasks.Completed)
		w.expect(t, "COMPLETED")
		d.set(push.Config{Task: task.ID, ID: "late", URL: w.URL}) // of a task that has ended
	}
	d.awaitOpen(1)
	many := restart()
	if many > few+ended/2 {
		t.Errorf("a start reads %d keys with %d more ended configurations, and %d without", many, 2*ended, few)
	}
	d.report(goesOn, tasks.Completed)
	w.expect(t, "COMPLETED")
	d.awaitOpen(0)
}

// Configurations that an older build ended are ended by the first start, and read by no
// other. One that is told of goes on.
func TestStartEndsOlderConfigs(t *testing.T) {
	slowtest.Long(t)
	d, w := newDesk(t, push.Options{Options: delivery.Options{AllowPrivate: true}, FlushEvery: time.Millisecond}), newWebhook(t, nil)
	goesOn := d.give(push.Config{URL: w.URL})
	for range 3 {
		d.report(d.give(push.Config{URL: w.URL}), tasks.Completed)
		w.expect(t, "COMPLETED")
	}
	d.awaitOpen(1)
	d.push.Close()
	d.markAsOlder()
	if n := d.countOf("pushSet"); n != 4 {
		t.Fatalf("%d configurations are open", n)
	}
	d.push = push.New(open())
	d.close()
	for range 2 {
		d.open(open())
		if n := d.countOf("pushSet"); n != 1 {
			t.Errorf("%d configurations are open behind a start", n)
		}
		head := d.store.Head()
		d.close()
		d.open(open())
		if got := d.store.Head(); got != head {
			t.Errorf("the next start wrote: revision %d behind %d", got.Revision, head.Revision)
		}
		d.close()
	}
	d.open(open())
	d.report(goesOn, tasks.Completed)
	w.expect(t, "COMPLETED")
	d.awaitOpen(0)
}
