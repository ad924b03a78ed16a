package forward_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"koine/internal/backoff"
	"koine/internal/caller"
	"koine/internal/delivery/forward"
	"koine/internal/tasks"
)

// door is a dialect in which upstreams are called, with or without streams.
type door struct {
	name, path string
	dialect    forward.Dialect
	unary      bool
	send       string
}

var (
	rpc1  = forward.Dialect{Binding: forward.JSONRPC, Version: forward.V1}
	http1 = forward.Dialect{Binding: forward.HTTPJSON, Version: forward.V1}
	rpc03 = forward.Dialect{Binding: forward.JSONRPC, Version: forward.V03}

	streamed = door{"JSON-RPC, streaming", "/rpc", rpc1, false, "SendStreamingMessage"}
	polled   = door{"HTTP+JSON", "/http", http1, true, "SendMessage"}
	doors    = []door{
		streamed,
		{"JSON-RPC", "/rpc", rpc1, true, "SendMessage"},
		{"HTTP+JSON, streaming", "/http", http1, false, "SendStreamingMessage"},
		polled,
	}
	// doors03 are those of 0.3, which koine's own servers have.
	doors03 = []door{
		{"JSON-RPC 0.3, streaming", "/rpc", rpc03, false, "message/stream"},
		{"JSON-RPC 0.3", "/rpc", rpc03, true, "message/send"},
	}
)

// some returns the doors, or one with streams and one without with -short.
func some() []door {
	if testing.Short() {
		return []door{streamed, polled}
	}
	return doors
}

// An agent may be a server of A2A: what it answers becomes the task's.
func TestForwarding(t *testing.T) {
	for _, door := range doors {
		t.Run(door.name, func(t *testing.T) {
			f, s := newOffice(t, local()), newServer(t)
			f.set(s.URL+door.path, door.dialect, door.unary)
			done := f.becomes(f.send(bob, "count"), tasks.Completed)
			if statusText(done) != "did count" || done.Status.Message.Author != bob.Principal.ID {
				t.Errorf("status %q by %s", statusText(done), done.Status.Message.Author)
			}
			if len(done.Artifacts) != 1 || textOf(done.Artifacts[0].Parts) != "one|two" || done.Artifacts[0].Name != "numbers" {
				t.Errorf("artifacts %+v", done.Artifacts)
			}
			f.empty()
			if head := s.lastHead(); head.Get("Authorization") != "Bearer secret-key" || head.Get("A2A-Version") != "1.0" || head.Get("Koine-Hops") != "1" {
				t.Errorf("called with %v", head)
			}
			if s.called(door.send) != 1 {
				t.Errorf("%d calls of %s", s.called(door.send), door.send)
			}
			if ids := s.agent.messages(); len(ids) != 1 || ids[0] != tasks.LetterID(done.ID, 1) {
				t.Errorf("messages %v", ids)
			}
			if direct := f.becomes(f.send(bob, "direct"), tasks.Completed); statusText(direct) != "at once" {
				t.Errorf("a direct answer became %q", statusText(direct))
			}
			if failed := f.becomes(f.send(bob, "fail"), tasks.Failed); statusText(failed) != "it went wrong" || failed.Failure != nil {
				t.Errorf("a failure became %q, %v", statusText(failed), failed.Failure)
			}
			// A message more continues the task of the upstream.
			id := f.send(bob, "ask")
			if asked := f.becomes(id, tasks.InputRequired); statusText(asked) != "which?" {
				t.Errorf("asked %q", statusText(asked))
			}
			f.send(bob, "that", id)
			if told := f.becomes(id, tasks.Completed); !strings.HasPrefix(statusText(told), "you said that in ") {
				t.Errorf("told %q", statusText(told))
			}
			f.empty()
			f.eventually("nothing is left of ended tasks", func() bool { return !strings.Contains(f.text(), "upstreamTask") })
			if text := f.text() + f.log.String(); strings.Contains(text, "secret-key") || strings.Contains(text, s.URL) {
				t.Errorf("a secret is stored or logged: %s", text)
			}
		})
	}
}

// The tasks of a context share one at the upstream, and those of another creator do not,
// whatever its name.
func TestContexts(t *testing.T) {
	f, s := newOffice(t, local()), newServer(t)
	f.set(s.URL+"/rpc", rpc1, false)
	at := func(by caller.Caller, context string) string {
		sent, err := f.tasks.Send(t.Context(), by, tasks.SendRequest{To: bob.Principal.ID, Context: context, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("ask")}}})
		if err != nil {
			t.Fatal(err)
		}
		id := sent.Task.ID
		f.eventually("it asks", func() bool {
			now, err := f.tasks.Get(t.Context(), by, id, tasks.ReadAll)
			return err == nil && now.Status.State == tasks.InputRequired
		})
		if _, err := f.tasks.Send(t.Context(), by, tasks.SendRequest{Task: id, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("that")}}}); err != nil {
			t.Fatal(err)
		}
		var told string
		f.eventually("it is told", func() bool {
			now, err := f.tasks.Get(t.Context(), by, id, tasks.ReadAll)
			told = strings.TrimPrefix(statusText(now), "you said that in ")
			return err == nil && now.Status.State == tasks.Completed
		})
		return told
	}
	one, same, other, others := at(alice, "c"), at(alice, "c"), at(alice, "d"), at(carol, "c")
	if one != same || one == other || one == others || len(one) != 36 {
		t.Errorf("contexts %q, %q, of another context %q, of another creator %q", one, same, other, others)
	}
}

// A message that comes while the upstream works on the one before waits for it, and is not
// forwarded if the task has ended then.
func TestMessageInBetween(t *testing.T) {
	for _, door := range some() {
		f, s := newOffice(t, local()), newServer(t)
		f.set(s.URL+door.path, door.dialect, door.unary)
		id := f.send(bob, "wait")
		f.becomes(id, tasks.Working)
		f.send(bob, "more", id)
		close(s.agent.release)
		f.becomes(id, tasks.Completed)
		f.empty()
		if ids := s.agent.messages(); len(ids) != 1 {
			t.Errorf("%s: messages %v", door.name, ids)
		}
		f.eventually("nothing is left", func() bool { return !strings.Contains(f.text(), "upstreamTask") })
	}
}

// A task in which nothing happens is asked for ever less often, and what was reported is not
// reported again.
func TestPolls(t *testing.T) {
	o := local()
	o.Poll = backoff.Waits{Min: time.Millisecond, Max: time.Hour}
	f, s := newOffice(t, o), newServer(t)
	s.setFront(func(w http.ResponseWriter, r *http.Request) bool {
		task := `{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","message":{"role":"ROLE_AGENT","parts":[{"text":"so far"}]}}}`
		if s.called("GetTask") == 0 {
			task = `{"task":` + task + `}`
		}
		return answering(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":`+task+`}`)(w, r)
	})
	f.set(s.URL+"/rpc", rpc1, true)
	id := f.send(bob, "count")
	f.eventually("it is asked for", func() bool { return s.called("GetTask") >= 5 })
	time.Sleep(100 * time.Millisecond)
	if n := s.called("GetTask"); n > 14 { // the fifteenth comes after 8 seconds
		t.Errorf("%d calls", n)
	}
	if now := f.get(id); statusText(now) != "so far" || len(now.History) != 1 {
		t.Errorf("status %q behind %d messages", statusText(now), len(now.History))
	}
}

// While an agent is suspended, its upstream reports nothing either; what it has done comes
// afterwards.
func TestSuspended(t *testing.T) {
	for _, door := range some() {
		f, s := newOffice(t, local()), newServer(t)
		f.set(s.URL+door.path, door.dialect, door.unary)
		id := f.send(bob, "wait")
		f.eventually("the first part is there", func() bool { return len(f.get(id).Artifacts) == 1 })
		f.shut.Store(true)
		close(s.agent.release)
		f.eventually("the turn is over", func() bool {
			state, err := f.forward.State(t.Context(), bob, bob.Principal.ID)
			return err == nil && state.Active == 0 && state.Waiting == 1
		})
		if now := f.get(id); now.Status.State != tasks.Working || textOf(now.Artifacts[0].Parts) != "a" {
			t.Errorf("%s: %s with %q", door.name, now.Status.State, textOf(now.Artifacts[0].Parts))
		}
		f.shut.Store(false)
		if done := f.becomes(id, tasks.Completed); textOf(done.Artifacts[0].Parts) != "a|b" || len(s.agent.messages()) != 1 {
			t.Errorf("%s: done with %q", door.name, textOf(done.Artifacts[0].Parts))
		}
	}
}
