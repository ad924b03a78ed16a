package a2a_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"koine/a2a"
	"koine/internal/caller"
	"koine/internal/slowtest"
	"koine/internal/tasks"
	"koine/kg"
)

// A task that is too large is refused where it is asked for. A list has it without artifacts,
// on pages that are not too large, and a message to it is sent.
func TestLargeTasks(t *testing.T) {
	slowtest.Long(t)
	s := newTestServer(t)
	ann := caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "open"}}
	known := caller.Caller{Principal: kg.Principal{ID: "agent://known", Method: "open"}}
	sent, err := s.tasks.Send(t.Context(), ann, tasks.SendRequest{To: "agent://known", Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
	if err != nil {
		t.Fatal(err)
	}
	id, text := sent.Task.ID, strings.Repeat("x", tasks.MaxMessageBytes)
	for range tasks.DefaultMaxReadBytes / len(text) {
		r := tasks.Report{Artifacts: []tasks.Chunk{{Append: true, Artifact: tasks.Artifact{ID: "a", Parts: []tasks.Part{tasks.TextPart(text)}}}}}
		if _, err := s.tasks.SubmitReport(t.Context(), known, id, r, tasks.ReadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ method, params, want string }{
		{"GetTask", fmt.Sprintf(`{"id":%q}`, id), "LIMIT_EXCEEDED"},
		{"SubscribeToTask", fmt.Sprintf(`{"id":%q}`, id), "LIMIT_EXCEEDED"},
		{"ListTasks", `{"includeArtifacts":true}`, string(id)},
		{"SendMessage", fmt.Sprintf(`{"message":{"messageId":"m","taskId":%q,"role":"ROLE_USER","parts":[{"text":"more"}]},"configuration":{"returnImmediately":true}}`, id), `"result":{"task":{"id":"` + string(id)},
		{"SendMessage", fmt.Sprintf(`{"message":{"messageId":"n","taskId":%q,"role":"ROLE_USER","parts":[{"text":"more"}]},"configuration":{"returnImmediately":true,"historyLength":1}}`, id), `"result":{"task":{"id":"` + string(id)},
	} {
		got := answer(t, s.send(t, []byte("POST /known\nContent-Type: application/json\nX-Agent-ID: ann\n\n"+`{"jsonrpc":"2.0","id":1,"method":"`+row.method+`","params":`+row.params+`}`), nil))
		if !strings.Contains(got, row.want) || len(got) > 10_000 {
			t.Errorf("%s: %.500s", row.method, got)
		}
	}
}

// A stream does not hold the task with which it began.
func TestTaskStreamsHoldNoTask(t *testing.T) {
	s := newTestServer(t)
	h := a2a.NewHandler(a2a.Deps{Store: s.store, Querier: s.querier, Tasks: s.tasks, Streams: s.streams}, a2a.Options{})
	by := caller.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "open"}}
	end, first := func() (func(), weak.Pointer[tasks.Task]) {
		sent, err := s.tasks.Send(t.Context(), by, tasks.SendRequest{To: "agent://known", Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("x")}}})
		if err != nil {
			t.Fatal(err)
		}
		task, st, err := s.tasks.Follow(t.Context(), by, sent.Task.ID, tasks.ReadAll)
		if err != nil {
			t.Fatal(err)
		}
		stop := a2a.FirstOfTask(h, task, st)
		return func() { st.Close(); stop() }, weak.Make(task)
	}()
	defer end()
	for end := time.Now().Add(10 * time.Second); first.Value() != nil; runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("the task is held")
		}
	}
}
