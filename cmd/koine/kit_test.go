package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/internal/slowtest"
)

// The checks of the public A2A compatibility kit for a server over JSON-RPC, by the names
// of its requirements. Like the kit, the test reuses the same message ids. Checks that it
// skips for a server with all capabilities are left out.
func TestCompatibilityKit(t *testing.T) {
	slowtest.Long(t)
	_, url := startServer(t, "--conformance-agent", "--allow-private-webhooks")
	k := &kit{t, url}
	for name, check := range map[string]func(*kit){
		"CORE-SEND-001 a task or a message": func(k *kit) {
			k.state(k.send("complete-task", ""), "COMPLETED")
			if m := k.call("SendMessage", tckMessage("message-response", "")); m["message"] == nil || len(m) != 1 {
				k.Errorf("a message: %v", m)
			}
		},
		"CORE-SEND-002 not to what has ended": func(k *kit) {
			done := k.send("complete-task", "")
			k.refused(-32004, "UNSUPPORTED_OPERATION", "SendMessage", tckMessage("terminal", id(done)))
		},
		"CORE-SEND-003 media types": func(k *kit) {
			k.refused(-32005, "CONTENT_TYPE_NOT_SUPPORTED", "SendMessage",
				`{"message":{"role":"ROLE_USER","messageId":"tck-send-003","parts":[{"raw":"dGNr","mediaType":"application/x-unsupported-tck-type"}]}}`)
		},
		"CORE-STREAM-001, JSONRPC-SSE-001": func(k *kit) {
			if events := k.stream("SendStreamingMessage", tckMessage("stream-001", "")); len(events) == 0 {
				k.Error("no events")
			}
		},
		"CORE-STREAM-002 one message": func(k *kit) {
			if events := k.stream("SendStreamingMessage", tckMessage("stream-002", "")); len(events) != 1 || events[0]["message"] == nil {
				k.Errorf("%v", events)
			}
		},
		"CORE-STREAM-003, STREAM-ORDER-001 a task to its end": func(k *kit) {
			for _, name := range []string{"stream-003", "stream-ordering-001", "stream-artifact-text", "stream-artifact-file", "stream-artifact-chunked"} {
				events := k.stream("SendStreamingMessage", tckMessage(name, ""))
				kinds := kindsOf(events)
				want := []string{"task", "statusUpdate", "artifactUpdate", "statusUpdate"}
				if name == "stream-artifact-chunked" {
					want = slices.Insert(want, 2, "artifactUpdate")
				}
				if !slices.Equal(kinds, want) || stateOf(events[1]["statusUpdate"]) != "TASK_STATE_WORKING" || stateOf(events[len(events)-1]["statusUpdate"]) != "TASK_STATE_COMPLETED" {
					k.Errorf("%s: %v", name, events)
				}
			}
		},
		"CORE-GET-001": func(k *kit) {
			done := k.send("complete-task", "")
			if got := k.call("GetTask", byID(done)); got["id"] != done["id"] || stateOf(got) != "TASK_STATE_COMPLETED" {
				k.Errorf("%v", got)
			}
		},
		"CORE-GET-002, JSONRPC-SSE-002": func(k *kit) {
			k.refused(-32001, "TASK_NOT_FOUND", "GetTask", `{"id":"tck-nonexistent-get-002"}`)
		},
		"CORE-LIST-001 … 005": func(k *kit) {
			for range 3 {
				k.send("complete-task", "")
			}
			page := k.call("ListTasks", `{"context_id":"none"}`)
			if len(page["tasks"].([]any)) != 0 || page["nextPageToken"] != "" {
				k.Errorf("of no context: %v", page)
			}
			first := k.call("ListTasks", `{"page_size":2,"include_artifacts":false}`)
			list, token := first["tasks"].([]any), first["nextPageToken"].(string)
			if len(list) != 2 || token == "" {
				k.Errorf("a page: %v", first)
			}
			second := k.call("ListTasks", fmt.Sprintf(`{"page_size":2,"page_token":%q}`, token))["tasks"].([]any)
			if len(second) == 0 || slices.ContainsFunc(list, func(one any) bool { return one.(object)["id"] == second[0].(object)["id"] }) {
				k.Errorf("the next: %v", second)
			}
			all := k.call("ListTasks", `{"pageSize":100}`)["tasks"].([]any)
			if !slices.IsSortedFunc(all, func(a, b any) int { return strings.Compare(timestampOf(b), timestampOf(a)) }) {
				k.Errorf("not in order: %v", all)
			}
			if slices.ContainsFunc(all, func(one any) bool { _, there := one.(object)["artifacts"]; return there }) {
				k.Error("artifacts, which nobody asked for")
			}
		},
		"CORE-CANCEL-001": func(k *kit) {
			open := k.send("input-required", "")
			if got := k.call("CancelTask", byID(open)); got["id"] != open["id"] || stateOf(got) != "TASK_STATE_CANCELED" {
				k.Errorf("%v", got)
			}
			k.state(k.send("input-required", ""), "INPUT_REQUIRED") // the kit needs another under the same id
		},
		"CORE-CANCEL-002": func(k *kit) {
			k.refused(-32002, "TASK_NOT_CANCELABLE", "CancelTask", byID(k.send("complete-task", "")))
		},
		"CORE-CANCEL-003": func(k *kit) {
			k.refused(-32001, "TASK_NOT_FOUND", "CancelTask", `{"id":"tck-nonexistent-cancel-003"}`)
		},
		"CORE-EXECUTION-MODE-001": func(k *kit) {
			k.state(k.send("delayed-complete", `,"configuration":{"returnImmediately":false}`), "COMPLETED")
			open := k.send("input-required", "")
			k.state(open, "INPUT_REQUIRED")
			k.state(k.task("SendMessage", tckMessage("complete-task", id(open))), "COMPLETED")
		},
		"CORE-EXECUTION-MODE-002": func(k *kit) {
			if got := k.send("delayed-complete", `,"configuration":{"returnImmediately":true}`); stateOf(got) == "TASK_STATE_COMPLETED" {
				k.Errorf("it waited: %v", got)
			}
		},
		"AUTH-INTASK-001, 002": func(k *kit) {
			open := k.send("auth-required", "")
			k.state(open, "AUTH_REQUIRED")
			k.state(k.call("GetTask", byID(open)), "AUTH_REQUIRED")
		},
		"CORE-ERR-001, JSONRPC-ERR-001": func(k *kit) {
			k.refused(-32601, "", "NonExistentMethod", `{}`)
		},
		"CORE-ERR-002": func(k *kit) {
			k.refused(-32602, "INVALID", "SendMessage", `{}`)
		},
		"CORE-MULTI-001a, 003": func(k *kit) {
			a, b := k.send("complete-task", ""), k.send("complete-task", "")
			if a["contextId"] == "" || a["id"] == "" || a["id"] == b["id"] || a["contextId"] == b["contextId"] {
				k.Errorf("%v, %v", a, b)
			}
		},
		"CORE-MULTI-002": func(k *kit) {
			got := k.task("SendMessage", `{"message":{"role":"ROLE_USER","messageId":"tck-complete-task-1","contextId":"tck-client-context-001","parts":[{"text":"x"}]}}`)
			if got["contextId"] != "tck-client-context-001" {
				k.Errorf("%v", got)
			}
		},
		"CORE-MULTI-004": func(k *kit) {
			k.refused(-32001, "TASK_NOT_FOUND", "SendMessage", tckMessage("multi-004", "tck-nonexistent-multi-004"))
		},
		"CORE-MULTI-005": func(k *kit) {
			open := k.send("input-required", "")
			if got := k.task("SendMessage", tckMessage("infer-ctx", id(open))); got["contextId"] != open["contextId"] {
				k.Errorf("%v", got)
			}
		},
		"CORE-MULTI-006": func(k *kit) {
			for _, name := range []string{"complete-task", "input-required"} {
				task := k.send(name, "")
				params := fmt.Sprintf(`{"message":{"role":"ROLE_USER","messageId":"tck-mismatch","taskId":%q,"contextId":"tck-wrong-context","parts":[{"text":"x"}]}}`, id(task))
				if _, e := k.ask("SendMessage", params); e == nil {
					k.Errorf("%s: another context is taken", name)
				}
			}
		},
		"CORE-HIST-001 … 006": func(k *kit) {
			open := k.send("input-required", "")
			done := k.task("SendMessage", strings.TrimSuffix(tckMessage("complete-task", id(open)), "}")+`,"configuration":{"historyLength":0}}`)
			if _, there := done["history"]; there {
				k.Errorf("historyLength 0 of SendMessage: %v", done)
			}
			read := func(n int) []any {
				history, _ := k.call("GetTask", fmt.Sprintf(`{"id":%q,"history_length":%d}`, id(open), n))["history"].([]any)
				return history
			}
			if none, one, all := read(0), read(1), read(10); none != nil || len(one) != 1 || len(all) < 2 ||
				all[0].(object)["messageId"] != "tck-input-required-5f0c2a1b" || all[len(all)-1].(object)["messageId"] != "tck-complete-task-5f0c2a1b" ||
				fmt.Sprint(all[0].(object)["parts"]) != "[map[text:Hello]]" {
				k.Errorf("%v, %v, %v", none, one, all)
			}
		},
		"STREAM-SUB-001, 002, STREAM-ORDER-002 … 004": func(k *kit) {
			open := k.send("input-required", "")
			closed, other, third := k.follow(open), k.follow(open), k.follow(open)
			for _, events := range []*reading{closed, other, third} {
				if first := events.next(); stateOf(first["task"]) != "TASK_STATE_INPUT_REQUIRED" {
					k.Errorf("the first: %v", first)
				}
			}
			closed.body.Close()
			k.state(k.task("SendMessage", tckMessage("complete-task", id(open))), "COMPLETED")
			a, b := other.rest(), third.rest()
			if len(a) == 0 || fmt.Sprint(a) != fmt.Sprint(b) || stateOf(a[len(a)-1]["statusUpdate"]) != "TASK_STATE_COMPLETED" {
				k.Errorf("%v, and %v", a, b)
			}
		},
		"STREAM-SUB-003": func(k *kit) {
			k.refused(-32004, "UNSUPPORTED_OPERATION", "SubscribeToTask", byID(k.send("complete-task", "")))
		},
		"STREAM-SUB-004": func(k *kit) {
			k.refused(-32001, "TASK_NOT_FOUND", "SubscribeToTask", `{"id":"tck-nonexistent-sub-004"}`)
		},
		"VER-SERVER-002": func(k *kit) {
			k.refused(-32009, "VERSION_NOT_SUPPORTED", "SendMessage", tckMessage("ver-002", ""), "A2A-Version: 99.0")
		},
		"VER-SERVER-001, 003, VER-CLIENT-002": func(k *kit) {
			for _, version := range []string{"A2A-Version:", "A2A-Version: 1.0", "A2A-Version: 1.0.7"} {
				if result, e := k.ask("SendMessage", tckMessage("complete-task", ""), version); e != nil || result["task"] == nil {
					k.Errorf("%s: %v, %v", version, result, e)
				}
			}
			params := strings.NewReplacer("ROLE_USER", "user", `{"text"`, `{"kind":"text","text"`).Replace(tckMessage("complete-task", ""))
			if result, e := k.ask("message/send", params, "A2A-Version: 0.3"); e != nil || result["kind"] != "task" {
				k.Errorf("0.3: %v, %v", result, e)
			}
		},
		"JSONRPC-SSE-002 the content type": func(k *kit) {
			k.refused(-32005, "CONTENT_TYPE_NOT_SUPPORTED", "SendMessage", tckMessage("error-code-005", ""), "Content-Type: text/plain")
		},
		"DM-*, DM-SERIAL-001 … 005": func(k *kit) {
			for _, name := range []string{"complete-task", "artifact-text", "artifact-file", "artifact-file-url", "artifact-data", "input-required", "reject-task"} {
				k.wellFormed("task", k.send(name, `,"tckExtraParam":42`))
			}
			k.wellFormed("message", k.call("SendMessage", tckMessage("message-response", ""))["message"])
		},
		"CARD-DISC-001, CARD-PROTO-001, 002, CARD-STRUCT-001, CARD-CACHE-001, 002": func(k *kit) {
			response, err := http.Get(k.url + "/.well-known/agent-card.json")
			if err != nil {
				k.Fatal(err)
			}
			defer response.Body.Close()
			var card object
			if err := json.NewDecoder(response.Body).Decode(&card); err != nil || !strings.Contains(response.Header.Get("Cache-Control"), "max-age=") || response.Header.Get("ETag") == "" {
				k.Errorf("%v, %v", err, response.Header)
			}
			for _, name := range []string{"name", "description", "version", "supportedInterfaces", "capabilities", "skills", "defaultInputModes", "defaultOutputModes"} {
				if card[name] == nil {
					k.Errorf("no %s", name)
				}
			}
			first := card["supportedInterfaces"].([]any)[0].(object)
			if first["protocolBinding"] != "JSONRPC" || first["protocolVersion"] != "1.0" || first["url"] != k.url+"/a2a" {
				k.Errorf("the first interface: %v", first)
			}
		},
		"CARD-EXT-001": func(k *kit) {
			if card := k.call("GetExtendedAgentCard", `{}`); card["name"] != "koine" {
				k.Errorf("%v", card)
			}
		},
		"PUSH-CREATE-001 … PUSH-DEL-002": func(k *kit) {
			done := id(k.send("complete-task", ""))
			ref := fmt.Sprintf(`{"taskId":%q,"id":"tck-push"}`, done)
			k.refused(-32001, "TASK_NOT_FOUND", "GetTaskPushNotificationConfig", ref)
			for _, create := range []bool{true, false} {
				if create {
					k.call("CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"tck-push","url":"https://example.com/tck-push-webhook"}`, done))
				}
				if got := k.call("GetTaskPushNotificationConfig", ref); got["id"] != "tck-push" || got["url"] != "https://example.com/tck-push-webhook" {
					k.Errorf("%v", got)
				}
			}
			if list := k.call("ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, done))["configs"].([]any); len(list) != 1 {
				k.Errorf("%v", list)
			}
			k.call("DeleteTaskPushNotificationConfig", ref)
			k.refused(-32001, "TASK_NOT_FOUND", "GetTaskPushNotificationConfig", ref)
			k.call("DeleteTaskPushNotificationConfig", ref)
		},
		"PUSH-DELIVER-001 … 003": func(k *kit) {
			type delivery struct {
				authorization string
				body          []byte
			}
			came := make(chan delivery, 10)
			hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				came <- delivery{r.Header.Get("Authorization"), body}
			}))
			defer hook.Close()
			open := k.send("input-required", fmt.Sprintf(
				`,"configuration":{"taskPushNotificationConfig":{"id":"tck-push","url":%q,"authentication":{"scheme":"Bearer","credentials":"tck-test-token"}}}`, hook.URL))
			k.task("SendMessage", tckMessage("complete-task", id(open)))
			select {
			case d := <-came:
				var event object
				if err := json.Unmarshal(d.body, &event); err != nil || d.authorization != "Bearer tck-test-token" || len(event) != 1 || event["statusUpdate"] == nil {
					k.Errorf("%v, %s, %s", err, d.authorization, d.body)
				}
			case <-time.After(time.Minute):
				k.Error("nothing came")
			}
		},
		"JSON-RPC 2.0": func(k *kit) {
			for body, want := range map[string]float64{
				`{"jsonrpc":"2.0","method":"SendMessage","params":{"foo":"bar"}`:                       -32700,
				`{"jsonrpc":"aaa","method":"SendMessage","params":{}}`:                                 -32600,
				`{"jsonrpc":"2.0","params":{}}`:                                                        -32600,
				`{"jsonrpc":"2.0","method":"SendMessage","params":{},"id":{"bad":"type"}}`:             -32600,
				`{"jsonrpc":"2.0","method":"SendMessageXXX","id":"3","params":{}}`:                     -32601,
				`{"jsonrpc":"2.0","method":"SendMessage","id":"4","params":{"":"not_a_dict"}}`:         -32602,
				`{"jsonrpc":"2.0","method":"SendMessage","id":"4","params":"text"}`:                    -32602,
				`{"jsonrpc":"2.0","method":"SendMessage","params":{"message":{"parts":"x"}},"id":"5"}`: -32602,
			} {
				status, text := ask(k.T, http.MethodPost, k.url, "tck", body)
				var answer struct{ Error object }
				if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || answer.Error["code"] != want {
					k.Errorf("%s: %d %s", body, status, text)
				}
			}
		},
		"both addresses, with a slash and without": func(k *kit) {
			for _, path := range []string{"", "/", "/a2a", "/a2a/"} {
				other := &kit{k.T, k.url + path}
				other.state(other.send("complete-task", ""), "COMPLETED")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { check(&kit{t, k.url}) })
	}
}

// kit sends the requests of the kit to a server.
type kit struct {
	*testing.T
	url string
}

type object = map[string]any

// tckMessage is the message of the kit under a name: to a task, if there is one.
func tckMessage(name, task string) string {
	to := ""
	if task != "" {
		to = fmt.Sprintf(`,"taskId":%q`, task)
	}
	return fmt.Sprintf(`{"message":{"role":"ROLE_USER","messageId":"tck-%s-5f0c2a1b","parts":[{"text":"Hello"}],"tckUnknownField":"x"%s}}`, name, to)
}

func id(task object) string     { return task["id"].(string) }
func byID(task object) string   { return fmt.Sprintf(`{"id":%q}`, id(task)) }
func timestampOf(of any) string { return of.(object)["status"].(object)["timestamp"].(string) }

func stateOf(of any) string {
	with, _ := of.(object)
	status, _ := with["status"].(object)
	state, _ := status["state"].(string)
	return state
}

func kindsOf(events []object) (out []string) {
	for _, e := range events {
		for kind := range e {
			out = append(out, kind)
		}
	}
	return out
}

func (k *kit) post(method, params string, headers ...string) *http.Response {
	k.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	request, err := http.NewRequestWithContext(k.Context(), http.MethodPost, k.url, strings.NewReader(body))
	if err != nil {
		k.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ":")
		request.Header.Set(name, strings.TrimSpace(value))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		k.Fatal(err)
	}
	return response
}

// ask is a call that may be refused.
func (k *kit) ask(method, params string, headers ...string) (result, failure object) {
	k.Helper()
	response := k.post(method, params, headers...)
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		k.Fatal(method, err)
	}
	text = bytes.TrimPrefix(text, []byte("data: ")) // a refused stream is one event
	var answer struct{ Result, Error object }
	if err := json.Unmarshal(text, &answer); err != nil {
		k.Fatal(method, err)
	}
	return answer.Result, answer.Error
}

func (k *kit) call(method, params string) object {
	k.Helper()
	result, failure := k.ask(method, params)
	if failure != nil {
		k.Fatalf("%s %s: %v", method, params, failure)
	}
	return result
}

// task is a call that answers with a task, and send such a message under a name.
func (k *kit) task(method, params string) object {
	k.Helper()
	task, _ := k.call(method, params)["task"].(object)
	if task == nil {
		k.Fatalf("%s %s: no task", method, params)
	}
	return task
}

func (k *kit) send(name, more string) object {
	k.Helper()
	return k.task("SendMessage", strings.TrimSuffix(tckMessage(name, ""), "}")+more+"}")
}

func (k *kit) state(task object, want string) {
	k.Helper()
	if got := stateOf(task); got != "TASK_STATE_"+want {
		k.Errorf("it is %s, not %s", got, want)
	}
}

// refused wants an error with an ErrorInfo of A2A's own, or of koine's.
func (k *kit) refused(code float64, reason, method, params string, headers ...string) {
	k.Helper()
	_, e := k.ask(method, params, headers...)
	if e["code"] != code || e["message"] == "" {
		k.Errorf("%s: %v, want %v", method, e, code)
		return
	}
	if reason == "" {
		return
	}
	domain := "koine"
	if code > -32100 {
		domain = "a2a-protocol.org"
	}
	list, _ := e["data"].([]any)
	if len(list) != 1 || list[0].(object)["@type"] != "type.googleapis.com/google.rpc.ErrorInfo" || list[0].(object)["reason"] != reason || list[0].(object)["domain"] != domain {
		k.Errorf("%s: %v, want %s of %s", method, e, reason, domain)
	}
}

// reading reads a stream.
type reading struct {
	k     *kit
	body  io.ReadCloser
	lines *bufio.Scanner
}

func (k *kit) open(method, params string) *reading {
	k.Helper()
	response := k.post(method, params, "Accept: text/event-stream")
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		k.Fatalf("%s: %d %s", method, response.StatusCode, kind)
	}
	return &reading{k, response.Body, bufio.NewScanner(response.Body)}
}

func (k *kit) follow(task object) *reading { return k.open("SubscribeToTask", byID(task)) }

func (k *kit) stream(method, params string) []object {
	k.Helper()
	return k.open(method, params).rest()
}

// next is the next event, nil behind the last.
func (r *reading) next() object {
	for r.lines.Scan() {
		data, ok := bytes.CutPrefix(r.lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var event struct {
			Version string `json:"jsonrpc"`
			ID      int
			Result  object
		}
		if err := json.Unmarshal(data, &event); err != nil || event.Version != "2.0" || event.ID != 1 || len(event.Result) != 1 {
			r.k.Errorf("%s: %v", data, err)
		}
		return event.Result
	}
	return nil
}

func (r *reading) rest() (out []object) {
	defer r.body.Close()
	for e := r.next(); e != nil; e = r.next() {
		out = append(out, e)
	}
	return out
}

// The members of the objects of A2A 1.0: one with an exclamation mark is required.
var membersOf = map[string][]string{
	"task":     {"id!", "contextId", "status!", "artifacts", "history", "metadata"},
	"status":   {"state!", "message", "timestamp"},
	"message":  {"messageId!", "contextId", "taskId", "role!", "parts!", "metadata", "extensions", "referenceTaskIds"},
	"artifact": {"artifactId!", "name", "description", "parts!", "metadata", "extensions"},
	"part":     {"text", "raw", "url", "data", "metadata", "filename", "mediaType"},
}

var instant = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$`)

// wellFormed compares an object with its definition in A2A, inside too.
func (k *kit) wellFormed(kind string, value any) {
	k.Helper()
	of, ok := value.(object)
	if !ok {
		k.Errorf("a %s is %v", kind, value)
		return
	}
	allowed := membersOf[kind]
	for _, name := range allowed {
		if name, must := strings.CutSuffix(name, "!"); must && of[name] == nil {
			k.Errorf("a %s without %s: %v", kind, name, of)
		}
	}
	for name, member := range of {
		if !slices.Contains(allowed, name) && !slices.Contains(allowed, name+"!") {
			k.Errorf("a %s with %s: %v", kind, name, of)
		}
		switch name {
		case "status":
			k.wellFormed("status", member)
		case "message":
			k.wellFormed("message", member)
		case "history", "artifacts", "parts":
			inner := map[string]string{"history": "message", "artifacts": "artifact", "parts": "part"}[name]
			for _, one := range member.([]any) {
				k.wellFormed(inner, one)
			}
		case "timestamp":
			if text, _ := member.(string); !instant.MatchString(text) {
				k.Errorf("the time %v", member)
			}
		case "state", "role":
			if text, _ := member.(string); !strings.HasPrefix(text, map[string]string{"state": "TASK_STATE_", "role": "ROLE_"}[name]) {
				k.Errorf("the %s %v", name, member)
			}
		}
	}
	if kind == "part" {
		contents := 0
		for _, name := range []string{"text", "raw", "url", "data"} {
			if _, there := of[name]; there {
				contents++
			}
		}
		if contents != 1 {
			k.Errorf("a part of %d: %v", contents, of)
		}
	}
}
