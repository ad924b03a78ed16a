package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"koine/cmd/koine/internal/cli"
)

// outsidersAsk is eve's requests about a task of others, with part of her answer: {task} is
// the task, {agent} its handler, {graph} the graph that it is in.
var outsidersAsk = []struct{ method, path, body, told string }{
	{"A2A", "GetTask", `{"id":"{task}"}`, "TASK_NOT_FOUND"},
	{"A2A", "GetTask", `{"id":"{task}","historyLength":-1}`, "-32602"},
	{"A2A", "CancelTask", `{"id":"{task}"}`, "TASK_NOT_FOUND"},
	{"A2A", "SubscribeToTask", `{"id":"{task}"}`, "TASK_NOT_FOUND"},
	{"A2A", "ListTasks", `{"contextId":"{task}"}`, `"tasks":[]`},
	{"A2A", "SendMessage", `{"message":{"messageId":"m","taskId":"{task}","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "TASK_NOT_FOUND"},
	{"A2A", "SendStreamingMessage", `{"message":{"messageId":"m","taskId":"{task}","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "TASK_NOT_FOUND"},
	{"A2A", "CreateTaskPushNotificationConfig", `{"taskId":"{task}","url":"https://example.org/x"}`, "TASK_NOT_FOUND"},
	{"A2A", "GetTaskPushNotificationConfig", `{"taskId":"{task}","id":"hook"}`, "TASK_NOT_FOUND"},
	{"A2A", "ListTaskPushNotificationConfigs", `{"taskId":"{task}"}`, "TASK_NOT_FOUND"},
	{"A2A", "DeleteTaskPushNotificationConfig", `{"taskId":"{task}","id":"hook"}`, "TASK_NOT_FOUND"},
	{"A2A", "tasks/get", `{"id":"{task}"}`, "TASK_NOT_FOUND"},
	{"A2A", "tasks/cancel", `{"id":"{task}"}`, "TASK_NOT_FOUND"},
	{"A2A", "tasks/resubscribe", `{"id":"{task}"}`, "TASK_NOT_FOUND"},
	{"A2A", "message/send", `{"message":{"kind":"message","messageId":"m","taskId":"{task}","role":"user","parts":[{"kind":"text","text":"x"}]}}`, "TASK_NOT_FOUND"},
	{"A2A", "message/stream", `{"message":{"kind":"message","messageId":"m","taskId":"{task}","role":"user","parts":[{"kind":"text","text":"x"}]}}`, "TASK_NOT_FOUND"},
	{"A2A", "tasks/pushNotificationConfig/set", `{"taskId":"{task}","pushNotificationConfig":{"url":"https://example.org/x"}}`, "TASK_NOT_FOUND"},
	{"A2A", "tasks/pushNotificationConfig/get", `{"id":"{task}","pushNotificationConfigId":"hook"}`, "TASK_NOT_FOUND"},
	{"A2A", "tasks/pushNotificationConfig/list", `{"id":"{task}"}`, "TASK_NOT_FOUND"},
	{"A2A", "tasks/pushNotificationConfig/delete", `{"id":"{task}","pushNotificationConfigId":"hook"}`, "TASK_NOT_FOUND"},

	{"GET", "/agents/bot/a2a/http/tasks/{task}", "", "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/tasks/{task}:cancel", "", "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/tasks/{task}:subscribe", "", "TASK_NOT_FOUND"},
	{"GET", "/agents/bot/a2a/http/tasks/{task}:subscribe", "", "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/message:send", `{"message":{"messageId":"m","taskId":"{task}","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/message:stream", `{"message":{"messageId":"m","taskId":"{task}","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/tasks/{task}/pushNotificationConfigs", `{"url":"https://example.org/x"}`, "TASK_NOT_FOUND"},
	{"GET", "/agents/bot/a2a/http/tasks/{task}/pushNotificationConfigs", "", "TASK_NOT_FOUND"},
	{"GET", "/agents/bot/a2a/http/tasks/{task}/pushNotificationConfigs/hook", "", "TASK_NOT_FOUND"},
	{"DELETE", "/agents/bot/a2a/http/tasks/{task}/pushNotificationConfigs/hook", "", "TASK_NOT_FOUND"},
	{"GET", "/agents/bot/a2a/http/v1/tasks/{task}", "", "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/v1/tasks/{task}:cancel", "", "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/v1/tasks/{task}:subscribe", "", "TASK_NOT_FOUND"},
	{"GET", "/agents/bot/a2a/http/v1/tasks/{task}:subscribe", "", "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/v1/message:send", `{"message":{"messageId":"m","taskId":"{task}","role":"ROLE_USER","content":[{"text":"x"}]}}`, "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/v1/message:stream", `{"message":{"messageId":"m","taskId":"{task}","role":"ROLE_USER","content":[{"text":"x"}]}}`, "TASK_NOT_FOUND"},
	{"POST", "/agents/bot/a2a/http/v1/tasks/{task}/pushNotificationConfigs", `{"pushNotificationConfig":{"url":"https://example.org/x"}}`, "TASK_NOT_FOUND"},
	{"GET", "/agents/bot/a2a/http/v1/tasks/{task}/pushNotificationConfigs", "", "TASK_NOT_FOUND"},
	{"GET", "/agents/bot/a2a/http/v1/tasks/{task}/pushNotificationConfigs/hook", "", "TASK_NOT_FOUND"},
	{"DELETE", "/agents/bot/a2a/http/v1/tasks/{task}/pushNotificationConfigs/hook", "", "TASK_NOT_FOUND"},

	{"GET", "/rest/tasks/{task}", "", "TASK_NOT_FOUND"},
	{"PUT", "/rest/tasks/{task}", `{"state":"completed"}`, "TASK_NOT_FOUND"},
	{"PUT", "/rest/tasks/{task}", `{"state":"failed","error":{"code":"CANCELED"}}`, "TASK_NOT_FOUND"},
	{"DELETE", "/rest/tasks/{task}", "", "TASK_NOT_FOUND"},
	{"GET", "/rest/messages/{task}.1", "", "MESSAGE_NOT_FOUND"},
	{"GET", "/rest/tasks?parentId={task}", "", `"tasks":[]`},
	{"POST", "/rest/agents/bot/messages", `{"taskId":"{task}","message":[{"type":"text","content":"x"}]}`, "TASK_NOT_FOUND"},
	{"WS", "", `{"requestId":1,"type":"task.updated","task":{"id":"{task}","state":"in_progress"}}`, "TASK_NOT_FOUND"},
	{"WS", "", `{"requestId":1,"type":"task.completed","task":{"id":"{task}"}}`, "TASK_NOT_FOUND"},
	{"WS", "", `{"requestId":1,"type":"message","agentId":"bot","taskId":"{task}","message":[{"type":"text","content":"x"}]}`, "TASK_NOT_FOUND"},

	{"GET", "/agents/{agent}/mailbox", "", "SOURCE_FORBIDDEN"},
	{"DELETE", "/agents/{agent}/mailbox/{task}", "", "SOURCE_FORBIDDEN"},
	{"DELETE", "/agents/{agent}/mailbox/{task}.1", "", "SOURCE_FORBIDDEN"},
	{"DELETE", "/agents/eve/mailbox/{task}.1", "", "TASK_NOT_FOUND"},
	{"GET stream", "/rest/tasks/{task}", "", "TASK_NOT_FOUND"},
	{"POST", "/agents/{agent}/mailbox/{task}", `{"state":"TASK_STATE_COMPLETED"}`, "SOURCE_FORBIDDEN"},
	{"POST", "/agents/eve/mailbox/{task}", `{"state":"TASK_STATE_COMPLETED"}`, "TASK_NOT_FOUND"},

	{"GraphQL", "", `{ task(id: "{task}") { id status { state } messages { nodes { text } } artifacts { id text } } }`, "TASK_NOT_FOUND"},
	{"GraphQL", "", `{ tasks(parentId: "{task}") { totalCount nodes { id } } }`, `"totalCount":0`},
	{"GraphQL", "", `{ tasks(contextId: "{task}", handlerId: "bot") { totalCount nodes { id } } }`, `"totalCount":0`},
	{"GraphQL", "", `mutation { sendMessage(input: {taskId: "{task}", parts: [{text: "x"}]}) { replayed } }`, "TASK_NOT_FOUND"},
	{"GraphQL", "", `mutation { reportTask(input: {taskId: "{task}", state: WORKING}) { task { id } } }`, "TASK_NOT_FOUND"},
	{"GraphQL", "", `mutation { cancelTask(input: {taskId: "{task}"}) { task { id } } }`, "TASK_NOT_FOUND"},
	{"GraphQL", "", `mutation { deleteTask(input: {taskId: "{task}"}) { taskId } }`, "TASK_NOT_FOUND"},
	{"GraphQL", "", `{ entity(iri: "urn:koine:task:{task}", view: {allGraphs: true}) { types degree label asTask { id } out { totalCount } in { totalCount } history { nodes { op } } } }`, `"asTask":null`},
	{"GraphQL", "", `{ entity(iri: "urn:koine:artifact:{task}/a", view: {allGraphs: true}) { types degree } }`, `"entity":null`},
	{"GraphQL", "", `{ entity(iri: "urn:koine:task:{task}/message/1", view: {allGraphs: true}) { types degree } }`, `"entity":null`},
	{"GraphQL", "", `{ entities(where: {iri: {in: ["urn:koine:artifact:{task}/a", "urn:koine:task:{task}/message/1"]}}, view: {allGraphs: true}) { totalCount nodes { iri types } } }`, `"totalCount":0`},
	{"GraphQL", "", `{ statements(where: {subject: {eq: "urn:koine:artifact:{task}/a"}}, view: {graphs: ["{graph}"]}) { totalCount } }`, ""},
	{"GraphQL", "", `{ graph(iri: "{graph}") { iri } }`, `"graph":null`},
	{"GraphQL", "", `{ match(pattern: {triples: [{s: "urn:koine:artifact:{task}/a", p: "?p", o: "?o"}]}, view: {allGraphs: true}) { totalCount nodes { values } } }`, `"totalCount":0`},
	{"GraphQL", "", `{ match(pattern: {triples: [{s: "?x", p: "koine:task", o: "urn:koine:task:{task}"}]}, view: {allGraphs: true}) { totalCount } }`, `"totalCount":0`},
	{"GraphQL", "", `{ match(pattern: {triples: [{s: "?x", p: "koine:taskMail|koine:taskHandler", o: "agent://{agent}"}]}, view: {allGraphs: true}) { totalCount } }`, `"totalCount":0`},
	{"GraphQL", "", `{ changes(where: {subject: {eq: "urn:koine:artifact:{task}/a"}}, view: {allGraphs: true}) { nodes { op } } }`, `"nodes":[]`},
	{"GraphQL", "", `{ audit(taskId: "{task}") { nodes { commit { method } } } }`, ""},
	{"GraphQL stream", "", `subscription { taskChanged(id: "{task}") { __typename } }`, "TASK_NOT_FOUND"},
	{"GraphQL stream", "", `subscription { taskChanged(id: "{task}", resume: "earliest") { __typename } }`, "TASK_NOT_FOUND"},
	{"A2A", "knowledge/query", `{"query":"{ task(id: \"{task}\") { id } }"}`, "TASK_NOT_FOUND"},

	{"GET", "/data?format=nq&graph={graph}", "", ""},
	{"HEAD", "/data?graph={graph}", "", "404"},
	{"PUT", "/data?graph={graph}", "{}", "200"}, // nothing is put where nothing is
	{"PUT", "/data?graph={graph}", `{"@id":"urn:s","urn:p":"x"}`, "RESERVED"},
	{"POST", "/data?graph={graph}", `{"@id":"urn:s","urn:p":"x"}`, "RESERVED"},
	{"DELETE", "/data?graph={graph}", "", "RESERVED"},
	{"GET", "/data?format=nt&subject=urn:koine:artifact:{task}/a&allGraphs=true", "", ""},
	// A stream that she may follow ends, here, with a statement of eve's own.
	{"GET", "/changes?allGraphs=true&resume=earliest&subject=urn:koine:task:{task}", "", "the end"},
	{"A2A", "knowledge/subscribe", `{"subscriptionQuery":"subscription { statementChanged(where: {subject: {eq: \"urn:koine:task:{task}\"}}, resume: \"earliest\", view: {allGraphs: true}) { ... on StatementChange { statement { predicate } op } } }"}`, "urn:end"},
	{"A2A", "knowledge/subscribe", `{"subscriptionQuery":"subscription { entityChanged(iri: \"urn:koine:task:{task}\", depth: 1, resume: \"earliest\", view: {allGraphs: true}) { ... on EntityChange { changes { statement { predicate } } entity { types } } } }"}`, "urn:end"},
}

// outsidersList is eve's requests for lists, with part of her answer.
var outsidersList = []struct{ method, path, body, told string }{
	{"A2A", "ListTasks", `{}`, `"tasks":[]`},
	{"GET", "/agents/bot/a2a/http/tasks", "", `"tasks":[]`},
	{"GET", "/rest/tasks", "", `"tasks":[]`},
	{"GET", "/agents/bot", "", `"id":"bot"`},
	{"GET", "/agents/bot/a2a", "", `"name":"Bot"`},
	{"GET", "/agents/bot/a2a/.well-known/agent-card.json", "", `"name":"Bot"`},
	{"GET", "/rest/agents/bot", "", `"id":"bot"`},
	{"GET", "/agentchat/agents/bot/reputation", "", `"tasks_completed":0`},
	{"GET", "/agentchat/me/feed", "", `"items":[]`},
	{"GET", "/agentchat/rooms", "", `"rooms":[]`},
	{"GraphQL", "", `{ tasks { totalCount nodes { id } } }`, `"totalCount":0`},
	{"GraphQL", "", `{ entities(first: 100, where: {type: {in: ["koine:Task", "koine:TaskMessage", "koine:Artifact", "koine:PushConfig"]}}, view: {allGraphs: true}) { totalCount nodes { iri } groups(first: 100, by: [{as: "t", property: "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"}]) { count } } }`, `"totalCount":0`},
	{"GraphQL", "", `{ vocabulary(view: {allGraphs: true}) { classes(first: 1000) { nodes { iri count } } predicates(first: 1000) { nodes { iri count } } graphs(first: 1000) { nodes { graph count } } } stats(view: {allGraphs: true}) { statements graphs predicates classes } }`, `"vocabulary"`},
	{"GraphQL", "", `{ match(first: 100, pattern: {triples: [{s: "?t", p: "koine:taskState|koine:taskCreator|koine:taskMail", o: "?o"}]}, view: {allGraphs: true}) { totalCount nodes { values } } }`, `"totalCount":0`},
	{"GraphQL", "", `{ entity(iri: "agent://bot", view: {allGraphs: true}) { degree in(first: 100) { totalCount } } }`, ""},
	{"GET", "/data?format=nq", "", "200 application/n-quads"},
	{"GET", "/data?format=nq&graph=urn:koine:graph:agents", "", "200 application/n-quads"},
}

// momentary is the parts that differ between two requests of any caller.
var momentary = regexp.MustCompile(`"(?:position|oldestPosition|timestamp|commitId|changeId|time|next_cursor)":"[^"]*"|"revision":\d+|(?m)^id: .*$`)

// TestOutsidersOfTasks proves that eve gets the same answer about a task of others, its
// messages, artifacts and push configurations and its handler's mailbox, over every
// protocol, as about one that never existed: to the byte; and that the lists that she reads
// do not change with it.
func TestOutsidersOfTasks(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	keys := map[string]string{}
	for _, agent := range []string{"ann", "bot", "eve"} {
		keys[agent], _ = k.create(`{agentId: "` + agent + `"}`)
	}
	if status, text := k.send(http.MethodPut, "/agents/bot", keys["bot"], `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	hears := func(method, path, body string) string {
		t.Helper()
		return momentary.ReplaceAllString(k.overhear(keys["eve"], method, path, body), "…")
	}
	before := map[int]string{}
	for i, row := range outsidersList {
		if before[i] = hears(row.method, row.path, row.body); !strings.Contains(before[i], row.told) {
			t.Errorf("%s %s %s: got %s, want %s", row.method, row.path, row.body, before[i], row.told)
		}
	}
	var sent struct {
		Result struct{ Task struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(sendTo(t, k.url, "bot", keys["ann"], "a secret", atOnce)), &sent); err != nil {
		t.Fatal(err)
	}
	id := sent.Result.Task.ID
	if status, text := k.send(http.MethodPost, "/agents/bot/mailbox/"+id, keys["bot"], `{"state":"TASK_STATE_WORKING","artifacts":[{"artifactId":"a","parts":[{"text":"hidden"}]}]}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	for _, call := range []string{
		`"CreateTaskPushNotificationConfig","params":{"taskId":"` + id + `","id":"hook","url":"https://example.org/hook"}`,
		`"SendMessage","params":{"message":{"messageId":"2","role":"ROLE_USER","parts":[{"text":"waits"}]},"configuration":{"returnImmediately":true}}`,
	} {
		if status, text := k.send(http.MethodPost, "/agents/bot/a2a", keys["ann"], `{"jsonrpc":"2.0","id":1,"method":`+call+`}`); status != http.StatusOK || !strings.Contains(text, `"result"`) {
			t.Fatal(status, text)
		}
	}
	for i, row := range outsidersList {
		if got := hears(row.method, row.path, row.body); got != before[i] {
			t.Errorf("%s %s %s: got\n%s\nwhere nothing was hidden\n%s", row.method, row.path, row.body, got, before[i])
		}
	}

	type place struct{ task, agent, graph string }
	journal := func(agents ...string) string {
		for i, a := range agents {
			agents[i] = url.QueryEscape("agent://" + a)
		}
		return "urn:koine:graph:journal:tasks:" + strings.Join(agents, ":")
	}
	hidden, absent := place{id, "bot", journal("ann", "bot")}, place{"0192aaaa-0000-7000-8000-000000000001", "nob", journal("ann", "nob")}
	ends := `{op: add, statement: {subject: {id: "urn:koine:task:%s"}, predicate: {id: "urn:end"}, object: {value: "the end"}}}`
	tells(t, k.graphql(keys["eve"], `mutation { applyPatches(input: {patches: [`+fmt.Sprintf(ends+", "+ends, hidden.task, absent.task)+`]}) { success } }`), `"success":true`)
	about := func(p place, method, path, body string) string {
		t.Helper()
		names := []string{"{task}", p.task, "{agent}", p.agent, "{graph}", p.graph}
		fill := strings.NewReplacer(names...)
		escaped := strings.NewReplacer("{task}", p.task, "{agent}", p.agent, "{graph}", url.QueryEscape(p.graph))
		text := hears(method, escaped.Replace(path), fill.Replace(body))
		// Her own names are put back.
		return strings.NewReplacer(p.graph, "{graph}", url.QueryEscape(p.graph), "{graph}", p.task, "{task}", "agent://"+p.agent, "{agent}").Replace(text)
	}
	for _, row := range outsidersAsk {
		want := about(absent, row.method, row.path, row.body)
		if !strings.Contains(want, row.told) {
			t.Errorf("%s %s %s:\n of what is not there eve is told %s\nwant %s", row.method, row.path, row.body, want, row.told)
		}
		if got := about(hidden, row.method, row.path, row.body); got != want {
			t.Errorf("%s %s %s:\n got %s\nwant %s", row.method, row.path, row.body, got, want)
		}
	}
	// Participants see all of it.
	tells(t, k.graphql(keys["ann"], `{ task(id: "`+id+`") { artifacts { text } messageCount } }`), `"hidden"`)
}

// overhear is the output for the holder of a key: the status and the body of an answer, a
// frame of a socket, a stream up to "the end".
func (k *knowing) overhear(key, method, path, body string) string {
	k.t.Helper()
	accept := "application/json"
	switch method {
	case "WS":
		return k.frame(key, body)
	case "GET stream":
		method, accept = http.MethodGet, "text/event-stream"
	case "A2A":
		method, path, body = http.MethodPost, "/agents/bot/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, path, body)
		if strings.Contains(body, "knowledge/") { // koine's own
			path = "/a2a"
		}
	case "GraphQL", "GraphQL stream":
		raw, err := json.Marshal(map[string]string{"query": body})
		if err != nil {
			k.t.Fatal(err)
		}
		if method == "GraphQL stream" {
			accept = "text/event-stream"
		}
		method, path, body = http.MethodPost, "/graphql", string(raw)
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), cli.RequestTimeout/2)
	defer cancel()
	r := asking(ctx, k.t, method, k.url+path, key, body)
	r.Header.Set("Accept", accept)
	if strings.HasPrefix(path, "/changes") || strings.HasPrefix(path, "/data") {
		r.Header.Del("Accept")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer response.Body.Close()
	text := fmt.Sprintln(response.StatusCode, response.Header.Get("Content-Type"))
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		raw, err := io.ReadAll(response.Body)
		if err != nil {
			k.t.Fatal(err)
		}
		return text + string(raw)
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		text += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "the end") || strings.Contains(lines.Text(), "urn:end") {
			return text
		}
	}
	if ctx.Err() != nil {
		k.t.Fatalf("%s %s %s goes on: %s", method, path, body, text)
	}
	return text
}

// frame is the answer to a frame of a socket.
func (k *knowing) frame(key, frame string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), cli.RequestTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, k.url+"/rest/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + key}}})
	if err != nil {
		k.t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
		k.t.Fatal(err)
	}
	_, raw, err := conn.Read(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(raw)
}
