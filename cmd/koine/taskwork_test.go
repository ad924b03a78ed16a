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

// What a message still orders is not executed once the key of its sender is revoked.
func TestMessageToKoineEndsWithItsKey(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	key, id := k.create(`{agentId: "dora", roles: ["admin"]}`)
	add := `{\"mutations\":[{\"op\":\"add\",\"statement\":{\"subject\":{\"id\":\"urn:late\"},\"predicate\":{\"id\":\"urn:is\"},\"object\":{\"value\":1}}}]}`
	revoke := `mutation { revokeApiKey(input: {keyId: \"` + id + `\"}) { key { state } } }`
	status, text := k.send(http.MethodPost, "/a2a", key, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"`+revoke+`"},{"text":"`+add+`"}]},"configuration":{"returnImmediately":true}}}`)
	task := taskIn(t, status, text)
	eventually(t, "the task fails with the key", func() bool {
		_, text = k.send(http.MethodPost, "/a2a", k.admin, `{"jsonrpc":"2.0","id":2,"method":"GetTask","params":{"id":"`+task+`"}}`)
		return strings.Contains(text, `"TASK_STATE_FAILED"`)
	})
	if want := "parts[1]: the sender no longer has the rights for it: the key was revoked"; !strings.Contains(text, want) {
		t.Errorf("got %s, want %s", text, want)
	}
	if text := k.graphql(k.admin, `{ entity(iri: "urn:late") { iri } }`); !strings.Contains(text, `"entity":null`) {
		t.Errorf("the second part was executed: %s", text)
	}
}
