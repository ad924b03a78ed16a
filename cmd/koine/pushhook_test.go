package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The hooks of a creator's tasks are not called while the creator is suspended, although it
// is not registered, and what waited comes afterwards. They are deleted with the task.
func TestPushOfASuspendedCreator(t *testing.T) {
	hook, other := newHookedBot(t), newHookedBot(t)
	_, server := startServer(t, "--allow-private-webhooks")
	if status, text := ask(t, http.MethodPut, server+"/agents/bot", "bot", `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	ask(t, http.MethodPut, server+"/agents/ann", "ann", `{"name":"Ann"}`)
	if status, text := ask(t, http.MethodDelete, server+"/agents/ann", "ann", ""); status != http.StatusNoContent { // leaves its record
		t.Fatal(status, text)
	}
	give := func(who, text, url string) string {
		t.Helper()
		return taskIn(t, http.StatusOK, sendTo(t, server, "bot", who, text, atOnce+`,"taskPushNotificationConfig":{"url":"`+url+`"}`))
	}
	report := func(task, state string) {
		t.Helper()
		if status, text := ask(t, http.MethodPost, server+"/agents/bot/mailbox/"+task, "bot", `{"state":"`+state+`"}`); status != http.StatusOK {
			t.Fatal(status, text)
		}
	}
	setStatus := func(status string) {
		t.Helper()
		body := fmt.Sprintf(`{"query":"mutation { updateAgent(input: {agentId: \"ann\", status: %s}) { agent { status } } }"}`, status)
		_, text := ask(t, http.MethodPost, server+"/graphql", "root", body)
		tells(t, text, `"status":"`+status+`"`)
	}
	came := func(b *hookedBot, n int) func() bool {
		return func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.bodies) == n
		}
	}
	task := give("ann", "one", hook.URL)
	report(task, "TASK_STATE_WORKING")
	eventually(t, "the first event comes", came(hook, 1))
	setStatus("SUSPENDED")
	report(task, "TASK_STATE_COMPLETED")
	report(give("eve", "two", other.URL), "TASK_STATE_COMPLETED")
	eventually(t, "the event of another creator comes", came(other, 1))
	if !came(hook, 1)() {
		t.Error("the hook of a suspended creator was called")
	}
	setStatus("ACTIVE")
	eventually(t, "the event that waited comes", came(hook, 2))
	configs := func() bool {
		graph := url.QueryEscape("urn:koine:graph:journal:push:" + url.QueryEscape("agent://ann"))
		_, text := ask(t, http.MethodGet, server+"/data?graph="+graph, "ann", "")
		return strings.Contains(text, "pushURL")
	}
	if !configs() {
		t.Error("the configuration of a task that has ended is gone")
	}
	_, text := ask(t, http.MethodPost, server+"/graphql", "ann", `{"query":"mutation { deleteTask(input: {taskId: \"`+task+`\"}) { taskId } }"}`)
	tells(t, text, `"taskId":"`+task+`"`)
	if configs() {
		t.Error("the configuration is there after its task")
	}
}
