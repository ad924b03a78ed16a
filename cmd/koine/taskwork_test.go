package main

import (
	"net/http"
	"strings"
	"testing"
)

// Work for a task over A2A (an update, a publication, and koine's own work for a message)
// is found from the task, and the task from it.
func TestWorkForATask(t *testing.T) {
	_, url := startServer(t)
	if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	call := func(who, path, method, params, want string) string {
		t.Helper()
		status, text := ask(t, http.MethodPost, url+path, who, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
		if status != http.StatusOK || !strings.Contains(text, want) {
			t.Fatalf("%s: %d %s, want %s", method, status, text, want)
		}
		return text
	}
	adds := func(subject string) string {
		return `[{"op":"add","statement":{"subject":{"id":"urn:` + subject + `"},"predicate":{"id":"urn:is"},"object":{"value":1}}}]`
	}
	task := taskIn(t, http.StatusOK, sendTo(t, url, "bot", "ann", "work", atOnce))
	call("bot", "/a2a", "knowledge/update", `{"taskId":"`+task+`","mutations":`+adds("updated")+`}`, `"success":true`)
	call("bot", "/a2a", "channels/publish", `{"taskId":"`+task+`","to":"ann","parts":[{"type":"text","text":"done"}]}`, `"sequence":1`)
	call("eve", "/a2a", "knowledge/update", `{"taskId":"`+task+`","mutations":`+adds("claimed")+`}`, `"success":true`)
	const work = `{ commits { nodes { commit { actor: actorId taskId } message { text task { id } } facts { nodes { subject { iri } tasks { nodes { id } } } } } } }`
	of := func(id, who, message, subject string) string {
		facts := ""
		if subject != "" {
			facts = `{"subject":{"iri":"urn:` + subject + `"},"tasks":{"nodes":[{"id":"` + id + `"}]}}`
		}
		return `{"commit":{"actor":"agent://` + who + `","taskId":"` + id + `"},"message":` + message + `,"facts":{"nodes":[` + facts + `]}}`
	}
	want := `"nodes":[` + of(task, "bot", "null", "updated") + `,` + of(task, "bot", `{"text":"done","task":{"id":"`+task+`"}}`, "") + `]`
	tells(t, askGraphQL(t, url, "ann", `{ task(id: "`+task+`") `+work+` }`), want)
	// koine works in the name of the caller.
	sent := call("ann", "/a2a", "SendMessage", `{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"data":{"mutations":`+adds("ordered")+`}}]}}`, "TASK_STATE_COMPLETED")
	asked := taskIn(t, http.StatusOK, sent)
	tells(t, askGraphQL(t, url, "ann", `{ task(id: "`+asked+`") `+work+` }`), `"nodes":[`+of(asked, "ann", "null", "ordered")+`]`)
}
