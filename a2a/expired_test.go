package a2a_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"koine/a2a"
	"koine/internal/caller"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// A client that waits for an unclaimed task gets the failed task with the reason, in
// both versions.
func TestUnclaimedTasksHaveFailed(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: tasks.NewGuard(kg.AllowAll{})}})
	if err != nil {
		t.Fatal(err)
	}
	work := tasks.New(tasks.Options{Known: func(kg.AgentID) bool { return true }, Expiry: 20 * time.Millisecond})
	if err := work.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		work.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	bot := asCaller(a2a.NewHandler(a2a.Deps{Store: store, Tasks: work, Streams: sse.New(sse.Options{})}, a2a.Options{}).For("agent://known"))
	_, sent := serve(bot, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}}`, "")
	failed := regexp.MustCompile(`"id":"([0-9a-f-]{36})","contextId":"[^"]+","status":{"state":"TASK_STATE_FAILED","message":{.*"parts":\[{"text":"the task was not claimed in time"}\]}`)
	found := failed.FindStringSubmatch(sent)
	if found == nil {
		t.Fatalf("who waits is told %s", sent)
	}
	_, got := serve(bot, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"id":%q}}`, found[1]), "")
	if !regexp.MustCompile(`"status":{"state":"failed","message":{.*"text":"the task was not claimed in time"`).MatchString(got) {
		t.Errorf("who asks in 0.3 is told %s", got)
	}
	task, err := work.Get(t.Context(), caller.Caller{Principal: kg.SystemPrincipal()}, tasks.TaskID(found[1]), tasks.ReadAll)
	if err != nil || task.Failure == nil || task.Failure.Code != tasks.FailureExpired {
		t.Errorf("it is %+v, %v", task, err)
	}
}
