package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// voice is a protocol in which the scenario is played: what ann asks for, and what
// bot says of it.
type voice interface {
	send(messageID, text string) (task string)
	working(task string)
	done(task string)
	cancel(task string)
}

// The same scenario leaves the same graph, whatever protocol it is played in: a task
// that is done, with an artifact, and one that is canceled.
func TestOneScenarioInFourVoices(t *testing.T) {
	graphs := map[string]string{}
	for name, speak := range map[string]func(*testing.T, string) voice{
		"A2A 1.0": func(t *testing.T, url string) voice {
			return &a2aVoice{t, url, "SendMessage", "CancelTask", "ROLE_USER", ""}
		},
		"A2A 0.3": func(t *testing.T, url string) voice {
			return &a2aVoice{t, url, "message/send", "tasks/cancel", "user", `"kind":"text",`}
		},
		"REST":      func(t *testing.T, url string) voice { return &restVoice{t, url} },
		"WebSocket": func(t *testing.T, url string) voice { return newSocketVoice(t, url) },
	} {
		t.Run(name, func(t *testing.T) { graphs[name] = play(t, speak) })
	}
	for name, graph := range graphs {
		if graph != graphs["A2A 1.0"] || graph == "" {
			t.Errorf("%s leaves\n%s\nA2A 1.0 leaves\n%s", name, graph, graphs["A2A 1.0"])
		}
	}
}

func play(t *testing.T, speak func(*testing.T, string) voice) string {
	_, address := startServer(t)
	if status, text := ask(t, http.MethodPut, address+"/agents/bot", "bot", `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	v := speak(t, address)
	first := v.send("m1", "weather?")
	v.working(first)
	v.done(first)
	v.cancel(v.send("m2", "and tomorrow?"))
	// What ann reads of it as statements.
	graph := "urn:koine:graph:journal:tasks:" + url.QueryEscape("agent://ann") + ":" + url.QueryEscape("agent://bot")
	status, text := ask(t, http.MethodGet, address+"/data?format=nq&graph="+url.QueryEscape(graph), "ann", "")
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	text = strings.ReplaceAll(text, first, "<first>")
	for _, mask := range []struct{ pattern, with string }{
		{`[0-9a-f]{8}-[0-9a-f-]{27}`, "<id>"}, {`\d{4}-\d\d-\d\dT[0-9:.]+Z`, "<time>"}, {`"[0-9a-f]{64}"`, `"<hash>"`}, {`"-\d{18,}"`, `"<moment>"`},
	} {
		text = regexp.MustCompile(mask.pattern).ReplaceAllString(text, mask.with)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	if len(lines) < 30 || !strings.Contains(text, "COMPLETED") || !strings.Contains(text, "CANCELED") || !strings.Contains(text, "sunny") {
		t.Fatalf("too little:\n%s", text)
	}
	return strings.Join(lines, "\n")
}

var taskID = regexp.MustCompile(`"(?:id|taskId)":"([0-9a-f]{8}-[0-9a-f-]{27})"`)

func taskIn(t *testing.T, status int, text string) string {
	t.Helper()
	found := taskID.FindStringSubmatch(text)
	if found == nil || status > http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	return found[1]
}

// a2aVoice asks over JSON-RPC, and answers through the mailbox.
type a2aVoice struct {
	t                        *testing.T
	url                      string
	sends, cancels, role, of string
}

func (v *a2aVoice) send(messageID, text string) string {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"message":{"messageId":%q,"role":%q,"parts":[{%s"text":%q}]},"configuration":{"returnImmediately":true,"blocking":false}}}`,
		v.sends, messageID, v.role, v.of, text)
	status, answer := ask(v.t, http.MethodPost, v.url+"/agents/bot/a2a", "ann", body)
	return taskIn(v.t, status, answer)
}

func (v *a2aVoice) report(task, body string) {
	if status, text := ask(v.t, http.MethodPost, v.url+"/agents/bot/mailbox/"+task, "bot", body); status != http.StatusOK {
		v.t.Fatal(status, text)
	}
}

func (v *a2aVoice) working(task string) { v.report(task, `{"state":"TASK_STATE_WORKING"}`) }

func (v *a2aVoice) done(task string) {
	v.report(task, `{"state":"TASK_STATE_COMPLETED","artifacts":[{"artifactId":"a","parts":[{"text":"sunny"}],"lastChunk":true}]}`)
}

func (v *a2aVoice) cancel(task string) {
	status, text := ask(v.t, http.MethodPost, v.url+"/agents/bot/a2a", "ann", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"id":%q}}`, v.cancels, task))
	taskIn(v.t, status, text)
}

// restVoice does all of it over REST.
type restVoice struct {
	t   *testing.T
	url string
}

func (v *restVoice) send(messageID, text string) string {
	status, answer := ask(v.t, http.MethodPost, v.url+"/rest/agents/bot/messages", "ann", fmt.Sprintf(`{"messageId":%q,"message":[{"type":"text","content":%q}]}`, messageID, text))
	return taskIn(v.t, status, answer)
}

func (v *restVoice) put(who, task, body string) {
	status, text := ask(v.t, http.MethodPut, v.url+"/rest/tasks/"+task, who, body)
	taskIn(v.t, status, text)
}

const restDone = `"artifacts":[{"id":"a","type":"message","content":[{"type":"text","content":"sunny"}]}]`

func (v *restVoice) working(task string) { v.put("bot", task, `{"state":"in_progress"}`) }
func (v *restVoice) done(task string)    { v.put("bot", task, `{"state":"completed",`+restDone+`}`) }
func (v *restVoice) cancel(task string) {
	v.put("ann", task, `{"state":"failed","error":{"code":"CANCELED"}}`)
}

// socketVoice does all of it over two sockets.
type socketVoice struct {
	t        *testing.T
	ann, bot *websocket.Conn
}

func newSocketVoice(t *testing.T, url string) *socketVoice {
	dial := func(who string) *websocket.Conn {
		conn, _, err := websocket.Dial(t.Context(), url+"/rest/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {who}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		return conn
	}
	return &socketVoice{t, dial("ann"), dial("bot")}
}

// say sends a frame, and waits for the answer to it.
func (v *socketVoice) say(conn *websocket.Conn, frame string) string {
	v.t.Helper()
	if err := conn.Write(v.t.Context(), websocket.MessageText, []byte(`{"requestId":"r",`+frame+`}`)); err != nil {
		v.t.Fatal(err)
	}
	for {
		_, raw, err := conn.Read(v.t.Context())
		if err != nil {
			v.t.Fatal(err)
		}
		var answer struct {
			RequestID string
			Type      string
			TaskID    string
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			v.t.Fatal(err)
		}
		if answer.RequestID == "r" {
			if answer.Type == "error" {
				v.t.Fatalf("%s", raw)
			}
			return cmp.Or(answer.TaskID, "none")
		}
	}
}

func (v *socketVoice) send(messageID, text string) string {
	return v.say(v.ann, fmt.Sprintf(`"type":"message","agentId":"bot","messageId":%q,"message":[{"type":"text","content":%q}]`, messageID, text))
}

func (v *socketVoice) working(task string) {
	v.say(v.bot, fmt.Sprintf(`"type":"task.updated","task":{"id":%q,"state":"in_progress"}`, task))
}

func (v *socketVoice) done(task string) {
	v.say(v.bot, fmt.Sprintf(`"type":"task.completed","task":{"id":%q,%s}`, task, restDone))
}

func (v *socketVoice) cancel(task string) {
	v.say(v.ann, fmt.Sprintf(`"type":"task.updated","task":{"id":%q,"state":"failed","error":{"code":"CANCELED"}}`, task))
}
