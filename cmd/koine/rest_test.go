package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"koine/cmd/koine/internal/cli"
)

// The REST protocol is at its prefix, and everything else is where it was: also the hub,
// which has paths in common with it without a prefix.
func TestRESTPrefix(t *testing.T) {
	for flag, prefix := range map[string]string{"/rest": "/rest", "/api/tasks/": "/api/tasks", "/": ""} {
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
		for _, method := range []string{"GetTask", "CancelTask", "tasks/get", "tasks/cancel"} { // tasks are at the address of their agent
			wants("POST", "/a2a", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"id":"`+id+`"}}`, http.StatusOK, `"code":-32001`)
		}
		wants("POST", "/a2a", `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}`, http.StatusOK, `"tasks":[]`)
		wants("POST", "/agents/bot/a2a", `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}`, http.StatusOK, `"id":"`+id+`"`)
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

// A prefix that collides with other paths of koine, or is not a path, is an error of the
// command line.
func TestRESTPrefixIsRefused(t *testing.T) {
	for prefix, want := range map[string]string{
		"/agents": "/agents is used by another endpoint", "/graphql/": "/graphql is used by another endpoint", "/a2a/rest": "/a2a is used by another endpoint", "/changes": "is used by another endpoint", "/.well-known": "is used by another endpoint", "/metrics": "is used by another endpoint",
		"rest": "must be / or a path", "": "must be / or a path", "//": "must be / or a path", "/a//b": "must be / or a path", "/a/../b": "must be / or a path", "/{x}": "must be / or a path", "/a b": "must be / or a path",
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

// An API key is accepted as a bearer, and in a header of its own; without a valid one
// nothing is returned, with the codes of the text. A socket is the same, and may send its
// key in the first frame. Streams opened with a revoked key end.
func TestRESTAuthentication(t *testing.T) {
	k := startKnowing(t, "--auth", "keys", "--allow-origin", "https://app.example")
	ann, annID := k.create(`{agentId: "ann"}`)
	for _, row := range []struct {
		name    string
		headers []string
		status  int
		want    string
	}{
		{"nothing", nil, http.StatusUnauthorized, `{"error":{"code":"AUTHENTICATION_ERROR","message":`},
		{"no good key", []string{"Authorization", "Bearer api_key_123"}, http.StatusUnauthorized, `{"error":{"code":"AUTHENTICATION_ERROR","message":`},
		{"a token that is none", []string{"Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x"}, http.StatusUnauthorized, `{"error":{"code":"AUTHENTICATION_ERROR","message":`},
		{"a bearer", []string{"Authorization", "Bearer " + ann}, http.StatusOK, `{"agents":[`},
		{"a header of its own", []string{"X-API-Key", ann}, http.StatusOK, `{"agents":[`},
		{"for another", []string{"X-API-Key", ann, "X-Agent-ID", "bob"}, http.StatusForbidden, `{"error":{"code":"AUTHORIZATION_ERROR","message":`},
		{"a page of others", []string{"X-API-Key", ann, "Origin", "https://evil.example"}, http.StatusForbidden, `{"error":{"code":"AUTHORIZATION_ERROR","message":`},
	} {
		status, text := k.send(http.MethodGet, "/rest/agents", "", "", row.headers...)
		if status != row.status || !strings.HasPrefix(text, row.want) {
			t.Errorf("%s: got %d %s", row.name, status, text)
		}
	}
	dial := func(header ...string) (*websocket.Conn, int) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		conn, response, err := websocket.Dial(t.Context(), k.url+"/rest/ws", &websocket.DialOptions{HTTPHeader: h})
		if err != nil {
			return nil, response.StatusCode
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		return conn, http.StatusOK
	}
	if _, status := dial("Authorization", "Bearer api_key_123"); status != http.StatusUnauthorized {
		t.Errorf("a socket with no good key: %d", status)
	}
	if _, status := dial("Origin", "https://evil.example", "X-API-Key", ann); status != http.StatusForbidden {
		t.Errorf("a socket of a page of others: %d", status)
	}
	const ask = `{"type":"task.updated","requestId":1,"task":{"id":"none"}}`
	for name, conn := range map[string]func() *websocket.Conn{
		"a header": func() *websocket.Conn { c, _ := dial("X-API-Key", ann); return c },
		"a frame": func() *websocket.Conn {
			c, _ := dial("Origin", "https://app.example")
			k.write(c, ask)
			if got, err := k.read(c); err != nil || !strings.Contains(got, `"code":"AUTHENTICATION_ERROR"`) {
				t.Errorf("before it says who it is: %s, %v", got, err)
			}
			k.write(c, `{"type":"auth","authorization":"Bearer `+ann+`"}`)
			return c
		},
		"a frame with a key": func() *websocket.Conn { c, _ := dial(); k.write(c, `{"type":"auth","x-api-key":"`+ann+`"}`); return c },
	} {
		c := conn()
		k.write(c, ask)
		if got, err := k.read(c); err != nil || !strings.Contains(got, `"code":"TASK_NOT_FOUND"`) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	c, _ := dial("X-API-Key", ann)
	k.graphql(k.admin, `mutation { revokeApiKey(input: {keyId: "`+annID+`"}) { key { id } } }`)
	k.wantClose("a socket of a revoked key", c, 4401, "the key was revoked")
}

// A message to an agent's address over A2A is delivered on its socket, while it is open,
// and the agent's reports there are the events of the task. The task is an entity of the
// graph.
func TestAgentOnASocket(t *testing.T) {
	_, url := startServer(t)
	ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot","capabilities":["weather"]}`)
	conn, _, err := websocket.Dial(t.Context(), url+"/rest/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {"bot"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	eventually(t, "it is there", func() bool {
		_, text := ask(t, http.MethodGet, url+"/agents/bot", "ann", "")
		return strings.Contains(text, `"presence":"ONLINE"`)
	})
	told := make(chan string, 1)
	go func() {
		_, text := ask(t, http.MethodPost, url+"/agents/bot/a2a", "ann", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"rain?"}]}}}`)
		told <- text
	}()
	ctx, cancel := context.WithTimeout(t.Context(), cli.RequestTimeout)
	defer cancel()
	_, raw, err := conn.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tells(t, string(raw), `{"type":"task.created"`, `"from":"ann"`, `"message":[{"type":"text","content":"rain?"}]`)
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(string(raw))
	for _, frame := range []string{
		`{"type":"task.updated","task":{"id":"` + id + `","state":"in_progress"}}`,
		`{"type":"task.updated","task":{"id":"` + id + `","artifacts":[{"type":"message","content":[{"type":"text","content":"no rain"}]}]}}`,
		`{"type":"task.completed","task":{"id":"` + id + `"}}`,
	} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	text := <-told
	at := 0
	for _, part := range []string{`"task":{"id":"` + id, `TASK_STATE_WORKING`, `"artifactUpdate":`, `"text":"no rain"`, `TASK_STATE_COMPLETED`} {
		next := strings.Index(text[at:], part)
		if next < 0 {
			t.Fatalf("told %s, want %s behind %d", text, part, at)
		}
		at += next
	}
	tells(t, askGraphQL(t, url, "ann", `{ entity(iri: "agent://bot", view: {graphs: ["urn:koine:graph:agents"]}) { iri types } }`), `"iri":"agent://bot"`, "Agent")
}
