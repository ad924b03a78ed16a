package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"koine/cmd/koine/internal/cli"
)

// voice is a protocol in which the scenario is played: ann's requests, and bot's answers.
type voice interface {
	send(messageID, text string) (task string)
	// stream sends too; heard returns the events of the task to its end.
	stream(messageID, text string) (task string, heard func() string)
	working(task string)
	done(task string)
	cancel(task string)
	// query sends a query to koine, and returns the result.
	query(messageID, text string) string
}

// The same scenario leaves the same graph, over every protocol: an agent registers, and is
// sent a task that it does, with an artifact, one that is canceled, and one that is
// followed; and koine is queried.
func TestOneScenarioInFourVoices(t *testing.T) {
	graphs := map[string]string{}
	for name, speak := range map[string]func(*testing.T, string) voice{
		"A2A 1.0": func(t *testing.T, url string) voice {
			return &a2aVoice{t, url, "SendMessage", "SendStreamingMessage", "CancelTask", "ROLE_USER", ""}
		},
		"A2A 0.3": func(t *testing.T, url string) voice {
			return &a2aVoice{t, url, "message/send", "message/stream", "tasks/cancel", "user", `"kind":"text",`}
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
	third, heard := v.stream("m3", "and next week?")
	v.working(third)
	v.done(third)
	if got := heard(); got != "working sunny completed" {
		t.Errorf("of what was followed is heard: %s", got)
	}
	const there = `{"totalCount":3,"nodes":[{"status":{"state":"COMPLETED"},"artifacts":[{"text":"sunny"}]},{"status":{"state":"CANCELED"},"artifacts":[]},{"status":{"state":"COMPLETED"},"artifacts":[{"text":"sunny"}]}]}`
	if got := v.query("m4", `{ tasks(handlerId: "bot") { totalCount nodes { status { state } artifacts { text } } } }`); !strings.Contains(got, there) {
		t.Errorf("koine says %s", got)
	}
	// The statements that ann reads of it.
	text := ""
	const tasks = "urn:koine:graph:journal:tasks:agent%3A%2F%2Fann:agent%3A%2F%2F" // and the handler
	for _, graph := range []string{"urn:koine:graph:agents", tasks + "bot", tasks + "koine"} {
		status, quads := ask(t, http.MethodGet, address+"/data?format=nq&graph="+url.QueryEscape(graph), "ann", "")
		if status != http.StatusOK {
			t.Fatal(status, quads)
		}
		text += quads
	}
	text = strings.NewReplacer(first, "<first>", third, "<third>").Replace(text)
	for _, mask := range []struct{ pattern, with string }{
		{`[0-9a-f]{8}-[0-9a-f-]{27}`, "<id>"}, {`\d{4}-\d\d-\d\dT[0-9:.]+Z`, "<time>"}, {`"[0-9a-f]{64}"`, `"<hash>"`}, {`"-\d{18,}"`, `"<moment>"`},
		{`(position\\":\\"|revision\\":|durationMs\\":|statementsRead\\":)[0-9A-Za-z_.-]+`, "$1<measured>"},
		{`(taskArtifactBytes> ")\d{3,}`, "$1<bytes>"}, // of an answer that says how long it took
	} {
		text = regexp.MustCompile(mask.pattern).ReplaceAllString(text, mask.with)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	if len(lines) < 60 || !strings.Contains(text, "COMPLETED") || !strings.Contains(text, "CANCELED") || !strings.Contains(text, "sunny") || !strings.Contains(text, `"Bot"`) || !strings.Contains(text, "totalCount") {
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

// heardIn are words of the protocols for the events of a task, and their meaning here.
var heardIn = []struct{ word, heard string }{
	{`"TASK_STATE_WORKING"`, "working"}, {`"state":"working"`, "working"}, {`"state":"in_progress"`, "working"}, {"sunny", "sunny"},
	{`"TASK_STATE_COMPLETED"`, "completed"}, {`"state":"completed"`, "completed"}, {"event: complete", "completed"}, {`"type":"task.completed"`, "completed"},
}

// inWords translates the events of a task to the words of the test, each once.
func inWords(events ...string) string {
	var out []string
	for _, e := range events {
		for _, in := range heardIn {
			if strings.Contains(e, in.word) && !slices.Contains(out, in.heard) {
				out = append(out, in.heard)
			}
		}
	}
	return strings.Join(out, " ")
}

// openStream sends a request that is answered with events, and returns them one by one, ""
// at the end.
func openStream(t *testing.T, url, who, body string) (next func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cli.RequestTimeout)
	t.Cleanup(cancel)
	response, err := http.DefaultClient.Do(asking(ctx, t, http.MethodPost, url, who, body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	return func() (event string) {
		for lines.Scan() {
			if line := lines.Text(); line != "" {
				event += line + "\n"
			} else if strings.Contains(event, "data: ") {
				return event
			}
		}
		return ""
	}
}

// rest reads the events to the end.
func rest(next func() string) (events []string) {
	for e := next(); e != ""; e = next() {
		events = append(events, e)
	}
	return events
}

// a2aVoice uses JSON-RPC, and answers through the mailbox.
type a2aVoice struct {
	t                                 *testing.T
	url                               string
	sends, streams, cancels, role, of string
}

func (v *a2aVoice) call(method, messageID, text, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"message":{"messageId":%q,"role":%q,"parts":[{%s"text":%q}]}%s}}`, method, messageID, v.role, v.of, text, more)
}

func (v *a2aVoice) send(messageID, text string) string {
	status, answer := ask(v.t, http.MethodPost, v.url+"/agents/bot/a2a", "ann", v.call(v.sends, messageID, text, `,"configuration":{"returnImmediately":true,"blocking":false}`))
	return taskIn(v.t, status, answer)
}

func (v *a2aVoice) stream(messageID, text string) (string, func() string) {
	next := openStream(v.t, v.url+"/agents/bot/a2a", "ann", v.call(v.streams, messageID, text, ""))
	return taskIn(v.t, http.StatusOK, next()), func() string { return inWords(rest(next)...) }
}

func (v *a2aVoice) query(messageID, text string) string {
	_, answer := ask(v.t, http.MethodPost, v.url+"/a2a", "ann", v.call(v.sends, messageID, text, ""))
	return answer
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

func (v *restVoice) follow(agent, messageID, text string) (next func() string) {
	return openStream(v.t, v.url+"/rest/agents/"+agent+"/messages", "ann", fmt.Sprintf(`{"stream":true,"messageId":%q,"message":[{"type":"text","content":%q}]}`, messageID, text))
}

func (v *restVoice) stream(messageID, text string) (string, func() string) {
	next := v.follow("bot", messageID, text)
	return taskIn(v.t, http.StatusOK, next()), func() string { return inWords(rest(next)...) }
}

func (v *restVoice) query(messageID, text string) string {
	return strings.Join(rest(v.follow("koine", messageID, text)), "")
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
	told     []string // the frames to ann besides answers
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
	return &socketVoice{t: t, ann: dial("ann"), bot: dial("bot")}
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
		if conn == v.ann {
			v.told = append(v.told, string(raw))
		}
	}
}

// until returns the frames to ann about a task up to its end.
func (v *socketVoice) until(task string) (frames []string) {
	v.t.Helper()
	for {
		for _, frame := range v.told {
			if strings.Contains(frame, task) {
				frames = append(frames, frame)
			}
		}
		if v.told = nil; len(frames) > 0 && strings.Contains(frames[len(frames)-1], `"type":"task.completed"`) {
			return frames
		}
		_, raw, err := v.ann.Read(v.t.Context())
		if err != nil {
			v.t.Fatal(err)
		}
		v.told = append(v.told, string(raw))
	}
}

func (v *socketVoice) sendTo(agent, messageID, text string) string {
	return v.say(v.ann, fmt.Sprintf(`"type":"message","agentId":%q,"messageId":%q,"message":[{"type":"text","content":%q}]`, agent, messageID, text))
}

func (v *socketVoice) send(messageID, text string) string {
	return v.sendTo("bot", messageID, text)
}

func (v *socketVoice) stream(messageID, text string) (string, func() string) {
	task := v.send(messageID, text)
	return task, func() string { return inWords(v.until(task)...) }
}

func (v *socketVoice) query(messageID, text string) string {
	return strings.Join(v.until(v.sendTo("koine", messageID, text)), "")
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
