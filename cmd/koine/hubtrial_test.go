package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"koine/internal/slowtest"
)

const (
	trialAgents  = 20
	trialClients = 50
	trialTasks   = 2 // of each client
	trialKills   = 3
	trialTime    = 10 * time.Minute
)

var hubKills = flag.Int("koine.hubkills", hubKillsOf(os.Getenv("KOINE_HUB_KILLS")), "how often TestHubAcrossKills kills the server")

func hubKillsOf(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return trialKills
}

// TestHubAcrossKills has twenty agents, half of them with web hooks and half of them with
// mailboxes, and fifty clients over A2A (calls and streams), REST streams, WebSockets and
// GraphQL, while the server is killed. Clients send further messages at any time and cancel
// some tasks; agents report piece by piece, and repeat every report at random, also while
// the first one is under way. At the end: every acknowledged message was delivered to its
// agent, no chunk is missing or duplicated, streams delivered each chunk and each end once,
// and no letter is left.
func TestHubAcrossKills(t *testing.T) {
	slowtest.Long(t)
	h := &hubTrial{
		ctx: t.Context(), tasks: map[string]*trialTask{}, told: map[string]bool{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: trialAgents + trialClients}},
	}
	ctx, cancel := context.WithTimeout(h.ctx, trialTime)
	defer cancel()
	h.ctx, h.stop = ctx, cancel
	dir := filepath.Join(t.TempDir(), "data")
	// The server restarts at the same address.
	s, url := startServerOn(t, dir, "--allow-private-webhooks")
	h.url = url
	restart := func() {
		if err := s.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.ended
		s, _ = startServerOn(t, dir, "--allow-private-webhooks", "--listen", strings.TrimPrefix(url, "http://"))
	}

	var agents, clients sync.WaitGroup
	for i := range trialAgents {
		a := &trialAgent{hub: h, name: fmt.Sprintf("agent%d", i), handled: map[string]bool{}, work: make(chan trialLetter, 1000)}
		h.must(a.name, http.MethodPut, "/agents/"+a.name, `{"name":"Agent"}`, nil)
		if i%2 == 1 {
			hook := httptest.NewServer(http.HandlerFunc(a.serveHook))
			t.Cleanup(hook.Close)
			h.must(a.name, http.MethodPut, "/agents/"+a.name+"/webhook", `{"url":"`+hook.URL+`"}`, nil)
		} else {
			agents.Go(a.readMailbox)
		}
		agents.Go(a.workOff)
	}
	ask := []func(*hubTrial, *trialTask) error{byCalls, byA2AStream, byRESTStream, bySocket, byGraphQL}
	for i := range trialClients {
		clients.Go(func() {
			for n := range trialTasks {
				task := &trialTask{name: fmt.Sprintf("c%d/%d", i, n), client: fmt.Sprintf("client%d", i), agent: fmt.Sprintf("agent%d", rand.IntN(trialAgents)), messages: 1 + rand.IntN(4)}
				if err := ask[i%len(ask)](h, task); err != nil {
					h.fail("%s: %w", task.name, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	// It is killed after a number of reports: in the middle of the work, at any speed.
	const reports = trialClients * trialTasks * 4
	for kills := 0; kills < *hubKills; {
		select {
		case <-done:
			if ctx.Err() == nil {
				t.Errorf("the work was done after %d kills: the test says little", kills)
			}
			kills = *hubKills
		case <-time.After(time.Millisecond):
			if h.reports.Load() > int64(reports*(kills+1)/(*hubKills+1)) {
				restart()
				kills++
			}
		}
	}
	<-done
	if ctx.Err() == nil {
		h.verify(t)
	}
	cancel()
	agents.Wait()
	for _, err := range h.failures {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	t.Logf("%d tasks, %d letters told, %d reports of which %d were said again, %d kills", len(h.tasks), len(h.told), h.reports.Load(), h.repeated.Load(), *hubKills)
	if h.repeated.Load() == 0 {
		t.Error("no report was said again")
	}
	if t.Failed() {
		t.Logf("%.4000s", s.log)
	}
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if out, err := exec.Command("koine", "check", "--data", dir).CombinedOutput(); err != nil {
		t.Errorf("koine check: %v\n%s", err, out)
	}
}

// hubTrial is one server and its state as known from outside.
type hubTrial struct {
	ctx    context.Context
	stop   func()
	url    string
	client *http.Client

	reports, repeated atomic.Int64

	mu       sync.Mutex            // guards the following fields
	tasks    map[string]*trialTask // by id
	told     map[string]bool       // the texts that agents were told
	failures []error
}

// trialTask is the known state of a task.
type trialTask struct {
	name, client, agent string
	messages            int // that its client sends
	id                  string
	sent                []string // those that were acknowledged
	canceled            bool     // the client was told so
	chunks              []string // those that the agent reported
}

// text is the text of the nth message; the last one is marked.
func (k *trialTask) text(n int) string {
	if n == k.messages-1 {
		return k.name + " last"
	}
	return fmt.Sprintf("%s %d", k.name, n)
}

func (h *hubTrial) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = append(h.failures, fmt.Errorf(format, args...))
	h.stop() // the others would wait for events that do not come
}

// acknowledge notes that the server has taken a message.
func (h *hubTrial) acknowledge(k *trialTask, id, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k.id != "" && k.id != id {
		h.failures = append(h.failures, fmt.Errorf("%s is at the tasks %s and %s", k.name, k.id, id))
	}
	if k.id == "" { // the client's other goroutine may read it
		k.id = id
		h.tasks[id] = k
	}
	if text != "" {
		k.sent = append(k.sent, text)
	}
}

// wait is the pause before something is tried again.
func (h *hubTrial) wait() error {
	select {
	case <-h.ctx.Done():
		return h.ctx.Err()
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

func (h *hubTrial) request(who, method, path, body string, headers map[string]string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(h.ctx, method, h.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Agent-ID", who)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return h.client.Do(r)
}

// send repeats a request until the server answers it.
func (h *hubTrial) send(who, method, path, body string, headers map[string]string) (status int, head http.Header, text string, err error) {
	for {
		response, err := h.request(who, method, path, body, headers)
		if err == nil {
			var answer []byte
			answer, err = io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil && response.StatusCode != http.StatusServiceUnavailable && response.StatusCode != http.StatusTooManyRequests {
				return response.StatusCode, response.Header, string(answer), nil
			}
		}
		if err := h.wait(); err != nil {
			return 0, nil, "", err
		}
	}
}

func (h *hubTrial) must(who, method, path, body string, headers map[string]string) string {
	status, _, text, err := h.send(who, method, path, body, headers)
	if err != nil || status/100 != 2 {
		h.fail("%s %s: %d %s %w", method, path, status, text, err)
	}
	return text
}

// call makes a call of A2A, and decodes its result.
func (h *hubTrial) call(k *trialTask, method, params string, into any) error {
	for {
		_, _, text, err := h.send(k.client, http.MethodPost, "/agents/"+k.agent+"/a2a", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, nil)
		if err != nil {
			return err
		}
		var answer struct {
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		if answer.Error != nil {
			if strings.Contains(text, `"SERVER_SHUTDOWN"`) {
				continue
			}
			return errors.New(text)
		}
		return json.Unmarshal(answer.Result, into)
	}
}

func (k *trialTask) params(n int, more string) string {
	text, _ := json.Marshal(k.text(n))
	task := ""
	if k.id != "" {
		task = `,"taskId":"` + k.id + `"`
	}
	return fmt.Sprintf(`{"message":{"messageId":%s,"role":"ROLE_USER","parts":[{"text":%s}]%s}%s}`, text, text, task, more)
}

// sendByCall sends one message; a task that has ended meanwhile takes none.
func (h *hubTrial) sendByCall(k *trialTask, n int) error {
	var sent struct{ Task struct{ ID string } }
	err := h.call(k, "SendMessage", k.params(n, `,"configuration":{"returnImmediately":true}`), &sent)
	if err == nil {
		h.acknowledge(k, sent.Task.ID, k.text(n))
	}
	return err
}

// sendOthers sends the messages behind the first, and cancels a task now and then.
func (h *hubTrial) sendOthers(k *trialTask) error {
	cancels := -1
	if rand.IntN(8) == 0 {
		cancels = rand.IntN(k.messages)
	}
	for n := 1; n < k.messages; n++ {
		if n == cancels {
			return h.cancel(k)
		}
		if rand.IntN(2) == 0 {
			if err := h.wait(); err != nil {
				return err
			}
		}
		if err := h.sendByCall(k, n); err != nil {
			return err
		}
	}
	return nil
}

// cancel cancels a task; the answer of one that did may have been lost.
func (h *hubTrial) cancel(k *trialTask) error {
	h.mu.Lock()
	k.canceled = true
	h.mu.Unlock()
	var task any
	if err := h.call(k, "CancelTask", `{"id":"`+k.id+`"}`, &task); err != nil && !strings.Contains(err.Error(), "TASK_NOT_CANCELABLE") {
		return err
	}
	return nil
}

// shownTask is a task as A2A has it.
type shownTask struct {
	ID     string
	Status struct {
		State   string
		Message *struct{ MessageID string }
	}
	Artifacts []shownArtifact
	History   []struct {
		MessageID, Role string
		Parts           []struct{ Text string }
	}
}

type shownArtifact struct {
	ArtifactID string
	Parts      []struct{ Text string }
}

func (a shownArtifact) texts() (list []string) {
	for _, p := range a.Parts {
		list = append(list, p.Text)
	}
	return list
}

func (s shownTask) ended() bool {
	return s.Status.State == "TASK_STATE_COMPLETED" || s.Status.State == "TASK_STATE_CANCELED"
}

func (s shownTask) chunks() []string {
	for _, a := range s.Artifacts {
		if a.ArtifactID == "out" {
			return a.texts()
		}
	}
	return nil
}

// await waits for the end of a task.
func (h *hubTrial) await(k *trialTask) (shown shownTask, err error) {
	for !shown.ended() {
		shown = shownTask{}
		if err := h.call(k, "GetTask", `{"id":"`+k.id+`"}`, &shown); err != nil {
			return shown, err
		}
		if err := h.wait(); err != nil {
			return shown, fmt.Errorf("%s at %s is %s: %w", k.name, k.agent, shown.Status.State, err)
		}
	}
	return shown, nil
}

// byCalls uses calls of A2A.
func byCalls(h *hubTrial, k *trialTask) error {
	if err := h.sendByCall(k, 0); err != nil {
		return err
	}
	if err := h.sendOthers(k); err != nil {
		return err
	}
	_, err := h.await(k)
	return err
}

// byGraphQL uses mutations.
func byGraphQL(h *hubTrial, k *trialTask) error {
	for n := range k.messages {
		text, _ := json.Marshal(k.text(n))
		variables := map[string]any{}
		if k.id != "" {
			variables["task"] = k.id
		}
		document, _ := json.Marshal(map[string]any{"variables": variables, "query": fmt.Sprintf(
			`mutation ($task: ID) { sendMessage(input: {to: "%s", taskId: $task, messageId: %s, parts: [{text: %s}]}) { task { id } } }`, k.agent, text, text)})
		_, _, answer, err := h.send(k.client, http.MethodPost, "/graphql", string(document), nil)
		if err != nil {
			return err
		}
		var sent struct {
			Data struct {
				SendMessage struct{ Task struct{ ID string } }
			}
		}
		if err := json.Unmarshal([]byte(answer), &sent); err != nil || sent.Data.SendMessage.Task.ID == "" {
			return fmt.Errorf("%s: %v", answer, err)
		}
		h.acknowledge(k, sent.Data.SendMessage.Task.ID, k.text(n))
	}
	_, err := h.await(k)
	return err
}

// frame is an event of a stream of Server-Sent Events.
type trialFrame struct{ id, event, data string }

// events reads a stream until it breaks off or handle has enough of it.
func (h *hubTrial) events(who, method, path, body string, headers map[string]string, handle func(trialFrame) (done bool, err error)) (done bool, err error) {
	response, err := h.request(who, method, path, body, headers)
	if err != nil {
		return false, nil // the server is away
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusTooManyRequests:
		return false, nil
	case response.StatusCode == http.StatusNoContent:
		return true, nil
	case response.StatusCode/100 != 2:
		text, _ := io.ReadAll(response.Body)
		return false, fmt.Errorf("%s %s: %s %s", method, path, response.Status, text)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 4<<20)
	var f trialFrame
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data = value
		case "":
			if f.data != "" {
				if done, err := handle(f); done || err != nil {
					return done, err
				}
			}
			f = trialFrame{}
		}
	}
	return false, nil
}

// byA2AStream sends a streaming message, and subscribes again when the stream is cut. Each
// stream begins with the task; with the events after it there are all chunks once.
func byA2AStream(h *hubTrial, k *trialTask) error {
	var others chan error
	for {
		method, params := "SendStreamingMessage", k.params(0, "")
		if k.id != "" {
			method, params = "SubscribeToTask", `{"id":"`+k.id+`"}`
		}
		var chunks []string
		ends := 0
		_, err := h.events(k.client, http.MethodPost, "/agents/"+k.agent+"/a2a", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, nil, func(f trialFrame) (bool, error) {
			var event struct {
				Result struct {
					Task           *shownTask
					StatusUpdate   *struct{ Status struct{ State string } }
					ArtifactUpdate *struct {
						Artifact shownArtifact
						Append   bool
					}
				}
				Error *struct{ Message string }
			}
			if err := json.Unmarshal([]byte(f.data), &event); err != nil {
				return false, fmt.Errorf("%s: %w", f.data, err)
			}
			switch r := event.Result; {
			case event.Error != nil: // it has ended already, or the server is about to
				return true, nil
			case r.Task != nil:
				chunks = r.Task.chunks()
				if k.id == "" {
					h.acknowledge(k, r.Task.ID, k.text(0))
				}
				if others == nil {
					others = make(chan error, 1)
					go func() { others <- h.sendOthers(k) }()
				}
				if r.Task.ended() {
					ends++
				}
			case r.ArtifactUpdate != nil:
				if !r.ArtifactUpdate.Append {
					chunks = nil
				}
				chunks = append(chunks, r.ArtifactUpdate.Artifact.texts()...)
			case r.StatusUpdate != nil:
				if s := r.StatusUpdate.Status.State; s == "TASK_STATE_COMPLETED" || s == "TASK_STATE_CANCELED" {
					ends++
				}
			}
			return false, nil
		})
		if err != nil {
			return err
		}
		if ends > 1 {
			return fmt.Errorf("one stream told %d ends", ends)
		}
		if k.id != "" {
			var shown shownTask
			if err := h.call(k, "GetTask", `{"id":"`+k.id+`"}`, &shown); err != nil {
				return err
			}
			if shown.ended() {
				if ends == 1 && !slices.Equal(chunks, shown.chunks()) {
					return fmt.Errorf("the stream told %q, the task has %q", chunks, shown.chunks())
				}
				if others == nil {
					return errors.New("it ended before its last message was sent")
				}
				return <-others
			}
		}
		if err := h.wait(); err != nil {
			return err
		}
	}
}

// byRESTStream uses REST, and resumes after the last event when the stream is cut: all
// streams together deliver each chunk and the end once.
func byRESTStream(h *hubTrial, k *trialTask) error {
	var chunks []string
	last, ends := "", 0
	var others chan error
	for {
		headers := map[string]string{"Accept": "text/event-stream"}
		if last != "" {
			headers["Last-Event-ID"] = last
		} else {
			chunks = nil // it begins with the existing parts
		}
		text, _ := json.Marshal(k.text(0))
		method, path, body := http.MethodPost, "/rest/agents/"+k.agent+"/messages", fmt.Sprintf(`{"message":[{"type":"text","content":%s}],"messageId":%s,"stream":true}`, text, text)
		if k.id != "" && rand.IntN(2) == 0 {
			method, path, body = http.MethodGet, "/rest/tasks/"+k.id, ""
		}
		done, err := h.events(k.client, method, path, body, headers, func(f trialFrame) (bool, error) {
			var event struct{ Type, TaskID, ArtifactID, Content string }
			if err := json.Unmarshal([]byte(f.data), &event); err != nil {
				return false, fmt.Errorf("%s: %w", f.data, err)
			}
			if f.event == "error" && strings.Contains(f.data, "UNAVAILABLE") {
				return false, nil
			}
			last = cmp.Or(f.id, last)
			if event.TaskID != "" && k.id == "" {
				h.acknowledge(k, event.TaskID, k.text(0))
				others = make(chan error, 1)
				go func() { others <- h.sendOthers(k) }()
			}
			switch {
			case f.event == "complete" || f.event == "error":
				ends++
				return true, nil
			case event.Type == "partial" && event.ArtifactID == "out":
				chunks = append(chunks, event.Content)
			}
			return false, nil
		})
		if err != nil {
			return err
		}
		if done {
			break
		}
		if err := h.wait(); err != nil {
			return err
		}
	}
	if others == nil {
		return errors.New("it ended without its id")
	}
	if err := <-others; err != nil {
		return err
	}
	shown, err := h.await(k)
	if err == nil && (ends != 1 || !slices.Equal(chunks, shown.chunks())) {
		err = fmt.Errorf("the streams told %d ends and %q, the task has %q", ends, chunks, shown.chunks())
	}
	return err
}

// bySocket uses a WebSocket, and resumes after the last event: each event and the task's
// completion is delivered once.
func bySocket(h *hubTrial, k *trialTask) error {
	after, completed, seen, sent := "", 0, map[string]bool{}, 0
	wishesCancel := rand.IntN(8) == 0
	session := func() (done bool, err error) {
		path := "/rest/ws"
		if after != "" {
			path += "?after=" + after
		}
		conn, _, err := websocket.Dial(h.ctx, h.url+path, &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {k.client}}})
		if err != nil {
			return false, nil
		}
		defer conn.CloseNow()
		send := func() error {
			frame := map[string]any{"type": "message", "requestId": sent, "agentId": k.agent, "messageId": k.text(sent), "message": []any{map[string]any{"type": "text", "content": k.text(sent)}}}
			if k.id != "" {
				frame["taskId"] = k.id
			}
			return wsjson.Write(h.ctx, conn, frame)
		}
		if sent < k.messages {
			if send() != nil {
				return false, nil
			}
		}
		for {
			var frame struct {
				Type, EventID, TaskID string
				RequestID             *int
				Task                  struct{ ID, State string }
				Error                 struct{ Code, Message string }
			}
			if err := wsjson.Read(h.ctx, conn, &frame); err != nil {
				return false, nil
			}
			if frame.EventID != "" {
				if key := frame.EventID + frame.Type + frame.Task.ID; seen[key] {
					return false, fmt.Errorf("%s %s is told again", frame.Type, frame.EventID)
				} else {
					seen[key] = true
				}
				after = frame.EventID
			}
			switch {
			case frame.Type == "error" && frame.Error.Code == "UNAVAILABLE":
				return false, nil
			case frame.Type == "error":
				return false, fmt.Errorf("%+v", frame.Error)
			case frame.RequestID != nil && *frame.RequestID == sent:
				h.acknowledge(k, frame.TaskID, k.text(sent))
				sent++
				if sent < k.messages {
					if wishesCancel {
						return true, h.cancel(k)
					}
					if send() != nil {
						return false, nil
					}
				}
			case frame.Type == "task.completed" && frame.Task.ID == k.id:
				completed++
				if sent == k.messages {
					return true, nil
				}
			}
		}
	}
	for {
		done, err := session()
		if err != nil {
			return err
		}
		if done {
			break
		}
		if err := h.wait(); err != nil {
			return fmt.Errorf("after %d of %d messages and %d completions: %w", sent, k.messages, completed, err)
		}
	}
	shown, err := h.await(k)
	if err == nil && shown.Status.State == "TASK_STATE_COMPLETED" && !k.canceled && completed != 1 {
		err = fmt.Errorf("task.completed was told %d times", completed)
	}
	return err
}

// trialAgent is an agent behind the hub.
type trialAgent struct {
	hub  *hubTrial
	name string
	work chan trialLetter

	mu      sync.Mutex
	handled map[string]bool // letters, by id
}

type trialLetter struct {
	ID       string
	Canceled bool
	Task     struct{ ID string }
	Message  struct{ Parts []struct{ Text string } }

	done chan struct{}
}

func (a *trialAgent) readMailbox() {
	for a.hub.ctx.Err() == nil {
		_, err := a.hub.events(a.name, http.MethodGet, "/agents/"+a.name+"/mailbox", "", nil, func(f trialFrame) (bool, error) {
			if f.event != "letter" {
				return true, nil
			}
			a.take(f.data)
			return rand.IntN(20) == 0, nil // it goes away for a moment
		})
		if err != nil {
			a.hub.fail("the mailbox of %s: %v", a.name, err)
			return
		}
		_ = a.hub.wait()
	}
}

// serveHook takes a letter at once, works on it during the call, or fails.
func (a *trialAgent) serveHook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch rand.IntN(10) {
	case 0:
		w.WriteHeader(http.StatusBadGateway)
	case 1, 2, 3:
		select { // not longer than the server waits for the answer
		case <-a.take(string(body)):
		case <-time.After(5 * time.Second):
		}
	default:
		a.take(string(body))
	}
}

// take puts a letter behind those that came before. The channel is closed when it was
// worked on.
func (a *trialAgent) take(text string) <-chan struct{} {
	letter, fresh := a.open(text)
	letter.done = make(chan struct{})
	if !fresh {
		close(letter.done)
		return letter.done
	}
	select {
	case a.work <- letter:
	case <-a.hub.ctx.Done():
	}
	return letter.done
}

// open notes the content of a letter; a repeated letter is processed once.
func (a *trialAgent) open(text string) (letter trialLetter, fresh bool) {
	if err := json.Unmarshal([]byte(text), &letter); err != nil || len(letter.Message.Parts) == 0 {
		a.hub.fail("a letter of %s: %s %v", a.name, text, err)
		return letter, false
	}
	a.hub.mu.Lock()
	a.hub.told[letter.Message.Parts[0].Text] = true
	a.hub.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	fresh = !a.handled[letter.ID]
	a.handled[letter.ID] = true
	return letter, fresh
}

func (a *trialAgent) workOff() {
	for {
		select {
		case letter := <-a.work:
			a.handle(letter)
			close(letter.done)
		case <-a.hub.ctx.Done():
			return
		}
	}
}

// handle reports on a letter: two chunks and the state of the task, each in a report of its
// own.
func (a *trialAgent) handle(letter trialLetter) {
	text := letter.Message.Parts[0].Text
	if letter.Canceled {
		a.hub.must(a.name, http.MethodDelete, "/agents/"+a.name+"/mailbox/"+letter.ID, "", nil)
		return
	}
	k := a.taskOf(letter.Task.ID)
	if k == nil {
		return
	}
	for part := range 2 {
		chunk := fmt.Sprintf("%s: %d", text, part)
		body := fmt.Sprintf(`{"letters":[],"artifacts":[{"artifactId":"out","append":true,"offset":%d,"parts":[{"text":%q}]}]`, len(k.chunks), chunk)
		if part == 0 {
			body += `,"state":"TASK_STATE_WORKING"`
		}
		switch a.report(letter.Task.ID, body+"}", text+strconv.Itoa(part)) {
		case http.StatusOK:
			k.chunks = append(k.chunks, chunk)
		default: // it was canceled, which is another letter
			return
		}
	}
	state := "TASK_STATE_INPUT_REQUIRED"
	if strings.HasSuffix(text, " last") {
		state = "TASK_STATE_COMPLETED"
	}
	a.report(letter.Task.ID, fmt.Sprintf(`{"letters":[%q],"state":%q,"message":{"messageId":%q,"parts":[{"text":%q}]}}`, letter.ID, state, "re "+text, "re "+text), text+" end")
}

// taskOf waits until the client knows the id of its task.
func (a *trialAgent) taskOf(id string) *trialTask {
	for {
		a.hub.mu.Lock()
		k := a.hub.tasks[id]
		a.hub.mu.Unlock()
		if k != nil || a.hub.wait() != nil {
			return k
		}
	}
}

// report sends a report once, twice in a row, or twice at the same time, and returns the
// status of the answer.
func (a *trialAgent) report(task, body, key string) int {
	a.hub.reports.Add(1)
	say := func() (status int, replayed bool) {
		status, head, answer, err := a.hub.send(a.name, http.MethodPost, "/agents/"+a.name+"/mailbox/"+task, body, map[string]string{"Idempotency-Key": key, "Prefer": "return=minimal"})
		ended := status == http.StatusConflict && strings.Contains(answer, "TASK_ENDED")
		if err == nil && status != http.StatusOK && !ended {
			a.hub.fail("a report of %s: %d %s\n%s", a.name, status, answer, body)
		}
		return status, head.Get("Idempotent-Replayed") == "true"
	}
	switch rand.IntN(4) {
	case 0:
		status, _ := say()
		again, replayed := say()
		a.hub.repeated.Add(1)
		if status == http.StatusOK && (again != status || !replayed) && a.hub.ctx.Err() == nil {
			a.hub.fail("a report of %s that is said again: %d, replayed %v", a.name, again, replayed)
		}
		return status
	case 1:
		var second int
		var both sync.WaitGroup
		both.Go(func() { second, _ = say() })
		first, _ := say()
		both.Wait()
		a.hub.repeated.Add(1)
		if first != second && a.hub.ctx.Err() == nil {
			a.hub.fail("a report of %s that is said twice at once: %d and %d", a.name, first, second)
		}
		return first
	}
	status, _ := say()
	return status
}

// verify compares the state of the server with the acknowledgements.
func (h *hubTrial) verify(t *testing.T) {
	for id, k := range h.tasks {
		var shown shownTask
		if err := h.call(k, "GetTask", `{"id":"`+id+`","historyLength":100}`, &shown); err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		if k.canceled { // its progress is open, but the reports are there
			if got := shown.chunks(); len(got) < len(k.chunks) || len(got) > len(k.chunks)+1 {
				t.Errorf("%s: %q was reported, it has %q", k.name, k.chunks, got)
			}
			continue
		}
		if shown.Status.State != "TASK_STATE_COMPLETED" || !slices.Equal(shown.chunks(), k.chunks) || len(k.chunks) != 2*k.messages {
			t.Errorf("%s is %s: %q was reported for %d messages, it has %q", k.name, shown.Status.State, k.chunks, k.messages, shown.chunks())
		}
		if len(k.sent) != k.messages {
			t.Errorf("%s: %q was acknowledged of %d messages", k.name, k.sent, k.messages)
		}
		said := map[string]int{}
		for _, m := range shown.History {
			said[m.Parts[0].Text]++
		}
		if m := shown.Status.Message; m == nil || m.MessageID != "re "+k.text(k.messages-1) {
			t.Errorf("%s: what was said at its end is %+v", k.name, m)
		}
		for _, text := range k.sent {
			if !h.told[text] {
				t.Errorf("%q was acknowledged and never told to %s", text, k.agent)
			}
			if said[text] != 1 {
				t.Errorf("%q is %d times in the history", text, said[text])
			}
		}
		for text, n := range said {
			if n > 1 {
				t.Errorf("%q is %d times in the history", text, n)
			}
		}
	}
	// A mailbox with a web hook returns the number of waiting letters.
	for i := range trialAgents {
		name := fmt.Sprintf("agent%d", i)
		if i%2 == 0 {
			h.must(name, http.MethodPut, "/agents/"+name+"/webhook", `{"url":"http://127.0.0.1:9/"}`, nil)
		}
		var waiting string
		eventually(t, "no letter is left of "+name, func() bool {
			waiting = h.must(name, http.MethodGet, "/agents/"+name+"/webhook", "", nil)
			return strings.Contains(waiting, `"waiting":0`)
		})
	}
}
