package forward_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/delivery"
	"koine/internal/delivery/forward"
	"koine/internal/slowtest"
	"koine/internal/tasks"
)

// cut ends the connection without an answer.
func cut(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// answering returns a front that gives one answer.
func answering(status int, contentType, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Location", "/http/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
}

// While an agent is away its tasks wait and say so; then they go on.
func TestAway(t *testing.T) {
	fronts := map[string]func(http.ResponseWriter, *http.Request) bool{
		"no connection": cut,
		"502":           answering(502, "text/html", "<html>"),
		"a redirect":    answering(307, "text/html", ""),
		"404":           answering(404, "text/plain", "404 page not found"),
		"401":           answering(401, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-31401,"message":"who are you?"}}`),
		"too busy":      answering(429, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-31105,"message":"later"}}`),
	}
	for _, door := range some() {
		f, s := newOffice(t, local()), newServer(t)
		f.set(s.URL+door.path+"?secret-address", door.dialect, door.unary)
		for name, front := range fronts {
			t.Run(name+" "+door.name, func(t *testing.T) {
				calls := s.called(door.send)
				s.setFront(front)
				id := f.send(bob, "count")
				var away *tasks.Task
				f.eventually("the status says so", func() bool {
					away = f.get(id)
					return strings.HasPrefix(statusText(away), "The agent cannot be reached. The message is sent again until 2")
				})
				if away.Status.State != tasks.Submitted {
					t.Errorf("the task is %s", away.Status.State)
				}
				var state *forward.State
				f.eventually("it is seen to fail", func() bool {
					var err error
					state, err = f.forward.State(t.Context(), bob, bob.Principal.ID)
					return err == nil && state.Failure != "" && s.called(door.send) > calls+2
				})
				if state.Waiting != 1 || state.FailingSince.IsZero() || state.Failure != "agent cannot be reached" && state.Failure != "agent gave no answer of A2A" {
					t.Errorf("state %+v", state)
				}
				s.setFront(nil)
				if done := f.becomes(id, tasks.Completed); statusText(done) != "did count" || len(done.History) != 2 {
					t.Errorf("done with %q and %d messages", statusText(done), len(done.History))
				}
				f.empty()
			})
		}
		if text := f.log.String(); strings.Contains(text, "secret-") || strings.Contains(text, s.URL) {
			t.Errorf("the log has a secret: %s", text)
		}
	}
}

// An agent that is away for too long fails its tasks, and a cancellation is dropped.
func TestAwayForTooLong(t *testing.T) {
	f, s := newOffice(t, forward.Options{AllowPrivate: true, MaxAway: 50 * time.Millisecond}), newServer(t)
	s.setFront(cut)
	f.set(s.URL+"/rpc", rpc1, false)
	id := f.send(bob, "count")
	failed := f.becomes(id, tasks.Failed)
	if failed.Failure == nil || failed.Failure.Code != tasks.FailureUnreachable || failed.Failure.Message != "the agent could not be reached for 50ms" {
		t.Errorf("failed with %+v", failed.Failure)
	}
	f.empty()
	s.setFront(nil)
	id = f.send(bob, "wait")
	f.becomes(id, tasks.Working)
	s.setFront(cut)
	if _, err := f.tasks.Cancel(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	f.empty()
}

// The bound counts across restarts.
func TestAwayAcrossRestarts(t *testing.T) {
	f, s := newOffice(t, local()), newServer(t)
	s.setFront(cut)
	f.set(s.URL+"/rpc", rpc1, false)
	id := f.send(bob, "count")
	f.eventually("it is away", func() bool { return statusText(f.get(id)) != "" })
	f.close()
	f.open(forward.Options{AllowPrivate: true, MaxAway: time.Nanosecond})
	f.becomes(id, tasks.Failed)
	if n := len(f.get(id).History); n != 2 {
		t.Errorf("%d messages: it was said again that the agent is away", n)
	}
}

var variable = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|20\d\d-[0-9T:.Z-]+`)

// A private address is refused like one at which nobody is.
func TestPrivateIsLikeAbsent(t *testing.T) {
	tell := func(allowed bool) string {
		f, s := newOffice(t, local()), newServer(t)
		f.set(s.URL+"/rpc", rpc1, false)
		if allowed {
			s.Close() // nobody is there
		}
		f.close()
		f.open(forward.Options{AllowPrivate: allowed, MaxAway: 50 * time.Millisecond})
		id := f.send(bob, "count")
		f.eventually("it is away", func() bool { return statusText(f.get(id)) != "" })
		state, err := f.forward.State(t.Context(), bob, bob.Principal.ID)
		if err != nil {
			t.Fatal(err)
		}
		failed := f.becomes(id, tasks.Failed)
		if n := len(s.agent.messages()); n != 0 {
			t.Errorf("it was called")
		}
		return variable.ReplaceAllString(fmt.Sprint(state.Failure, failed.Failure.Code, failed.Failure.Message, textOf(failed.History[1].Parts), len(failed.History), failed.Version), "…")
	}
	if private, absent := tell(false), tell(true); private != absent {
		t.Errorf("private: %s\nabsent:  %s", private, absent)
	}
	f := newOffice(t, forward.Options{})
	for _, url := range []string{"http://127.0.0.1:1/rpc", "http://localhost/rpc", "http://10.0.0.1/rpc"} {
		if _, err := f.forward.Set(t.Context(), bob, bob.Principal.ID, forward.Setting{Target: delivery.Target{URL: url}, Dialect: rpc1}); err == nil || strings.Contains(err.Error(), url) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A message that was accepted is not sent again, and one of which this is unknown has the
// same id.
func TestSentOnce(t *testing.T) {
	for _, door := range some() {
		t.Run(door.name, func(t *testing.T) {
			f, s := newOffice(t, local()), newServer(t)
			f.set(s.URL+door.path, door.dialect, door.unary)
			id := f.send(bob, "wait")
			f.eventually("the first part is there", func() bool { return len(f.get(id).Artifacts) == 1 })
			f.close()
			f.open(local())
			f.eventually("it is followed", func() bool { return s.called("GetTask") > 0 })
			close(s.agent.release)
			done := f.becomes(id, tasks.Completed)
			if len(done.Artifacts) != 1 || textOf(done.Artifacts[0].Parts) != "a|b" || statusText(done) != "done" {
				t.Errorf("done with %q: %+v", statusText(done), done.Artifacts)
			}
			if ids := s.agent.messages(); len(ids) != 1 {
				t.Errorf("messages %v", ids)
			}
			f.empty()

			var once sync.Once
			s.setFront(func(http.ResponseWriter, *http.Request) (aborted bool) {
				once.Do(func() { aborted = true })
				return aborted && cut(nil, nil)
			})
			id = f.send(bob, "count")
			f.becomes(id, tasks.Completed)
			if ids := s.agent.messages(); ids[len(ids)-1] != tasks.LetterID(id, 1) {
				t.Errorf("messages %v", ids)
			}
		})
	}
}

// A connection that breaks or goes silent is followed by another, without gap or duplicate.
func TestStreamBreaks(t *testing.T) {
	// Long enough for a first answer.
	wait := slowtest.Slack(time.Second)
	for name, o := range map[string]forward.Options{
		"cut": local(), "silent": {AllowPrivate: true, IdleTimeout: wait}, "long": {AllowPrivate: true, CallTimeout: wait},
	} {
		for _, door := range some() {
			if door.unary {
				continue
			}
			t.Run(name+" "+door.name, func(t *testing.T) {
				t.Parallel()
				f, s := newOffice(t, o), newServer(t)
				f.set(s.URL+door.path, door.dialect, false)
				id := f.send(bob, "wait")
				f.eventually("the first part is there", func() bool { return len(f.get(id).Artifacts) == 1 })
				if name == "cut" {
					s.CloseClientConnections()
				}
				f.eventually("it is subscribed to", func() bool { return s.called("SubscribeToTask") > 0 })
				close(s.agent.release)
				if done := f.becomes(id, tasks.Completed); textOf(done.Artifacts[0].Parts) != "a|b" || statusText(done) != "done" || len(done.History) != 1 {
					t.Errorf("done with %q in %d messages: %+v", statusText(done), len(done.History), done.Artifacts)
				}
				if n := s.called("SendStreamingMessage"); n != 1 {
					t.Errorf("sent %d times", n)
				}
			})
		}
	}
}

// An agent that does not stream is called again without, and then not asked any more.
func TestNoStreaming(t *testing.T) {
	f, s := newOffice(t, local()), newServer(t)
	s.setFront(func(w http.ResponseWriter, r *http.Request) bool {
		if s.called("SendStreamingMessage") > 0 && s.called("SendMessage")+s.called("GetTask") == 0 {
			return answering(200, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no"}}`)(w, r)
		}
		return false
	})
	f.set(s.URL+"/rpc", rpc1, false)
	for range 2 {
		f.becomes(f.send(bob, "count"), tasks.Completed)
	}
	if n := s.called("SendStreamingMessage"); n != 1 {
		t.Errorf("%d attempts at a stream", n)
	}
}

// What is left of a task that ended without its upstream is removed.
func TestSweep(t *testing.T) {
	o := local()
	o.SweepEvery = time.Millisecond
	f, s := newOffice(t, o), newServer(t)
	f.set(s.URL+"/rpc", rpc1, false)
	open, ended, deleted := f.send(bob, "wait"), f.send(bob, "wait"), f.send(bob, "wait")
	for _, id := range []tasks.TaskID{open, ended, deleted} {
		f.becomes(id, tasks.Working)
	}
	if err := f.forward.Delete(t.Context(), bob, bob.Principal.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.tasks.Report(t.Context(), bob, ended, tasks.Report{State: tasks.Completed}); err != nil {
		t.Fatal(err)
	}
	if err := f.tasks.Delete(t.Context(), alice, deleted); err != nil {
		t.Fatal(err)
	}
	f.eventually("one is left", func() bool { return strings.Count(f.text(), "vocab:upstreamTask") == 1 })
}

// An agent that accepts connections and says nothing is away after the bound of silence or
// of the call.
func TestHangs(t *testing.T) {
	for _, door := range some() {
		for name, o := range map[string]forward.Options{
			"silence": {AllowPrivate: true, IdleTimeout: 20 * time.Millisecond}, "call": {AllowPrivate: true, CallTimeout: 20 * time.Millisecond},
		} {
			if door.unary && name == "silence" {
				continue // of streams
			}
			f, s := newOffice(t, o), newServer(t)
			hold := make(chan struct{})
			t.Cleanup(func() { close(hold) })
			s.setFront(func(http.ResponseWriter, *http.Request) bool { <-hold; return true })
			f.set(s.URL+door.path, door.dialect, door.unary)
			id := f.send(bob, "count")
			f.eventually(name+" ends a call", func() bool { return statusText(f.get(id)) != "" && s.called(door.send) > 1 })
		}
	}
}

// The bound of connecting does not end streams.
func TestConnectTimeoutIsNotOfTheStream(t *testing.T) {
	wait := slowtest.Slack(200 * time.Millisecond)
	f, s := newOffice(t, forward.Options{AllowPrivate: true, ConnectTimeout: wait}), newServer(t)
	f.set(s.URL+"/rpc", rpc1, false)
	id := f.send(bob, "wait")
	f.becomes(id, tasks.Working)
	time.Sleep(2 * wait)
	close(s.agent.release)
	f.becomes(id, tasks.Completed)
	if n := s.called("SubscribeToTask") + s.called("GetTask"); n != 0 {
		t.Errorf("%d calls after the stream", n)
	}
}
