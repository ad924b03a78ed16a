package agentapi_test

import (
	"context"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"koine/internal/caller"
	"koine/internal/dialect/agentapi"
	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// grow reports chunks of an artifact, with more than n bytes of content together.
func (s *server) grow(id string, n int) {
	s.t.Helper()
	text := strings.Repeat("x", 250<<10)
	for size := 0; size <= n; size += len(text) {
		r := tasks.Report{Artifacts: []tasks.Chunk{{Append: true, Artifact: tasks.Artifact{ID: "a", Parts: []tasks.Part{tasks.TextPart(text)}}}}}
		if _, err := s.tasks.SubmitReport(s.t.Context(), bot, tasks.TaskID(id), r, tasks.ReadOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A task that is too large is refused where it is asked for, and has no member artifacts in a
// list, in the answer to a change, and in the frames of a socket.
func TestLargeTasks(t *testing.T) {
	slowtest.Long(t)
	s := start(t)
	small, id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`), s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	conn := s.dialBehind("ann", "")
	conn.SetReadLimit(1 << 25)
	s.grow(id, tasks.DefaultMaxFeedBytes)
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(20*time.Second))
	defer cancel()
	for whole := true; whole; {
		_, raw, err := conn.Read(ctx)
		if err != nil || !strings.Contains(string(raw), `"type":"task.updated"`) {
			t.Fatalf("heard %.200s, %v", raw, err)
		}
		if whole = strings.Contains(string(raw), `"artifacts":`); whole && len(raw) > tasks.DefaultMaxFeedBytes+4<<10 {
			t.Fatalf("a frame of %d bytes has artifacts", len(raw))
		}
	}
	if status, got := s.ask("ann", http.MethodGet, "/tasks/"+id, ""); status != http.StatusOK || len(got) < tasks.DefaultMaxFeedBytes {
		t.Errorf("a task of more than a frame has: %d with %d bytes", status, len(got))
	}
	s.grow(id, tasks.DefaultMaxReadBytes-tasks.DefaultMaxFeedBytes)
	if _, got := s.ask("ann", http.MethodGet, "/tasks/"+id, ""); !strings.Contains(got, `"error"`) || len(got) > 1000 {
		t.Errorf("a task that is too large: %.500s", got)
	}
	if status, got := s.ask("ann", http.MethodGet, "/tasks", ""); status != http.StatusOK || len(got) > 10_000 || !strings.Contains(got, id) || !strings.Contains(got, small) || strings.Count(got, `"artifacts":`) != 1 {
		t.Errorf("the list: %d %.500s", status, got)
	}
	if status, got := s.ask("bot", http.MethodPut, "/tasks/"+id, `{"state":"completed"}`); status != http.StatusOK || strings.Contains(got, `"artifacts"`) || !strings.Contains(got, `"state":"completed"`) {
		t.Errorf("the end of it: %d %.500s", status, got)
	}
}

// A stream does not hold the task with which it began.
func TestStreamsHoldNoTask(t *testing.T) {
	s := start(t)
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	by := caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	h := agentapi.NewHandler(agentapi.Deps{Agents: directory{}, Tasks: s.tasks, Streams: s.streams, Positions: s.store}, agentapi.Options{})
	next, stop, first := func() (func() bool, func(), weak.Pointer[tasks.Task]) {
		task, st, err := s.tasks.Follow(t.Context(), by, tasks.TaskID(id), tasks.ReadAll)
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(h.TaskEvents(task, true, st))
		return func() bool { e, err, ok := next(); return ok && err == nil && len(e.Data) > 0 }, stop, weak.Make(task)
	}()
	defer stop()
	s.report(id, tasks.Report{State: tasks.Working})
	for range 2 { // the task, and its event
		if !next() {
			t.Fatal("the stream ended")
		}
	}
	for end := time.Now().Add(10 * time.Second); first.Value() != nil; runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("the task is held")
		}
	}
}
