package tasks_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/tasks"
	"koine/kg"
)

// The open tasks of an agent are limited, over all creators; an ended or deleted task
// makes room. Messages to open tasks, and repeated messages, still arrive.
func TestTasksThatGoOn(t *testing.T) {
	b := open(t, tasks.Options{Limits: func(kg.AgentID) tasks.Limits { return tasks.Limits{Tasks: 3} }}, nil)
	full := func() {
		t.Helper()
		_, err := b.Send(t.Context(), as(eve), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("one more")}}})
		wantCode(t, "past the bound", err, kg.CodeOverloaded)
	}
	again := tasks.SendRequest{To: bot, Message: tasks.Message{ID: "m", Parts: []tasks.Part{tasks.TextPart("x")}}}
	list := []*tasks.Task{b.send(ann, again), b.send(ann, tasks.SendRequest{}), b.send(eve, tasks.SendRequest{})}
	full()
	if again := b.send(ann, again); again.ID != list[0].ID {
		t.Errorf("sent again it is %s, want %s", again.ID, list[0].ID)
	}
	b.send(ann, tasks.SendRequest{Task: list[0].ID})
	report := func(id tasks.TaskID, state tasks.State) {
		t.Helper()
		if _, err := b.Report(t.Context(), as(bot), id, tasks.Report{State: state}); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []tasks.State{tasks.Working, tasks.InputRequired} {
		report(list[0].ID, state)
		full()
	}
	for name, end := range map[string]func(tasks.TaskID) error{
		"completed": func(id tasks.TaskID) error { report(id, tasks.Completed); return nil },
		"canceled":  func(id tasks.TaskID) error { _, err := b.Cancel(t.Context(), as(ann), id); return err },
		"deleted":   func(id tasks.TaskID) error { return b.Delete(t.Context(), as(ann), id) },
	} {
		if err := end(list[0].ID); err != nil {
			t.Fatal(name, err)
		}
		list[0] = b.send(ann, tasks.SendRequest{})
		full()
	}
	b.stop()
	b.start()
	full() // nothing of it is in memory
}

// Concurrent requests do not exceed the limit.
func TestTasksThatGoOnAreCountedInTheCommit(t *testing.T) {
	b := open(t, tasks.Options{Limits: func(kg.AgentID) tasks.Limits { return tasks.Limits{Tasks: 5} }}, nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	in := 0
	for range 40 {
		all.Go(func() {
			_, err := b.Send(t.Context(), as(ann), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
			if err == nil {
				mu.Lock()
				in++
				mu.Unlock()
			} else if kg.CodeOf(err) != kg.CodeOverloaded {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if in != 5 {
		t.Errorf("%d got in", in)
	}
}

// The messages to an agent per minute are limited, to new and open tasks, with a retry
// delay. Those of other agents do not count.
func TestMessagesPerMinute(t *testing.T) {
	now := time.Now()
	other := kg.AgentID("agent://other")
	b := open(t, tasks.Options{
		Clock: func() time.Time { return now }, Known: func(id kg.AgentID) bool { return id == bot || id == other },
		Limits: func(id kg.AgentID) tasks.Limits {
			if id == other {
				return tasks.Limits{}
			}
			return tasks.Limits{MessagesPerMinute: 4}
		},
	}, nil)
	full := func() {
		t.Helper()
		_, err := b.Send(t.Context(), as(eve), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("one more")}}})
		wantCode(t, "past the bound", err, kg.CodeRateLimited)
		if wait := kg.AsError(err).RetryAfter; wait <= 0 || wait > 15*time.Second {
			t.Errorf("the next one may come in %s", wait)
		}
	}
	task := b.send(ann, tasks.SendRequest{})
	for range 3 {
		b.send(ann, tasks.SendRequest{Task: task.ID})
	}
	full()
	b.send(ann, tasks.SendRequest{To: other})
	now = now.Add(15 * time.Second)
	b.send(eve, tasks.SendRequest{})
	full()
	now = now.Add(time.Hour)
	for range 4 {
		b.send(eve, tasks.SendRequest{})
	}
	full()
}

// A message may have as many bytes of content as its handler allows, and no more.
func TestMessageBytesOfAnAgent(t *testing.T) {
	b := open(t, tasks.Options{Limits: func(kg.AgentID) tasks.Limits { return tasks.Limits{MessageBytes: 100} }}, nil)
	for n, want := range map[int]kg.Code{100: "", 101: kg.CodeLimitExceeded} {
		_, err := b.Send(t.Context(), as(ann), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart(strings.Repeat("x", n))}}})
		if kg.CodeOf(err) != want {
			t.Errorf("%d bytes: got %v, want %s", n, err, want)
		}
	}
}

// An agent that leaves between the check and the commit gets no task.
func TestWhoLeavesMeanwhile(t *testing.T) {
	asked := 0
	b := open(t, tasks.Options{Known: func(kg.AgentID) bool { asked++; return asked == 1 }}, nil)
	_, err := b.Send(t.Context(), as(ann), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
	wantCode(t, "a message to who left", err, kg.CodeAgentNotFound)
}
