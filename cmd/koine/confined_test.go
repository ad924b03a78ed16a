package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"koine/cmd/koine/internal/cli"
)

// door is a request, and its protocol.
type door struct{ over, path, body string }

// doorsThatChange are the ways in which a caller could change something: {task} is a task
// of ann's, {channel} a channel and {intent} an intent of hers.
var doorsThatChange = []door{
	{"A2A", "knowledge/update", `{"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":"x"}}}]}`},
	{"A2A", "knowledge/query", `{"query":"mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: \"urn:s\"}, predicate: {id: \"urn:p\"}, object: {value: \"z\"}}}]}) { success } }"}`},
	{"A2A", "SendMessage", `{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"help"}]}}`},
	{"A2A", "SendStreamingMessage", `{"message":{"messageId":"2","role":"ROLE_USER","parts":[{"text":"help"}]}}`},
	{"A2A", "message/send", `{"message":{"kind":"message","messageId":"3","role":"user","parts":[{"kind":"text","text":"help"}]}}`},
	{"A2A", "message/stream", `{"message":{"kind":"message","messageId":"4","role":"user","parts":[{"kind":"text","text":"help"}]}}`},
	{"hub", "SendMessage", `{"message":{"messageId":"5","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true}}`},
	{"hub", "CreateTaskPushNotificationConfig", `{"taskId":"{task}","id":"hook","url":"https://example.org/hook"}`},
	{"POST", "/a2a/http/message:send", `{"message":{"messageId":"6","role":"ROLE_USER","parts":[{"text":"help"}]}}`},
	{"POST", "/a2a/http/v1/message:stream", `{"message":{"messageId":"7","role":"ROLE_USER","content":[{"text":"help"}]}}`},
	{"POST", "/agents/bot/a2a/http/message:send", `{"message":{"messageId":"8","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true}}`},
	{"POST", "/agents/bot/a2a/http/v1/message:send", `{"message":{"messageId":"9","role":"ROLE_USER","content":[{"text":"x"}]},"configuration":{}}`},
	{"POST", "/agents/bot/a2a/http/tasks/{task}/pushNotificationConfigs", `{"id":"other","url":"https://example.org/hook"}`},
	{"DELETE", "/agents/bot/a2a/http/v1/tasks/{task}/pushNotificationConfigs/other", ""},
	{"A2A", "channels/create", `{"name":"other"}`},
	{"A2A", "channels/publish", `{"to":"{channel}","parts":[{"text":"x"}]}`},
	{"A2A", "channels/update", `{"channelId":"{channel}","expectedVersion":1,"name":"renamed"}`},
	{"A2A", "channels/addMember", `{"channelId":"{channel}","principalId":"bot"}`},
	{"GraphQL", "", `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "urn:s"}, predicate: {id: "urn:p"}, object: {value: "g"}}}]}) { success } }`},
	{"GraphQL", "", `mutation { heartbeat(input: {}) { presence { status } } }`},
	{"GraphQL", "", `mutation { sendSignal(input: {channelId: "{channel}", kind: "typing"}) { __typename } }`},
	{"GraphQL", "", `mutation { acknowledgeMessages(input: {channelId: "{channel}", upToSequence: 1, status: DELIVERED}) { __typename } }`},
	{"GraphQL", "", `mutation { publishMessage(input: {channelId: "{channel}", parts: [{text: "x"}]}) { __typename } }`},
	{"GraphQL", "", `mutation { createGraph(input: {iri: "agent://ann/made"}) { __typename } }`},
	{"GraphQL", "", `mutation { updateAgent(input: {agentId: "ann", name: "Ann"}) { agent { id } } }`},
	{"socket", "", `mutation { heartbeat(input: {}) { presence { status } } }`},
	{"MCP", "remember", `{"facts":"<urn:s> <urn:p> \"m\""}`},
	{"POST", "/facts", `{"facts":"<urn:s> <urn:p> \"facts\""}`},
	{"PUT", "/facts", `{"id":"urn:s","properties":[{"predicate":"urn:p","objects":[{"value":"put"}]}]}`},
	{"POST", "/data", "<urn:s> <urn:p> \"data\" .\n"},
	{"PUT", "/data?graph=agent://ann/g", "<urn:s> <urn:p> \"data\" .\n"},
	{"POST", "/data?default", "<urn:s> <urn:p> \"data\" .\n"},
	{"PUT", "/data?default", "<urn:s> <urn:p> \"data\" .\n"},
	{"DELETE", "/data?graph=agent://ann/g", ""},
	{"DELETE", "/data?graph=agent://ann/none", ""},
	{"DELETE", "/data?default", ""},
	{"POST", "/rest/agents/bot/messages", `{"message":[{"type":"text","content":"x"}]}`},
	{"PUT", "/rest/tasks/{task}", `{"metadata":{"a":"b"}}`},
	{"WS", "", `{"requestId":1,"type":"message","agentId":"bot","message":[{"type":"text","content":"x"}]}`},
	{"POST", "/agentchat/rooms", `{"name":"a room"}`},
	{"POST", "/agentchat/rooms/{channel}/messages", `{"content":"x"}`},
	{"PATCH", "/agentchat/rooms/{channel}", `{"topic":"x"}`},
	{"POST", "/agentchat/rooms/{channel}/invite", `{"agent_id":"bot"}`},
	{"PUT", "/agentchat/agents/bot/follow", ""},
	{"DELETE", "/agentchat/agents/bot/follow", ""},
	{"PATCH", "/agentchat/agents/me", `{"status":"busy"}`},
	{"chat", "", `{"type":"message","request_id":1,"room_id":"{channel}","content":"x"}`},
	{"chat", "", `{"type":"status","request_id":1,"status":"idle"}`},
	{"POST", "/api/v1/intents", `{"title":"x"}`},
	{"POST", "/api/v1/intents/{intent}/state", `{"state":{"a":1}}`},
	{"POST", "/api/v1/intents/{intent}/events", `{"event_type":"comment"}`},
	{"POST", "/api/v1/intents/{intent}/agents", `{"agent_id":"bot"}`},
	{"PUT", "/api/v1/intents/{intent}/acl", `{"default_policy":"open","entries":[]}`},
	{"POST", "/api/v1/intents/{intent}/access-requests", `{"principal_id":"ann","requested_permission":"read"}`},
	{"POST", "/api/v1/intents/{intent}/leases", `{"scope":"x"}`},
	{"POST", "/api/v1/intents/{intent}/channels", `{"name":"talk"}`},
	{"POST", "/api/v1/intents/{intent}/channels/plans/messages", `{"sender":"ann","payload":{}}`},
	{"POST", "/api/v1/tasks", `{"intent_id":"{intent}","name":"x"}`},
	{"POST", "/api/v1/portfolios", `{"name":"x"}`},
	{"POST", "/api/v1/agents/register", `{"agent_id":"ann","capabilities":[]}`},
	{"POST", "/api/v1/agents/ann/heartbeat", `{"status":"active"}`},
	{"hub", "CancelTask", `{"id":"{task}"}`},
	{"POST", "/agents/bot/a2a/http/tasks/{task}:cancel", ""},
	{"POST", "/agents/bot/a2a/http/v1/tasks/{task}:cancel", ""},
	{"PUT", "/agents/ann", `{"name":"Ann"}`},
	{"PUT", "/agents/ann/webhook", `{"url":"https://example.org/hook"}`},
	{"PUT", "/agents/ann/upstream", `{"url":"https://example.org/a2a"}`},
	{"DELETE", "/agents/ann/mailbox/{task}", ""},
	{"DELETE", "/agents/ann", ""},
	{"DELETE", "/rest/tasks/{task}", ""},
}

// doorsThatRead are ways to read with ann's rights, with part of her answers.
var doorsThatRead = []struct {
	door
	told string
}{
	{door{"A2A", "knowledge/query", `{"query":"{ statements { nodes { predicate } } }"}`}, "urn:known"},
	{door{"A2A", "channels/history", `{"channelId":"{channel}"}`}, "hello"},
	{door{"hub", "GetTask", `{"id":"{task}"}`}, "{task}"},
	{door{"hub", "ListTasks", `{}`}, "{task}"},
	{door{"GET", "/agents/bot/a2a/http/tasks", ""}, "{task}"},
	{door{"GET", "/agents/bot/a2a/http/tasks/{task}", ""}, "{task}"},
	{door{"GET", "/agents/bot/a2a/http/v1/tasks/{task}", ""}, "{task}"},
	{door{"MCP", "query", `{"query":"{ statements { nodes { predicate } } }"}`}, "urn:known"},
	{door{"MCP", "vocabulary", `{}`}, "urn:known"},
	{door{"GraphQL", "", `{ me { id } statements { nodes { predicate } } }`}, "urn:known"},
	{door{"socket", "", `{ statements { nodes { predicate } } }`}, "urn:known"},
	{door{"GET", "/data?format=nt", ""}, "urn:known"},
	{door{"GET", "/rest/tasks/{task}", ""}, "{task}"},
	{door{"GET", "/agents/bot", ""}, `"bot"`},
	{door{"GET", "/agents/bot/a2a", ""}, `"Bot"`},
	{door{"GET", "/agentchat/rooms/{channel}/messages", ""}, "hello"},
	{door{"GET", "/agentchat/me", ""}, `"ann"`},
	{door{"GET", "/api/v1/intents/{intent}", ""}, "Q1"},
	{door{"GET", "/api/v1/intents/{intent}/events", ""}, "intent_created"},
	{door{"GET", "/api/v1/agents", ""}, `"bot"`},
	{door{"chat", "", `{"type":"subscribe","request_id":1,"room_id":"{channel}","after":0}`}, "subscribed"},
	{door{"POST", "/stream-token", `{"url":"/changes"}`}, "streamToken="},
}

var deniedText = regexp.MustCompile(`PERMISSION_DENIED|AUTHORIZATION_ERROR|"FORBIDDEN"`)

// A credential with no role but reader, metrics or backup changes nothing over any
// protocol, one of the role reader reads with the rights of its agent, and one of the role
// backup takes backups and does nothing else. With another role beside them, and without
// any, it is unrestricted.
func TestConfinedRoles(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	key := func(roles string) string {
		made, _ := k.create(`{agentId: "ann", roles: [` + roles + `]}`)
		return made
	}
	bot, _ := k.create(`{agentId: "bot"}`)
	plain, mixed := key(""), key(`"reader", "editors"`)
	reader, metrics, both, backup := key(`"reader"`), key(`"metrics"`), key(`"reader", "metrics", "backup"`), key(`"backup"`)
	if status, text := k.send(http.MethodPut, "/agents/bot", bot, `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	tells(t, k.graphql(plain, `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "urn:s"}, predicate: {id: "urn:known"}, object: {value: "x"}}}]}) { success } }`), `"success":true`)
	var answer struct {
		Data struct {
			Made struct{ Channel struct{ ID string } }
			Sent struct{ Task struct{ ID string } }
		}
	}
	text := k.graphql(plain, `mutation { made: createChannel(input: {name: "lab"}) { channel { id } } sent: sendMessage(input: {to: "bot", parts: [{text: "x"}]}) { task { id } } }`)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Data.Made.Channel.ID == "" || answer.Data.Sent.Task.ID == "" {
		t.Fatal(text)
	}
	channel, task := answer.Data.Made.Channel.ID, answer.Data.Sent.Task.ID
	tells(t, k.graphql(plain, `mutation { publishMessage(input: {channelId: "`+channel+`", parts: [{text: "hello"}]}) { __typename } }`), `"__typename"`)
	var intent struct{ ID string }
	if status, text := k.send(http.MethodPost, "/api/v1/intents", plain, `{"title":"Q1"}`); json.Unmarshal([]byte(text), &intent) != nil || intent.ID == "" {
		t.Fatal(status, text)
	}
	if status, text := k.send(http.MethodPost, "/api/v1/agents/register", plain, `{"agent_id":"ann","capabilities":[]}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	// The registration makes ann present, which is stored a moment later.
	eventually(t, "the presence of ann is stored", func() bool {
		return strings.Contains(k.graphql(k.admin, `{ match(pattern: {triples: [{s: "agent://ann", p: "koine:presence", o: "?status"}]}, view: {graphs: ["urn:koine:graph:journal:presence"]}) { nodes { values } } }`), "ONLINE")
	})
	fill := strings.NewReplacer("{task}", task, "{channel}", channel, "{intent}", intent.ID).Replace
	ask := func(credential string, d door) string {
		return k.through(credential, door{d.over, fill(d.path), fill(d.body)})
	}
	head := func() string {
		return k.graphql(k.admin, `{ stats(view: {allGraphs: true}) { revision } }`)
	}

	before := head()
	for name, credential := range map[string]string{"reader": reader, "metrics": metrics, "all three": both, "backup": backup} {
		for _, d := range doorsThatChange {
			if got := ask(credential, d); !deniedText.MatchString(got) {
				t.Errorf("%s: %s %s %s: got %s", name, d.over, d.path, d.body, got)
			}
		}
		if got := ask(credential, door{"GET", "/agents/ann/mailbox", ""}); !deniedText.MatchString(got) {
			t.Errorf("%s opens a mailbox: %s", name, got)
		}
	}
	for _, d := range doorsThatRead {
		want := fill(d.told)
		for name, credential := range map[string]string{"reader": reader, "all three": both, "plain": plain} {
			if got := ask(credential, d.door); !strings.Contains(got, want) || deniedText.MatchString(got) {
				t.Errorf("%s: %s %s %s: got %s, want %s", name, d.over, d.path, d.body, got, want)
			}
		}
		if got := ask(backup, d.door); !deniedText.MatchString(got) {
			t.Errorf("backup: %s %s %s: got %s", d.over, d.path, d.body, got)
		}
	}
	// A further credential that is confined confines, and one that is not lifts nothing.
	update := `{"metadata":{"securityToken":"%s"},"mutations":[{"op":"add","statement":{"subject":{"id":"urn:s"},"predicate":{"id":"urn:p"},"object":{"value":"n"}}}]}`
	for name, pair := range map[string][2]string{"plain with reader": {plain, reader}, "reader with plain": {reader, plain}, "plain with backup": {plain, backup}, "reader with mixed": {reader, mixed}, "mixed with metrics": {mixed, metrics}} {
		if got := ask(pair[0], door{"A2A", "knowledge/update", fmt.Sprintf(update, pair[1])}); !deniedText.MatchString(got) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	for name, row := range map[string]struct {
		credential, method, path string
		status                   int
	}{
		"backup takes one":           {backup, "POST", "/admin/backup", 200},
		"all three take one":         {both, "POST", "/admin/backup", 200},
		"an administrator takes one": {k.admin, "POST", "/admin/backup", 200},
		"reader takes none":          {reader, "POST", "/admin/backup", 403},
		"plain takes none":           {plain, "POST", "/admin/backup", 403},
		"backup checks nothing":      {backup, "POST", "/admin/check", 403},
		"backup reads no metrics":    {backup, "GET", "/metrics", 403},
		"metrics reads metrics":      {metrics, "GET", "/metrics", 200},
		"backup sees what is public": {backup, "GET", "/.well-known/agent-card.json", 200},
		"reader reads no metrics":    {reader, "GET", "/metrics", 403},
		"metrics takes no backup":    {metrics, "POST", "/admin/backup", 403},
		"reader follows the changes": {reader, "HEAD", "/data?format=nt", 200},
		"backup follows no change":   {backup, "GET", "/changes", 403},
		"backup makes no call":       {backup, "POST", "/", 403},
	} {
		status, text := k.send(row.method, row.path, row.credential, "")
		if status != row.status {
			t.Errorf("%s: got %d, want %d: %.200s", name, status, row.status, text)
		}
	}
	if after := head(); after != before {
		t.Errorf("the store changed: %s, before %s", after, before)
	}

	// Without roles, and with a further role, the same requests are allowed.
	for _, d := range doorsThatChange[:len(doorsThatChange)-2] {
		for name, credential := range map[string]string{"plain": plain, "mixed": mixed} {
			if got := ask(credential, d); deniedText.MatchString(got) {
				t.Errorf("%s: %s %s %s: got %s", name, d.over, d.path, d.body, got)
			}
		}
	}
}

// through is the answer at a door to a credential.
func (k *knowing) through(credential string, d door) string {
	k.t.Helper()
	method, path, body := d.over, d.path, d.body
	var headers []string
	switch d.over {
	case "A2A", "hub":
		method, path, body = http.MethodPost, "/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, d.path, d.body)
		if d.over == "hub" {
			path = "/agents/bot/a2a"
		}
	case "MCP":
		method, path, body = http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, d.path, d.body)
		headers = []string{"Accept", "application/json, text/event-stream"}
	case "GraphQL":
		return k.graphql(credential, d.body)
	case "socket":
		return k.operation(credential, d.body)
	case "WS":
		_, response, err := websocket.Dial(k.t.Context(), k.url+"/rest/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + credential}}})
		if err != nil && response != nil && response.StatusCode == http.StatusForbidden {
			return "PERMISSION_DENIED"
		}
		return k.frame(credential, d.body)
	case "chat":
		return k.chatAnswer(credential, d.body)
	}
	switch {
	case strings.HasPrefix(path, "/data"):
		headers = []string{"Content-Type", "application/n-triples"}
	case strings.HasPrefix(path, "/api/v1"):
		headers = []string{"If-Match", "1"}
	}
	_, text := k.send(method, path, credential, body, headers...)
	return text
}

// chatAnswer is the answer to a frame of AgentChat, whose socket has the credential in its
// first frame.
func (k *knowing) chatAnswer(credential, frame string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), cli.RequestTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, k.url+"/agentchat/ws", nil)
	if err != nil {
		k.t.Fatal(err)
	}
	defer conn.CloseNow()
	answer := ""
	for _, text := range []string{`{"type":"auth","token":"` + credential + `"}`, frame} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			k.t.Fatal(err)
		}
		_, raw, err := conn.Read(ctx)
		if err != nil {
			k.t.Fatal(err)
		}
		if answer = string(raw); strings.Contains(answer, `"type":"error"`) {
			break
		}
	}
	return answer
}

// operation is the first answer to a GraphQL operation over a socket whose first message
// has the credential: the refusal of the socket, if that is refused.
func (k *knowing) operation(credential, query string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), cli.RequestTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, k.url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		k.t.Fatal(err)
	}
	defer conn.CloseNow()
	payload, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		k.t.Fatal(err)
	}
	answer := ""
	for _, message := range []string{`{"type":"connection_init","payload":{"Authorization":"Bearer ` + credential + `"}}`, `{"id":"1","type":"subscribe","payload":` + string(payload) + `}`} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
			k.t.Fatal(err)
		}
		_, text, err := conn.Read(ctx)
		if websocket.CloseStatus(err) == 4403 {
			return "PERMISSION_DENIED"
		}
		if err != nil {
			k.t.Fatal(err)
		}
		answer = string(text)
	}
	return answer
}
