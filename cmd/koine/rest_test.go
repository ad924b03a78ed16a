package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// The REST protocol is where it was told to be, and everything else where it was: also
// the hub, which has paths in common with it where there is no prefix.
func TestRESTPrefix(t *testing.T) {
	for flag, prefix := range map[string]string{"/rest": "/rest", "/api/v1/": "/api/v1", "/": ""} {
		_, url := startServer(t, "--rest-prefix", flag)
		wants := func(method, path, body string, status int, parts ...string) string {
			t.Helper()
			got, text := ask(t, method, url+path, "bot", body)
			if got != status {
				t.Errorf("%s: %s %s: got %d %s", flag, method, path, got, text)
			}
			tells(t, text, parts...)
			return text
		}
		wants("PUT", "/agents/bot", `{"name":"Bot","capabilities":["weather"]}`, http.StatusCreated)
		for _, at := range []string{prefix, ""} { // there, and at the hub
			wants("GET", at+"/agents", "", http.StatusOK, `{"agents":[{"id":"bot"`, `"id":"koine"`)
			wants("GET", at+"/agents?capability=weather", "", http.StatusOK, `{"agents":[{"id":"bot"`)
			wants("GET", at+"/agents?capability=none", "", http.StatusOK, `{"agents":[]`)
			wants("GET", at+"/agents?limit=1", "", http.StatusOK, `{"agents":[{"id":"bot"`, `"nextPageToken":"`)
			wants("GET", at+"/agents/bot", "", http.StatusOK, `{"id":"bot","name":"Bot"`)
			wants("GET", at+"/agents/none", "", http.StatusNotFound, `"code":"AGENT_NOT_FOUND"`)
		}
		sent := wants("POST", prefix+"/agents/bot/messages", `{"message":[{"type":"text","content":"x"}]}`, http.StatusAccepted)
		id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(sent)
		wants("GET", prefix+"/messages/"+id+".1", "", http.StatusOK, `"taskId":"`+id+`"`)
		wants("GET", prefix+"/tasks", "", http.StatusOK, `"id":"`+id+`"`)
		wants("GET", prefix+"/tasks/"+id, "", http.StatusOK, `"state":"pending"`)
		wants("PATCH", prefix+"/tasks/"+id, `{}`, http.StatusMethodNotAllowed, `"code":"METHOD_NOT_ALLOWED"`)
		wants("PUT", prefix+"/tasks/"+id, `{"state":"completed"}`, http.StatusOK, `"state":"completed"`)
		conn, _, err := websocket.Dial(t.Context(), url+prefix+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {"ann"}}})
		if err != nil {
			t.Fatalf("%s: %v", flag, err)
		}
		conn.CloseNow()
		wants("POST", "/agents/bot/a2a", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"`+id+`"}}`, http.StatusOK, "TASK_STATE_COMPLETED")
		wants("POST", "/", `{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{ revision }"}}`, http.StatusOK, `"revision"`)
		wants("GET", "/agents/bot/.well-known/agent-card.json", "", http.StatusOK, `"name":"Bot"`)
		wants("GET", "/agents/bot/nothing", "", http.StatusNotFound, `"PATH_NOT_FOUND"`)
		wants("GET", "/graphql?query={revision}", "", http.StatusOK, `"data"`)
		wants("DELETE", prefix+"/tasks/"+id, "", http.StatusNoContent)
		wants("DELETE", "/agents/bot", "", http.StatusNoContent)
		if prefix != "/rest" {
			wants("GET", "/rest/tasks", "", http.StatusNotFound)
		}
	}
}

// A prefix at which koine has other things, or which is no path, is a mistake in the
// command line that says so.
func TestRESTPrefixIsRefused(t *testing.T) {
	for prefix, want := range map[string]string{
		"/agents": "other things at /agents", "/graphql/": "other things at /graphql", "/a2a/rest": "other things at /a2a", "/changes": "other things", "/.well-known": "other things", "/metrics": "other things",
		"rest": "it is / or a path", "": "it is / or a path", "//": "it is / or a path", "/a//b": "it is / or a path", "/a/../b": "it is / or a path", "/{x}": "it is / or a path", "/a b": "it is / or a path",
	} {
		f := restFlags{RestPrefix: prefix}
		if _, err := f.restPrefix(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--rest-prefix "+prefix) {
			t.Errorf("%q: got %v, want %s", prefix, err, want)
		}
	}
	// Wherever something answers, there is no room.
	_, url := startServer(t)
	for _, path := range []string{
		"/agents", "/graphql", "/playground", "/data", "/schemas/knowledge.json", "/healthz", "/readyz", "/metrics", "/a2a", "/.well-known/agent-card.json", "/admin/check", "/admin/backup",
	} {
		if status, _ := ask(t, http.MethodGet, url+path, "ann", ""); status == http.StatusNotFound {
			t.Errorf("there is nothing at %s", path)
		}
		f := restFlags{RestPrefix: path}
		if _, err := f.restPrefix(); err == nil {
			t.Errorf("%s is taken", path)
		}
	}
}
