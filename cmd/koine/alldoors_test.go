package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// callAs sends a JSON request as an agent and returns the answer.
func callAs(t *testing.T, name, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Agent-ID", name)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s %s: %v", method, url, response.Status, raw, err)
	}
	return string(raw)
}

// idIn returns the member id of a JSON object.
func idIn(t *testing.T, raw string) string {
	t.Helper()
	var object struct{ ID string }
	if err := json.Unmarshal([]byte(raw), &object); err != nil || object.ID == "" {
		t.Fatalf("%s has no id: %v", raw, err)
	}
	return object.ID
}

// One conversation over all protocols: an agent of OpenIntent asks, one of A2A answers with
// facts, a socket of AgentChat sees both, GraphQL shows the evidence of the statement, and
// the chain of the intent's events verifies.
func TestOneConversationOverAllProtocols(t *testing.T) {
	_, url := startServer(t)
	intents := url + "/api/v1/intents"
	intent := idIn(t, callAs(t, "lead", "POST", intents, `{"title":"Count the cells"}`))
	room := idIn(t, callAs(t, "lead", "POST", intents+"/"+intent+"/channels",
		`{"name":"counting","members":["lead","worker"],"member_policy":"explicit","options":{"audit":true}}`))

	// The answer to a request is for its author alone, so the socket is the author's.
	socket, _, err := websocket.Dial(t.Context(), url+"/agentchat/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {"lead"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.CloseNow() }()
	awaitFrame(t, socket, "auth_ok")

	question := idIn(t, callAs(t, "lead", "POST", url+"/api/v1/channels/"+room+"/messages",
		`{"sender":"lead","to":"worker","message_type":"request","payload":{"question":"How many?"}}`))
	answer := callAs(t, "worker", "POST", url+"/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"channels/publish","params":{"channelId":%q,"messageType":"response","correlationId":%q,
		"parts":[{"type":"text","text":"Seven."}],"patches":[{"op":"add","statement":{"subject":{"id":"urn:x:sample"},"predicate":{"id":"urn:x:cells"},"object":{"value":7}}}]}}`, room, question))
	if !strings.Contains(answer, `"sequence":2`) {
		t.Fatalf("the answer is %s", answer)
	}

	first, second := awaitFrame(t, socket, "message"), awaitFrame(t, socket, "message")
	if first.Message.ID != question || !strings.Contains(first.Message.Content, "How many?") || first.Message.Sender != "lead" {
		t.Errorf("the socket sees the question %+v", first.Message)
	}
	if second.Message.Content != "Seven." || second.Message.Sender != "worker" || second.Message.Sequence != 2 {
		t.Errorf("the socket sees the answer %+v", second.Message)
	}
	asked := callAs(t, "lead", "GET", url+"/api/v1/channels/"+room+"/messages?since="+question, "")
	contains(t, "the response over OpenIntent", asked, `"sender":"worker"`, `"message_type":"response"`, fmt.Sprintf(`"correlation_id":%q`, question))
	contains(t, "the evidence", askGraphQL(t, url, "lead", `{ statements(view: {allGraphs: true}, where: {predicate: {eq: "urn:x:cells"}}) { nodes { object { ... on Literal { value } } evidence { nodes { text author { id } } } } } }`),
		`"value":7`, `"evidence":{"nodes":[{"text":"Seven.","author":{"id":"agent://worker"}}]}`)
	contains(t, "the evidence for others", askGraphQL(t, url, "eve", `{ statements(view: {allGraphs: true}, where: {predicate: {eq: "urn:x:cells"}}) { totalCount } }`), `"totalCount":0`)
	contains(t, "the chain", callAs(t, "lead", "GET", intents+"/"+intent+"/events/verify", ""), `"valid":true`, `"event_count":3`)
}
