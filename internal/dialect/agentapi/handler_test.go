package agentapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/dialect/agentapi"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// server serves the protocol over its own store, with one registered agent.
type server struct {
	*httptest.Server
	t       testing.TB
	tasks   *tasks.Service
	store   *kg.Store
	streams *sse.Server
	ends    chan sse.End // what was reported
}

// options of a server.
type options struct {
	agentapi.Options
	anonymous string // the method of a caller without one
}

type directory struct{}

func (directory) Card(_ context.Context, _ caller.Caller, id kg.AgentID) (json.RawMessage, error) {
	if id == "agent://broken" {
		return nil, errors.New("secret details")
	}
	if id != "agent://bot" {
		return nil, kg.Errorf(kg.CodeAgentNotFound, "there is no such agent")
	}
	return json.RawMessage(`{"id":"bot","name":"Bot"}`), nil
}

func (directory) Cards(_ context.Context, _ caller.Caller, capability string, after kg.AgentID, first int) ([]json.RawMessage, kg.AgentID, error) {
	if after != "" || capability != "" && capability != "weather" {
		return nil, "", nil
	}
	return []json.RawMessage{json.RawMessage(`{"id":"bot","name":"Bot"}`)}, "agent://bot", nil
}

func start(t testing.TB) *server {
	t.Helper()
	return startWith(t, func(*options) {})
}

func startWith(t testing.TB, change func(*options)) *server {
	t.Helper()
	o := options{Options: agentapi.Options{MaxBodyBytes: 1 << 20}, anonymous: "key"}
	change(&o)
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: tasks.NewGuard(kg.AllowAll{})}})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, store: store, tasks: tasks.New(tasks.Options{Known: func(id kg.AgentID) bool { return id == "agent://bot" }})}
	if err := s.tasks.Load(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	s.ends = make(chan sse.End, 100)
	streams := sse.New(sse.Options{Ended: func(_ context.Context, e sse.End) { s.ends <- e }})
	s.streams = streams
	h := agentapi.NewHandler(agentapi.Deps{Agents: directory{}, Tasks: s.tasks, Streams: streams, Positions: store}, o.Options)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := kg.Principal{ID: kg.CanonicalAgent(r.Header.Get("X-Agent-ID")), Method: "key"}
		if p.ID == "" {
			p.Method = o.anonymous
		}
		if p.ID == "agent://root" {
			p.Roles = []string{kg.RoleAdmin}
		}
		h.ServeHTTP(w, r.WithContext(caller.With(r.Context(), caller.Caller{Principal: p, RequestID: "r1"})))
	}))
	s.Config.ConnContext = sse.ConnContext
	s.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := streams.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		s.Close()
		s.tasks.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) ask(agent, method, path, body string) (status int, answer string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Agent-ID", agent)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSuffix(string(raw), "\n")
}

var (
	ids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	times = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`)
	// Other tests check the positions of streams and sockets.
	places = regexp.MustCompile(`(?m)^id: .*\n|"eventId":"[^"]*",`)
)

func mask(text string) string {
	return times.ReplaceAllString(ids.ReplaceAllString(places.ReplaceAllString(text, ""), "<id>"), `"<time>"`)
}

func (s *server) wants(what, agent, method, path, body string, status int, answer string) string {
	s.t.Helper()
	gotStatus, got := s.ask(agent, method, path, body)
	if masked := mask(got); gotStatus != status || masked != answer {
		s.t.Errorf("%s:\ngot  %d %s\nwant %d %s", what, gotStatus, masked, status, answer)
	}
	return got
}

// sendTo sends a message and returns the task's id.
func (s *server) sendTo(agent, body string) string {
	s.t.Helper()
	return ids.FindString(s.wants("send", agent, "POST", "/agents/bot/messages", body, 202, `{"taskId":"<id>","messageId":"<id>.1"}`))
}

func TestTasksOverREST(t *testing.T) {
	s := start(t)
	s.wants("agents", "ann", "GET", "/agents", "", 200, `{"agents":[{"id":"bot","name":"Bot"}],"nextPageToken":"agent://bot"}`)
	s.wants("agents with a slash", "ann", "GET", "/agents/", "", 200, `{"agents":[{"id":"bot","name":"Bot"}],"nextPageToken":"agent://bot"}`)
	s.wants("tasks with a slash", "ann", "GET", "/tasks/", "", 200, `{"tasks":[],"total":0}`)
	s.wants("the next page", "ann", "GET", "/agents?pageToken=agent://bot", "", 200, `{"agents":[]}`)
	s.wants("an agent", "ann", "GET", "/agents/bot", "", 200, `{"id":"bot","name":"Bot"}`)
	s.wants("no agent", "ann", "GET", "/agents/none", "", 404,
		`{"error":{"code":"AGENT_NOT_FOUND","message":"there is no such agent","details":{"reason":"AGENT_NOT_FOUND"}}}`)
	parts := `[{"type":"text","content":"weather <here>?"},{"type":"image","content":{"n":1.50},"metadata":{"k":1}},{"type":"file","content":{"uri":"https://x"}},{"type":"text","content":5}]`
	id := s.sendTo("ann", `{"message":`+parts+`,"parentId":"p1","userId":"u1","metadata":{"m":1}}`)
	s.wants("the message", "bot", "GET", "/messages/"+id+".1", "", 200,
		`{"id":"<id>.1","taskId":"<id>","agentId":"bot","from":"ann","createdAt":"<time>","message":`+parts+`}`)
	const head = `{"id":"<id>","agentId":"bot","state":`
	const times = `,"createdAt":"<time>","updatedAt":"<time>","parentId":"p1","userId":"u1"`
	task := head + `"pending"` + times + `,"artifacts":[],"metadata":{"m":1}}`
	s.wants("the task", "ann", "GET", "/tasks/"+id, "", 200, task)
	s.wants("the tasks", "bot", "GET", "/tasks?state=pending&agentId=bot&parentId=p1", "", 200, `{"tasks":[`+task+`],"total":1}`)
	s.wants("none of another state", "bot", "GET", "/tasks?state=completed", "", 200, `{"tasks":[],"total":0}`)
	artifacts := `[{"id":"artifact-1","type":"message","content":[{"type":"text","content":"sunny"}]},{"id":"map","type":"image","content":"…","metadata":{"z":1}},{"id":"artifact-3","type":"result","content":{"c":20}}]`
	s.wants("half", "bot", "PUT", "/tasks/"+id, `{"state":"in_progress","artifacts":[{"type":"message","content":[{"type":"text","content":"sunny"}]}],"metadata":{"m":null,"n":2}}`, 200,
		head+`"in_progress"`+times+`,"artifacts":[{"id":"artifact-1","type":"message","content":[{"type":"text","content":"sunny"}]}],"metadata":{"n":2}}`)
	s.wants("all of it", "bot", "PUT", "/tasks/"+id, `{"state":"completed","artifacts":`+artifacts+`}`, 200, head+`"completed"`+times+`,"artifacts":`+artifacts+`,"metadata":{"n":2}}`)
	s.wants("too late", "bot", "PUT", "/tasks/"+id, `{"state":"in_progress"}`, 409,
		`{"error":{"code":"TASK_ENDED","message":"the task has ended: it is COMPLETED","details":{"field":"id","reason":"TASK_ENDED"}}}`)
	none := `{"error":{"code":"TASK_NOT_FOUND","message":"the task does not exist","details":{"field":"id","reason":"TASK_NOT_FOUND"}}}`
	for method, body := range map[string]string{"GET": "", "PUT": `{"state":"completed"}`, "DELETE": ""} {
		s.wants(method+" of others", "eve", method, "/tasks/"+id, body, 404, none)
		s.wants(method+" of none", "ann", method, "/tasks/none", body, 404, none)
	}
	s.wants("a message of others", "eve", "GET", "/messages/"+id+".1", "", 404, `{"error":{"code":"MESSAGE_NOT_FOUND","message":"the message does not exist","details":{"reason":"NOT_FOUND"}}}`)
	s.wants("others see none", "eve", "GET", "/tasks", "", 200, `{"tasks":[],"total":0}`)
	s.wants("delete", "ann", "DELETE", "/tasks/"+id, "", 204, "")
	s.wants("deleted", "ann", "GET", "/tasks/"+id, "", 404, none)
}

// States that A2A distinguishes are failed here, with a code that tells them apart.
func TestStates(t *testing.T) {
	s := start(t)
	for name, row := range map[string]struct {
		by, body string
		state    tasks.State
		failure  string
	}{
		"failed":                  {"bot", `{"state":"failed","error":{"code":"X","message":"no","details":{"a":1}}}`, tasks.Failed, `{"code":"X","message":"no","details":{"a":1}}`},
		"why not":                 {"bot", `{"state":"failed"}`, tasks.Failed, `{"code":"AGENT_EXECUTION_ERROR","message":"the agent failed"}`},
		"said":                    {"bot", `{"state":"failed","message":[{"type":"text","content":"tired"}]}`, tasks.Failed, `{"code":"AGENT_EXECUTION_ERROR","message":"tired"}`},
		"rejected":                {"bot", `{"state":"failed","error":{"code":"REJECTED","message":"no"}}`, tasks.Rejected, `{"code":"REJECTED","message":"no"}`},
		"rejected with details":   {"bot", `{"state":"failed","error":{"code":"REJECTED","message":"why not","details":{"z":1}}}`, tasks.Rejected, `{"code":"REJECTED","message":"why not","details":{"z":1}}`},
		"rejected without":        {"bot", `{"state":"failed","error":{"code":"REJECTED"}}`, tasks.Rejected, `{"code":"REJECTED","message":"the agent rejected the task"}`},
		"canceled":                {"ann", `{"state":"failed","error":{"code":"CANCELED","message":"no","details":[1.50]}}`, tasks.Canceled, `{"code":"CANCELED","message":"no","details":[1.50]}`},
		"canceled without":        {"ann", `{"state":"failed","error":{"code":"CANCELED"}}`, tasks.Canceled, `{"code":"CANCELED","message":"the task was canceled"}`},
		"canceled by the handler": {"bot", `{"state":"failed","error":{"code":"CANCELED","message":"ill"},"metadata":null}`, tasks.Canceled, `{"code":"CANCELED","message":"ill"}`},
		"without a code":          {"bot", `{"state":"failed","error":{"message":"no code"}}`, tasks.Failed, `{"code":"AGENT_EXECUTION_ERROR","message":"no code"}`},
	} {
		id, artifacts := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`), ""
		if name == "said" {
			artifacts = `{"id":"<id>.message:<id>","type":"message","content":[{"type":"text","content":"tired"}]}`
		}
		s.wants(name, row.by, "PUT", "/tasks/"+id, row.body, 200,
			`{"id":"<id>","agentId":"bot","state":"failed","createdAt":"<time>","updatedAt":"<time>","error":`+row.failure+`,"artifacts":[`+artifacts+`]}`)
		task, err := s.tasks.Get(t.Context(), caller.Caller{Principal: kg.SystemPrincipal()}, tasks.TaskID(id), tasks.ReadAll)
		if err != nil || task.Status.State != row.state {
			t.Errorf("%s: %+v, %v", name, task, err)
		}
	}
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	for _, state := range []tasks.State{tasks.InputRequired, tasks.AuthRequired} {
		by := caller.Caller{Principal: kg.Principal{ID: "agent://bot", Method: "key"}}
		if _, err := s.tasks.Report(t.Context(), by, tasks.TaskID(id), tasks.Report{State: state}); err != nil {
			t.Fatal(err)
		}
		if _, got := s.ask("ann", "GET", "/tasks/"+id, ""); !strings.Contains(got, `"state":"in_progress"`) {
			t.Errorf("%s is %s", state, got)
		}
	}
	for body, field := range map[string]string{ // and the task stays as it is
		`{"state":"in_progress","error":{"code":"X","message":"no"}}`:                                                   "error",
		`{"state":"in_progress","error":{"code":"REJECTED"}}`:                                                           "error",
		`{"state":"completed","error":{"code":"CANCELED"}}`:                                                             "error",
		`{"error":{"code":"X","message":"no"}}`:                                                                         "error",
		`{"state":"failed","error":{"code":"EXPIRED","message":"no"}}`:                                                  "error.code",
		`{"state":"failed","error":{"code":"INTERRUPTED"}}`:                                                             "error.code",
		`{"state":"failed","error":{"code":"INTERNAL"}}`:                                                                "error.code",
		`{"state":"failed","error":{"code":"CANCELED","message":"` + strings.Repeat("x", tasks.MaxFailureBytes) + `"}}`: "error",
		`{"state":"failed","error":{"code":"REJECTED","message":"` + strings.Repeat("x", tasks.MaxFailureBytes) + `"}}`: "error",
	} {
		if status, got := s.ask("bot", "PUT", "/tasks/"+id, body); status != 400 || !strings.Contains(got, `"field":"`+field+`"`) {
			t.Errorf("%.60s: got %d %s", body, status, got)
		}
	}
	if _, got := s.ask("ann", "GET", "/tasks/"+id, ""); !strings.Contains(got, `"state":"in_progress"`) || strings.Contains(got, "error") {
		t.Errorf("it is %s", got)
	}
	_, got := s.ask("ann", "PUT", "/tasks/"+id, `{"state":"completed"}`)
	if !strings.Contains(got, `"code":"AUTHORIZATION_ERROR"`) {
		t.Errorf("a creator completes: %s", got)
	}
}

// Members fixed at creation stay; the creator may change the metadata, and may repeat
// both.
func TestChangesOfWhatWasSaid(t *testing.T) {
	s := start(t)
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}],"parentId":"p1","userId":"u1","metadata":{"m":1}}`)
	for _, row := range []struct {
		who, body string
		status    int
		want      string
	}{
		{"bot", `{"userId":"u2"}`, 400, `"message":"the member cannot change after the task is created","details":{"field":"userId"`},
		{"bot", `{"parentId":"p2","state":"completed"}`, 400, `"message":"the member cannot change after the task is created","details":{"field":"parentId"`},
		{"bot", `{"userId":""}`, 400, `"field":"userId"`},
		{"ann", `{"userId":"u2","metadata":{"k":1}}`, 400, `"field":"userId"`},
		{"eve", `{"userId":"u2"}`, 404, "TASK_NOT_FOUND"},
		{"bot", `{"parentId":"p1","userId":"u1","state":"in_progress"}`, 200, `"state":"in_progress"`},
		{"ann", `{"metadata":{"n":2}}`, 200, `"metadata":{"m":1,"n":2}`},
		{"ann", `{"metadata":{"n":3},"state":"completed"}`, 403, "AUTHORIZATION_ERROR"},
		{"ann", `{"metadata":{"n":3},"artifacts":[{"type":"result","content":1}]}`, 403, "AUTHORIZATION_ERROR"},
		{"eve", `{"metadata":{"n":3}}`, 404, "TASK_NOT_FOUND"},
		{"bot", `{"metadata":{"m":null}}`, 200, `"parentId":"p1","userId":"u1","artifacts":[],"metadata":{"n":2}}`},
	} {
		if status, got := s.ask(row.who, "PUT", "/tasks/"+id, row.body); status != row.status || !strings.Contains(got, row.want) {
			t.Errorf("%s: %s: got %d %s", row.who, row.body, status, got)
		}
	}
}

// Errors in a message name the field message, as in this protocol.
func TestWhereMessagesAreWrong(t *testing.T) {
	s := start(t)
	for body, field := range map[string]string{
		`{"message":[]}`:               "message",
		`{}`:                           "message",
		`{"stream":true,"message":[]}`: "message",
		`{"message":[{"type":"text","content":"x"},{"content":"x"}]}`: "message[1].type",
		`{"message":[{"type":"text","content":"x","metadata":5}]}`:    "message[0].metadata",
	} {
		if status, got := s.ask("ann", "POST", "/agents/bot/messages", body); status != 400 || !strings.Contains(got, `"field":"`+field) {
			t.Errorf("%s: got %d %s", body, status, got)
		}
	}
	ann := s.dial("ann")
	ann.say(`{"type":"message","agentId":"bot","message":[]}`)
	if got := ann.next(); !strings.Contains(got, `"field":"message"`) {
		t.Errorf("on a socket: %s", got)
	}
}

func TestRefusals(t *testing.T) {
	s := start(t)
	for name, row := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"no path":          {"GET", "/nothing", "", 404, "NOT_FOUND"},
		"another method":   {"PATCH", "/tasks/x", "", 405, "METHOD_NOT_ALLOWED"},
		"no body":          {"POST", "/agents/bot/messages", "", 415, "INVALID_REQUEST"},
		"no JSON":          {"POST", "/agents/bot/messages", "{", 400, "INVALID_REQUEST"},
		"no message":       {"POST", "/agents/bot/messages", "{}", 400, "INVALID_REQUEST"},
		"no list":          {"POST", "/agents/bot/messages", `{"message":"x"}`, 400, "INVALID_REQUEST"},
		"no type":          {"POST", "/agents/bot/messages", `{"message":[{"content":"x"}]}`, 400, "INVALID_REQUEST"},
		"no content":       {"POST", "/agents/bot/messages", `{"message":[{"type":"text"}]}`, 400, "INVALID_REQUEST"},
		"no agent":         {"POST", "/agents/none/messages", `{"message":[{"type":"text","content":"x"}]}`, 404, "AGENT_NOT_FOUND"},
		"too much":         {"POST", "/agents/bot/messages", `{"message":[{"type":"text","content":"` + strings.Repeat("x", 1<<20) + `"}]}`, 400, "INVALID_REQUEST"},
		"no stream":        {"POST", "/agents/bot/messages", `{"stream":true,"message":[]}`, 400, "INVALID_REQUEST"},
		"no such state":    {"GET", "/tasks?state=done", "", 400, "INVALID_REQUEST"},
		"no page":          {"GET", "/tasks?limit=0", "", 400, "INVALID_REQUEST"},
		"too large a page": {"GET", "/tasks?limit=101", "", 400, "INVALID_REQUEST"},
		"no token":         {"GET", "/tasks?pageToken=x", "", 400, "INVALID_REQUEST"},
		"no message there": {"GET", "/messages/x", "", 404, "MESSAGE_NOT_FOUND"},
	} {
		status, got := s.ask("ann", row.method, row.path, row.body)
		if status != row.status || !strings.HasPrefix(got, `{"error":{"code":"`+row.code+`"`) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
}

// A stream yields pieces as they arrive, and the end.
func TestStreams(t *testing.T) {
	s := start(t)
	bot := caller.Caller{Principal: kg.Principal{ID: "agent://bot", Method: "key"}}
	for name, row := range map[string]struct {
		last tasks.Report
		end  string
	}{
		"completed": {tasks.Report{State: tasks.Completed}, "event: complete\ndata: {\"taskId\":\"<id>\"}\n\n"},
		"failed":    {tasks.Report{State: tasks.Failed, Failure: &tasks.Failure{Code: "X", Message: "no"}}, "event: error\ndata: {\"error\":{\"code\":\"X\",\"message\":\"no\"}}\n\n"},
	} {
		box, err := s.tasks.Mail(t.Context(), bot)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan string)
		go func() {
			_, got := s.ask("ann", "POST", "/agents/bot/messages", `{"stream":true,"message":[{"type":"text","content":"weather?"}]}`)
			answered <- got
		}()
		for letter, err := range box.Letters() {
			if err != nil {
				t.Fatal(err)
			}
			half := tasks.Chunk{Artifact: tasks.Artifact{ID: "a", Parts: []tasks.Part{tasks.TextPart("sunny ")}}}
			for _, r := range []tasks.Report{{State: tasks.Working}, {Artifacts: []tasks.Chunk{half}}, row.last} {
				if _, err := s.tasks.Report(t.Context(), bot, letter.Task.ID, r); err != nil {
					t.Fatal(err)
				}
			}
			break
		}
		box.Close()
		got := mask(<-answered)
		want := fmt.Sprintf("%s%s%s", "event: update\ndata: {\"type\":\"status\",\"state\":\"pending\",\"taskId\":\"<id>\"}\n\nevent: update\ndata: {\"type\":\"status\",\"state\":\"in_progress\",\"taskId\":\"<id>\"}\n\n",
			"event: update\ndata: {\"type\":\"partial\",\"content\":\"sunny \",\"artifactId\":\"a\"}\n\n", row.end)
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: told\n%s\nwant\n%s", name, got, want)
		}
	}
}
