package forward_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/delivery"
	"koine/internal/delivery/forward"
	"koine/internal/tasks"
	"koine/kg"
)

// completed is the result of a task that has ended, of n bytes.
func completed(n int) string {
	body := `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}}`
	return body + strings.Repeat(" ", n-len(body))
}

// Answers, events and their number are bounded.
func TestBoundsOfAnswers(t *testing.T) {
	event := func(body string) string { return "data: " + body + "\n\n" }
	status := `{"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"%s"}}}}`
	working := event(fmt.Sprintf(status, "TASK_STATE_WORKING"))
	last := event(fmt.Sprintf(status, "TASK_STATE_COMPLETED"))
	for _, row := range []struct {
		name    string
		unary   bool
		options forward.Options
		at      string
		past    string
	}{
		{"bytes of an answer", true, forward.Options{MaxAnswerBytes: 200}, completed(200), completed(201)},
		{"bytes of an event", false, forward.Options{MaxEventBytes: 200}, event(completed(200 - 8)), event(completed(200 - 7))},
		{"events", false, forward.Options{MaxEvents: 3}, working + working + last, working + working + working + last},
	} {
		for _, past := range []bool{false, true} {
			row.options.AllowPrivate = true
			f, s := newOffice(t, row.options), newServer(t)
			body, kind := row.at, "text/event-stream"
			if past {
				body = row.past
			}
			if row.unary {
				kind = "application/json"
			}
			s.setFront(answering(200, kind, body))
			f.set(s.URL+"/rpc", rpc1, row.unary)
			id, want := f.send(bob, "x"), tasks.Completed
			if past {
				want = tasks.Failed
			}
			got := f.becomes(id, want)
			if past && (got.Failure == nil || got.Failure.Code != tasks.FailureAnswer || got.Failure.Message != "the answer of the agent exceeds a limit of this server") {
				t.Errorf("past the bound of %s: %+v", row.name, got.Failure)
			}
			f.empty()
		}
	}
}

// What is no answer of A2A fails the task, as does an error, without the texts of the agent.
func TestBadAnswers(t *testing.T) {
	f, s := newOffice(t, local()), newServer(t)
	for body, want := range map[string][2]string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"secret-text"}}`: {tasks.FailureRefused, "the agent refused the message: CONTENT_TYPE_NOT_SUPPORTED"},
		`{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"secret-text"}}`:      {tasks.FailureRefused, "the agent refused the message: error 7"},
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"secret-text"}}`: {tasks.FailureRefused, "the agent does not know its task any more"},
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"secret-text"}}`: {tasks.FailureRefused, "the agent does not support the operation"},
		`<html>secret-text</html>`:             {tasks.FailureAnswer, ""},
		`{}`:                                   {tasks.FailureAnswer, ""},
		`{"jsonrpc":"2.0","id":1,"result":{}}`: {tasks.FailureAnswer, ""},
		`{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","status":{"state":"secret-text"}}}}`:                            {tasks.FailureAnswer, ""},
		`{"jsonrpc":"2.0","id":1,"result":{"task":{"status":{"state":"TASK_STATE_WORKING"}}}}`:                              {tasks.FailureAnswer, ""},
		`{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t"}}}`:                                                             {tasks.FailureAnswer, ""},
		`{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m","parts":[{"raw":"secret-text no base64"}]}}}`:         {tasks.FailureAnswer, ""},
		`{"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":{"taskId":"t","artifact":{"parts":[{"text":"secret-text"}]}}}}`: {tasks.FailureAnswer, ""},
	} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			answer := body
			if kind == "text/event-stream" && strings.Contains(body, "-32004") {
				continue // it is sent again without a stream
			}
			if kind == "text/event-stream" {
				answer = "data: " + body + "\n\n"
			}
			s.setFront(answering(200, kind, answer))
			f.set(s.URL+"/rpc", rpc1, kind == "application/json")
			failed := f.becomes(f.send(bob, "x"), tasks.Failed)
			if want[1] == "" {
				want[1] = "the answer of the agent is not one of A2A"
			}
			if failed.Failure == nil || failed.Failure.Code != want[0] || failed.Failure.Message != want[1] {
				t.Errorf("%s: %+v", body, failed.Failure)
			}
			f.empty()
			if text := f.log.String() + f.text(); strings.Contains(text, "secret-text") {
				t.Errorf("%s: a text of the agent is told: %s", body, text)
			}
		}
	}
}

// One slow agent has its bound of calls, and does not use up those of others.
func TestSlots(t *testing.T) {
	const each, all = 2, 3
	f, slow, quick := newOffice(t, forward.Options{AllowPrivate: true, MaxCallsPerAgent: each, MaxCalls: all}), newServer(t), newServer(t)
	var mu sync.Mutex
	under, most, hold := 0, 0, make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	slow.setFront(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		under++
		most = max(most, under)
		mu.Unlock()
		<-hold
		mu.Lock()
		under--
		mu.Unlock()
		return false
	})
	f.set(slow.URL+"/rpc", rpc1, true)
	if _, err := f.forward.Set(t.Context(), carol, carol.Principal.ID, forward.Setting{Target: delivery.Target{URL: quick.URL + "/rpc"}, Dialect: rpc1}); err != nil {
		t.Fatal(err)
	}
	var waiting []tasks.TaskID
	for range 6 {
		waiting = append(waiting, f.send(bob, "count"))
	}
	f.eventually("the bound is reached", func() bool { return slow.called("SendMessage") == each })
	for range 6 {
		f.becomes(f.send(carol, "count"), tasks.Completed)
	}
	state, err := f.forward.State(t.Context(), bob, bob.Principal.ID)
	if err != nil || state.Waiting != 6 || state.Active != each {
		t.Errorf("state %+v, %v", state, err)
	}
	release()
	for _, id := range waiting {
		f.becomes(id, tasks.Completed)
	}
	if most != each {
		t.Errorf("%d calls at a time", most)
	}
}

// All agents together have a bound too, of which one has at most half.
func TestSlotsOfAll(t *testing.T) {
	f, s := newOffice(t, forward.Options{AllowPrivate: true, MaxCallsPerAgent: 5, MaxCalls: 6}), newServer(t)
	var mu sync.Mutex
	under, most, hold := 0, 0, make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	s.setFront(func(http.ResponseWriter, *http.Request) bool {
		mu.Lock()
		under++
		most = max(most, under)
		mu.Unlock()
		<-hold
		mu.Lock()
		under--
		mu.Unlock()
		return false
	})
	f.set(s.URL+"/rpc", rpc1, true)
	var waiting []tasks.TaskID
	for range 6 {
		waiting = append(waiting, f.send(bob, "count"))
	}
	f.eventually("the bound is reached", func() bool { return s.called("SendMessage") == 3 })
	time.Sleep(10 * time.Millisecond) // a fourth call would come
	release()
	for _, id := range waiting {
		f.becomes(id, tasks.Completed)
	}
	if most != 3 {
		t.Errorf("%d calls at a time", most)
	}
}

// Artifacts of any shape are divided by the bounds of a chunk.
func TestLargeArtifacts(t *testing.T) {
	part := `{"text":"` + strings.Repeat("x", 100<<10) + `"}`
	for _, parts := range []string{strings.Repeat(`{"text":"x"},`, tasks.MaxParts+2) + `{"text":"x"}`, part + "," + part + "," + part + "," + part} {
		f, s := newOffice(t, local()), newServer(t)
		s.setFront(answering(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[`+parts+`]}]}}}`))
		f.set(s.URL+"/rpc", rpc1, true)
		done := f.becomes(f.send(bob, "x"), tasks.Completed)
		if got, want := len(done.Artifacts[0].Parts), strings.Count(parts, "text"); got != want || !done.Artifacts[0].Complete {
			t.Errorf("%d of %d parts, complete %t", got, want, done.Artifacts[0].Complete)
		}
	}
}

// An artifact that is too large to be compared with the one of an answer is replaced by it.
func TestArtifactsTooLargeToCompare(t *testing.T) {
	f, s := newOffice(t, local()), newServer(t)
	answer := func(state, parts string) {
		s.setFront(answering(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"`+state+`"},"artifacts":[{"artifactId":"a","parts":[`+parts+`]}]}}}`))
	}
	f.set(s.URL+"/rpc", rpc1, true)
	answer("TASK_STATE_INPUT_REQUIRED", `{"text":"one"}`)
	id := f.send(bob, "x")
	f.becomes(id, tasks.InputRequired)
	reopen := func(most int) {
		f.close()
		f.most = most
		f.open(local())
	}
	reopen(1)
	answer("TASK_STATE_COMPLETED", `{"text":"one"},{"text":"two"}`)
	f.send(bob, "y", id)
	f.eventually("the task has ended", func() bool {
		now, err := f.tasks.Get(t.Context(), alice, id, tasks.ReadOptions{})
		return err == nil && now.Status.State.Ended()
	})
	reopen(0)
	if done := f.becomes(id, tasks.Completed); len(done.Artifacts) != 1 || textOf(done.Artifacts[0].Parts) != "one|two" {
		t.Errorf("artifacts %+v", done.Artifacts)
	}
}

// Only the agent, those who may act for it and administrators see and set an upstream; others
// learn nothing, not even that the agent is there.
func TestOutsiders(t *testing.T) {
	f, s := newOffice(t, forward.Options{AllowPrivate: true, MaxUpstreams: 1}), newServer(t)
	setting := forward.Setting{Target: delivery.Target{URL: s.URL + "/rpc", Scheme: "Bearer", Credentials: "secret-key"}, Dialect: rpc1}
	absent := kg.AgentID("agent://nobody")
	if _, err := f.forward.Set(t.Context(), admin, bob.Principal.ID, setting); err != nil {
		t.Fatal(err)
	}
	open := admin
	open.Principal.Method = kg.MethodOpen
	acting := admin
	acting.Actor = carol.Principal.ID
	acting.Principal.ActFor = []kg.AgentID{carol.Principal.ID}
	for name, by := range map[string]caller.Caller{"carol": carol, "alice": alice, "anybody in open mode": open, "an administrator who acts for carol": acting} {
		for _, bad := range []bool{false, true} {
			var texts []string
			for _, agent := range []kg.AgentID{bob.Principal.ID, absent} {
				wish := setting
				if bad {
					wish.URL = "no url"
				}
				_, one := f.forward.Set(t.Context(), by, agent, wish)
				_, two := f.forward.State(t.Context(), by, agent)
				three := f.forward.Delete(t.Context(), by, agent)
				for _, err := range []error{one, two, three} {
					code(t, err, kg.CodeAgentNotFound)
				}
				texts = append(texts, fmt.Sprintf("%+v %+v %+v", kg.AsError(one), kg.AsError(two), kg.AsError(three)))
			}
			if texts[0] != texts[1] {
				t.Errorf("%s:\n%s\n%s", name, texts[0], texts[1])
			}
		}
	}
	for _, by := range []caller.Caller{bob, admin} {
		state, err := f.forward.State(t.Context(), by, bob.Principal.ID)
		if err != nil || !state.Credentials || state.Scheme != "Bearer" || state.Origin != s.URL || strings.Contains(fmt.Sprintf("%+v", state), "secret") {
			t.Errorf("state %+v, %v", state, err)
		}
	}
	_, err := f.forward.Set(t.Context(), admin, absent, setting)
	code(t, err, kg.CodeAgentNotFound)
	_, err = f.forward.Set(t.Context(), carol, carol.Principal.ID, setting)
	code(t, err, kg.CodeOverloaded)
	if _, err := f.forward.Set(t.Context(), bob, bob.Principal.ID, setting); err != nil {
		t.Errorf("in place of an earlier one: %v", err)
	}
	bad := setting
	for _, d := range []forward.Dialect{{Binding: "GRPC", Version: forward.V1}, {Binding: forward.JSONRPC, Version: "2.0"}, {Binding: forward.HTTPJSON, Version: forward.V03}, {}} {
		bad.Dialect = d
		_, err = f.forward.Set(t.Context(), bob, bob.Principal.ID, bad)
		code(t, err, kg.CodeInvalid)
	}
	if err := f.forward.Delete(t.Context(), bob, bob.Principal.ID); err != nil {
		t.Fatal(err)
	}
	code(t, f.forward.Delete(t.Context(), bob, bob.Principal.ID), kg.CodeNotFound)
	_, err = f.forward.State(t.Context(), bob, bob.Principal.ID)
	code(t, err, kg.CodeNotFound)
	if _, err := f.forward.Set(t.Context(), carol, carol.Principal.ID, setting); err != nil {
		t.Error(err)
	}
}

// A removed upstream is not called, and the letters stay; nor is that of an agent that is
// suspended or deregistered.
func TestRemoved(t *testing.T) {
	f, s := newOffice(t, local()), newServer(t)
	f.set(s.URL+"/rpc", rpc1, false)
	id := f.send(bob, "wait")
	f.becomes(id, tasks.Working)
	if err := f.forward.Delete(t.Context(), bob, bob.Principal.ID); err != nil {
		t.Fatal(err)
	}
	calls := len(s.heads)
	f.send(bob, "count")
	if list, _, err := f.tasks.Notices(t.Context(), bob.Principal.ID); err != nil || len(list) != 2 || len(s.heads) != calls {
		t.Errorf("%d letters, %d calls, %v", len(list), len(s.heads)-calls, err)
	}
	f.shut.Store(true)
	f.set(s.URL+"/http", http1, false) // the same server by the other binding
	f.eventually("the letters are seen", func() bool {
		state, err := f.forward.State(t.Context(), bob, bob.Principal.ID)
		return err == nil && state.Waiting == 2 && state.Active == 0
	})
	if len(s.heads) != calls {
		t.Error("a suspended agent was called")
	}
	f.shut.Store(false)
	close(s.agent.release)
	if done := f.becomes(id, tasks.Completed); textOf(done.Artifacts[0].Parts) != "a|b" || len(s.agent.messages()) > 2 {
		t.Errorf("done with %+v", done.Artifacts)
	}
	f.empty()
	if err := f.agents.Deregister(t.Context(), bob, bob.Principal.ID); err != nil {
		t.Fatal(err)
	}
	calls = len(s.heads)
	f.send(bob, "count")
	if _, err := f.agents.Register(t.Context(), bob, agents.Record{ID: bob.Principal.ID}); err != nil {
		t.Fatal(err)
	}
	_, err := f.forward.State(t.Context(), bob, bob.Principal.ID)
	code(t, err, kg.CodeNotFound)
	if len(s.heads) != calls {
		t.Error("it was called after it deregistered")
	}
}

// A cancellation reaches the upstream, in whatever state the letter is.
func TestCancel(t *testing.T) {
	for _, door := range some() {
		t.Run(door.name, func(t *testing.T) {
			f, s := newOffice(t, local()), newServer(t)
			f.set(s.URL+door.path, door.dialect, door.unary)
			id := f.send(bob, "wait")
			f.becomes(id, tasks.Working)
			if _, err := f.tasks.Cancel(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			f.empty()
			if n := s.called("CancelTask"); n != 1 {
				t.Errorf("%d calls", n)
			}
			select {
			case <-s.agent.ended:
			case <-time.After(patience):
				t.Error("the work goes on")
			}
			f.eventually("nothing is left", func() bool { return !strings.Contains(f.text(), "upstreamTask") })

			// Before the upstream has named its task.
			hold := make(chan struct{})
			s.setFront(func(http.ResponseWriter, *http.Request) bool { <-hold; return false })
			n := s.called(door.send)
			id = f.send(bob, "wait")
			f.eventually("it is sent", func() bool { return s.called(door.send) > n })
			if _, err := f.tasks.Cancel(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			close(hold)
			s.setFront(nil)
			f.empty()
			if n := s.called("CancelTask"); n != 2 {
				t.Errorf("%d calls", n)
			}
			// While the agent is away.
			s.setFront(cut)
			id = f.send(bob, "count")
			f.eventually("it is away", func() bool { return statusText(f.get(id)) != "" })
			if _, err := f.tasks.Cancel(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			f.empty()
		})
	}
}
