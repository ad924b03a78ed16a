package agentapi_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// The table of states in both directions: the state and error for each of A2A's states,
// its list filter, and the end of its stream.
func TestStateTable(t *testing.T) {
	s := start(t)
	bot := caller.Caller{Principal: kg.Principal{ID: "agent://bot", Method: "key"}}
	found := map[string][]string{}
	for _, row := range []struct {
		state   tasks.State
		failure *tasks.Failure
		here    string
		error   string
	}{
		{tasks.Submitted, nil, "pending", ""},
		{tasks.Working, nil, "in_progress", ""},
		{tasks.InputRequired, nil, "in_progress", ""},
		{tasks.AuthRequired, nil, "in_progress", ""},
		{tasks.Completed, nil, "completed", ""},
		{tasks.Failed, &tasks.Failure{Code: "MINE", Message: "no"}, "failed", "MINE"},
		{tasks.Failed, nil, "failed", "AGENT_EXECUTION_ERROR"},
		{tasks.Failed, &tasks.Failure{Code: tasks.FailureExpired, Message: "late"}, "failed", "EXPIRED"},
		{tasks.Failed, &tasks.Failure{Code: tasks.FailureInterrupted, Message: "off"}, "failed", "INTERRUPTED"},
		{tasks.Canceled, nil, "failed", "CANCELED"},
		{tasks.Rejected, nil, "failed", "REJECTED"},
		{tasks.Rejected, &tasks.Failure{Code: "BUSY", Message: "no"}, "failed", "REJECTED"},
	} {
		id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
		by := bot
		if row.error == tasks.FailureExpired || row.error == tasks.FailureInterrupted {
			by = caller.Caller{Principal: kg.SystemPrincipal()} // which alone may set them
		}
		if _, err := s.tasks.Report(t.Context(), by, tasks.TaskID(id), tasks.Report{State: row.state, Failure: row.failure}); err != nil {
			t.Fatal(err)
		}
		found[row.here] = append(found[row.here], id)
		_, got := s.ask("ann", "GET", "/tasks/"+id, "")
		if !strings.Contains(got, `"state":"`+row.here+`"`) || strings.Contains(got, `"error":{"code":"`) != (row.error != "") || row.error != "" && !strings.Contains(got, `"error":{"code":"`+row.error+`"`) {
			t.Errorf("%s is %s", row.state, got)
		}
	}
	for here, want := range found {
		_, got := s.ask("ann", "GET", "/tasks?state="+here, "")
		list := regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindAllStringSubmatch(got, -1)
		var ids []string
		for _, m := range list {
			ids = append(ids, m[1])
		}
		slices.Sort(ids)
		slices.Sort(want)
		if !slices.Equal(ids, want) || !strings.HasSuffix(got, fmt.Sprintf(`"total":%d}`, len(want))) {
			t.Errorf("%s are %s, want %v", here, got, want)
		}
	}
	// And back: the states that a handler and a creator may report.
	for _, row := range []struct {
		who, body string
		want      tasks.State
	}{
		{"bot", `{"state":"in_progress"}`, tasks.Working},
		{"bot", `{"state":"completed"}`, tasks.Completed},
		{"bot", `{"state":"failed"}`, tasks.Failed},
		{"bot", `{"state":"failed","error":{"code":"REJECTED"}}`, tasks.Rejected},
		{"bot", `{"state":"failed","error":{"code":"CANCELED"}}`, tasks.Canceled},
		{"ann", `{"state":"failed","error":{"code":"CANCELED"}}`, tasks.Canceled},
	} {
		id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
		s.ask(row.who, "PUT", "/tasks/"+id, row.body)
		task, err := s.tasks.Get(t.Context(), bot, tasks.TaskID(id), tasks.ReadOptions{})
		if err != nil || task.Status.State != row.want {
			t.Errorf("%s by %s is %+v, %v; want %s", row.body, row.who, task, err, row.want)
		}
	}
}

// The stream of a failed task ends with an error that has the code.
func TestStreamsEndWithAnError(t *testing.T) {
	s := start(t)
	bot := caller.Caller{Principal: kg.Principal{ID: "agent://bot", Method: "key"}}
	for state, code := range map[tasks.State]string{tasks.Failed: "AGENT_EXECUTION_ERROR", tasks.Canceled: "CANCELED", tasks.Rejected: "REJECTED"} {
		box, err := s.tasks.Mail(t.Context(), bot)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan string)
		go func() {
			_, got := s.ask("ann", "POST", "/agents/bot/messages", `{"stream":true,"message":[{"type":"text","content":"x"}]}`)
			answered <- got
		}()
		for letter, err := range box.Letters() {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.tasks.Report(t.Context(), bot, letter.Task.ID, tasks.Report{State: state}); err != nil {
				t.Fatal(err)
			}
			break
		}
		box.Close()
		got := <-answered
		if last := got[strings.LastIndex(strings.TrimSpace(got), "\n\n")+2:]; !strings.Contains(last, "event: error\n") || !strings.Contains(last, `data: {"error":{"code":"`+code+`"`) || strings.Contains(got, "event: complete") {
			t.Errorf("%s: told\n%s", state, got)
		}
	}
}

// An administrator reads, changes and deletes tasks of others.
func TestAdministrators(t *testing.T) {
	s := start(t)
	id := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	for _, row := range []struct {
		method, path, body string
		status             int
		part               string
	}{
		{"GET", "/tasks/" + id, "", 200, `"state":"pending"`},
		{"GET", "/messages/" + id + ".1", "", 200, `"from":"ann"`},
		{"PUT", "/tasks/" + id, `{"state":"in_progress"}`, 200, `"state":"in_progress"`},
		{"GET", "/tasks", "", 200, `"total":1}`},
		{"DELETE", "/tasks/" + id, "", 204, ""},
		{"GET", "/tasks/" + id, "", 404, "TASK_NOT_FOUND"},
	} {
		if status, got := s.ask("root", row.method, row.path, row.body); status != row.status || !strings.Contains(got, row.part) {
			t.Errorf("%s %s: got %d %s", row.method, row.path, status, got)
		}
	}
}

// Lists come in pages, each task once, the last changed first.
func TestPagesOfTasks(t *testing.T) {
	s := start(t)
	var want []string
	for range 5 {
		want = append(want, s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`))
	}
	slices.Reverse(want)
	var got []string
	for token := ""; ; {
		_, page := s.ask("ann", "GET", "/tasks?limit=2&pageToken="+token, "")
		for _, m := range regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		next := regexp.MustCompile(`"nextPageToken":"([^"]+)"`).FindStringSubmatch(page)
		if next == nil {
			break
		}
		token = next[1]
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Parts and artifacts of every type of the specification, and of other types, are
// returned as sent, numbers too.
func TestPartsComeBack(t *testing.T) {
	s := start(t)
	parts := `[{"type":"text","content":"x <y> & z","metadata":{"k":[1]}},{"type":"image","content":{"data":"aGk=","mimeType":"image/png"}},{"type":"file","content":{"bytes":"aGk=","mimeType":"text/plain","name":"a.txt"}},` +
		`{"type":"file","content":{"own":true}},{"type":"custom","content":[9007199254740993,1.50,null]},{"type":"x-own","content":null},{"type":"data","content":{"b":1,"a":2}}]`
	id := s.sendTo("ann", `{"message":`+parts+`}`)
	if _, got := s.ask("bot", "GET", "/messages/"+id+".1", ""); !strings.Contains(got, `"message":`+parts) {
		t.Errorf("got %s", got)
	}
	artifacts := `[{"id":"1","type":"message","content":[{"type":"text","content":"x"}]},{"id":"2","type":"file","content":{"uri":"https://x/"}},{"id":"3","type":"result","content":{"n":9007199254740993}},{"id":"4","type":"custom","content":"x","metadata":{"m":1.0}}]`
	if _, got := s.ask("bot", "PUT", "/tasks/"+id, `{"state":"completed","artifacts":`+artifacts+`}`); !strings.Contains(got, `"artifacts":`+artifacts) {
		t.Errorf("got %s", got)
	}
}

// A repeated message is sent once and gets the same answer, over REST and on a socket.
// The same id with other content is another message.
func TestSentAgain(t *testing.T) {
	s := start(t)
	const first = `{"messageId":"m1","message":[{"type":"text","content":"x"}]}`
	_, sent := s.ask("ann", "POST", "/agents/bot/messages", first)
	_, again := s.ask("ann", "POST", "/agents/bot/messages", first)
	id := ids.FindString(sent)
	if want := `{"taskId":"` + id + `","messageId":"` + id + `.1"}`; sent != want || again != want {
		t.Errorf("answered %s and %s, want %s", sent, again, want)
	}
	more := `{"messageId":"m2","taskId":"` + id + `","message":[{"type":"text","content":"y"}]}`
	for range 2 {
		if _, got := s.ask("ann", "POST", "/agents/bot/messages", more); got != `{"taskId":"`+id+`","messageId":"`+id+`.2"}` {
			t.Errorf("answered %s", got)
		}
	}
	ann := s.dial("ann")
	ann.say(`{"type":"message","agentId":"bot","messageId":"m1","message":[{"type":"text","content":"x"}]}`)
	if _, raw, err := ann.conn.Read(t.Context()); err != nil || !strings.Contains(string(raw), `"messageId":"`+id+`.1"`) {
		t.Errorf("answered %s, %v", raw, err)
	}
	if _, other := s.ask("ann", "POST", "/agents/bot/messages", `{"messageId":"m1","message":[{"type":"text","content":"other"}]}`); ids.FindString(other) == id {
		t.Errorf("answered %s", other)
	}
	if _, tasks := s.ask("ann", "GET", "/tasks", ""); !strings.HasSuffix(tasks, `"total":2}`) {
		t.Errorf("there are %s", tasks)
	}
}

// A stream requested again has the existing artifacts and the end.
func TestStreamedAgain(t *testing.T) {
	s := start(t)
	const message = `{"stream":true,"messageId":"m1","message":[{"type":"text","content":"x"}]}`
	for state, end := range map[string]string{
		`"completed"`: "event: complete\ndata: {\"taskId\":\"<id>\"}",
		`"failed","error":{"code":"MINE","message":"no"}`: "event: error\ndata: {\"error\":{\"code\":\"MINE\",\"message\":\"no\"}}",
	} {
		id := s.sendTo("ann", strings.Replace(message, `"stream":true,`, "", 1))
		s.ask("bot", "PUT", "/tasks/"+id, `{"state":`+state+`,"artifacts":[{"id":"a","type":"message","content":[{"type":"text","content":"sunny"}]}]}`)
		_, got := s.ask("ann", "POST", "/agents/bot/messages", message)
		got = mask(got)
		word, _, _ := strings.Cut(state, ",")
		want := "event: update\ndata: {\"type\":\"status\",\"state\":" + word + ",\"taskId\":\"<id>\"}\n\n" +
			"event: update\ndata: {\"type\":\"partial\",\"content\":\"sunny\",\"artifactId\":\"a\"}\n\n" + end
		if strings.TrimSpace(got) != want {
			t.Errorf("told\n%s\nwant\n%s", got, want)
		}
		s.ask("ann", "DELETE", "/tasks/"+id, "")
	}
}
