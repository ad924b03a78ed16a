package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// ask sends a request in the name of an agent, or with its key.
func ask(t *testing.T, method, url, who, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cli.RequestTimeout)
	defer cancel()
	response, err := http.DefaultClient.Do(asking(ctx, t, method, url, who, body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func asking(ctx context.Context, t *testing.T, method, url, who, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(who, "ak_") {
		r.Header.Set("Authorization", "Bearer "+who)
	} else {
		r.Header.Set("X-Agent-ID", who)
	}
	return r
}

// hubLetter is an event of a mailbox.
type hubLetter struct {
	From string
	Task struct {
		ID     string
		Status struct{ State string }
	}
	Message struct {
		Role  string
		Parts []struct{ Text string }
	}
}

// openMailbox returns the events of an agent's mailbox.
func openMailbox(t *testing.T, url, agent, who string) (next func() hubLetter, leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cli.RequestTimeout)
	t.Cleanup(cancel)
	response, err := http.DefaultClient.Do(asking(ctx, t, http.MethodGet, url+"/agents/"+agent+"/mailbox", who, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%s %s", response.Status, text)
	}
	lines := bufio.NewScanner(response.Body)
	return func() (letter hubLetter) {
		t.Helper()
		for name := ""; lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = text
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &letter); err != nil || name != "letter" {
					t.Fatalf("%s %s: %v", name, data, err)
				}
				return letter
			}
		}
		t.Fatalf("the mailbox has ended: %v", lines.Err())
		return letter
	}, cancel
}

func sendTo(t *testing.T, url, agent, who, text, more string) string {
	t.Helper()
	_, answer := ask(t, http.MethodPost, url+"/agents/"+agent+"/a2a", who, fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"%s","role":"ROLE_USER","parts":[{"text":"%s"}]%s}}`, text, text, more)+`}`)
	return answer
}

const atOnce = `},"configuration":{"returnImmediately":true` // of SendMessage

func tells(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got %s, want %s", text, part)
		}
	}
}

// An agent registers, and gets a message over A2A; it finds the letter in its mailbox,
// reports there, and the sender gets the task. All of it with HTTP only.
func TestAgentBehindTheHub(t *testing.T) {
	dir := t.TempDir()
	s, url := startServerOn(t, dir)
	card := func() (int, string) {
		return ask(t, http.MethodGet, url+"/agents/bot/.well-known/agent-card.json", "ann", "")
	}
	if status, text := card(); status != http.StatusNotFound || !strings.Contains(text, `"AGENT_NOT_FOUND"`) {
		t.Errorf("got %d %s", status, text)
	}
	if text := sendTo(t, url, "bot", "ann", "early", ""); !strings.Contains(text, `"AGENT_NOT_FOUND"`) || strings.Contains(text, `"field"`) {
		t.Errorf("got %s", text)
	}
	_, early := ask(t, http.MethodPost, url+"/rest/agents/bot/messages", "ann", `{"message":[{"type":"text","content":"early"}]}`)
	tells(t, early, `"code":"AGENT_NOT_FOUND"`, `"field":"agentId"`)
	const said = `{"name":"Bot","description":"knows the weather","version":"1","capabilities":["weather"],"x-own":[1]}`
	for _, want := range []int{http.StatusCreated, http.StatusOK} {
		if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", said); status != want {
			t.Fatalf("got %d %s", status, text)
		}
	}
	for path, want := range map[string]string{"/agents": `"id":"koine"`, "/agents/": `"id":"bot"`, "/agents?capability=weather": `{"agents":[{"id":"bot"`, "/agents/bot": `"x-own":[1]`, "/agents?limit=1": `"nextPageToken":"bot"`} {
		_, text := ask(t, http.MethodGet, url+path, "ann", "")
		tells(t, text, want)
	}
	for _, path := range []string{"/agents/bot/.well-known/agent-card.json", "/agents/bot/.well-known/agent-card.json/", "/agents/agent:%2F%2Fbot/.well-known/agent.json"} {
		status, text := ask(t, http.MethodGet, url+path, "ann", "")
		tells(t, text, `"url":"`+url+`/agents/bot/a2a"`, `"protocolVersion":"1.0"`, `"skills":[{"description":"weather","id":"weather"`)
		if status != http.StatusOK || strings.Contains(text, "knowledgeGraph") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	next, leave := openMailbox(t, url, "bot", "bot")
	eventually(t, "it is there", func() bool {
		_, text := ask(t, http.MethodGet, url+"/agents/bot", "ann", "")
		return strings.Contains(text, `"presence":"ONLINE"`)
	})
	answered := make(chan string, 1)
	go func() { answered <- sendTo(t, url, "bot", "ann", "rain?", "") }()
	letter := next()
	if letter.From != "agent://ann" || letter.Message.Parts[0].Text != "rain?" || letter.Message.Role != "ROLE_USER" || letter.Task.Status.State != "TASK_STATE_SUBMITTED" {
		t.Errorf("the letter is %+v", letter)
	}
	report := func(id, body string) (int, string) {
		return ask(t, http.MethodPost, url+"/agents/bot/mailbox/"+id, "bot", body)
	}
	for _, body := range []string{
		`{"state":"TASK_STATE_WORKING","artifacts":[{"artifactId":"a","parts":[{"text":"no"}]}]}`,
		`{"state":"TASK_STATE_COMPLETED","message":{"parts":[{"text":"done"}]},"artifacts":[{"artifactId":"a","parts":[{"text":" rain"}],"append":true,"lastChunk":true}]}`,
	} {
		if status, text := report(letter.Task.ID, body); status != http.StatusOK || !strings.Contains(text, letter.Task.ID) {
			t.Errorf("got %d %s", status, text)
		}
	}
	tells(t, <-answered, letter.Task.ID, `"TASK_STATE_COMPLETED"`, `"parts":[{"text":"no"},{"text":" rain"}]`, `"text":"done"`)
	if status, text := report(letter.Task.ID, `{"state":"TASK_STATE_WORKING"}`); status != http.StatusConflict || !strings.Contains(text, `"TASK_ENDED"`) {
		t.Errorf("got %d %s", status, text)
	}
	// Away, while the server ends too; and back.
	leave()
	tells(t, sendTo(t, url, "bot", "ann", "snow?", atOnce), `"TASK_STATE_SUBMITTED"`)
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	_, url = startServerOn(t, dir)
	next, _ = openMailbox(t, url, "bot", "bot")
	letter = next()
	if letter.Message.Parts[0].Text != "snow?" {
		t.Errorf("it finds %+v", letter)
	}
	report(letter.Task.ID, `{"state":"TASK_STATE_INPUT_REQUIRED","message":{"parts":[{"text":"where?"}]}}`)
	tells(t, sendTo(t, url, "bot", "ann", "here", `,"taskId":"`+letter.Task.ID+`"`+atOnce), letter.Task.ID)
	if again := next(); again.Task.ID != letter.Task.ID || again.Message.Parts[0].Text != "here" {
		t.Errorf("then %+v", again)
	}
	report(letter.Task.ID, `{"state":"TASK_STATE_FAILED","error":{"code":"NO_IDEA","message":"who knows"}}`)
	_, text := ask(t, http.MethodPost, url+"/agents/bot/a2a/", "ann", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"`+letter.Task.ID+`"}}`)
	tells(t, text, `"TASK_STATE_FAILED"`, "who knows")
	// Its words may change, and it may go.
	if status, text := ask(t, http.MethodPatch, url+"/agents/bot", "bot", `{"version":"2"}`); status != http.StatusOK || !strings.Contains(text, `"version":"2"`) {
		t.Errorf("got %d %s", status, text)
	}
	tells(t, askGraphQL(t, url, "ann", `mutation { createChannel(input: {name: "room", members: [{agentId: "bot"}]}) { channel { members { nodes { agent: agentId } } } } }`), "agent://bot")
	if status, text := ask(t, http.MethodDelete, url+"/agents/bot", "bot", ""); status != http.StatusNoContent {
		t.Errorf("got %d %s", status, text)
	}
	eventually(t, "it is in no channel", func() bool {
		return strings.Contains(askGraphQL(t, url, "ann", `{ channels { nodes { members { nodes { agent: agentId } } } } }`), `"members":{"nodes":[{"agent":"agent://ann"}]}`)
	})
	tells(t, sendTo(t, url, "bot", "ann", "late", ""), `"AGENT_NOT_FOUND"`)
	if status, _ := card(); status != http.StatusNotFound {
		t.Errorf("its card is there: %d", status)
	}
	tells(t, sendTo(t, url, "koine", "ann", "{ revision }", ""), `"TASK_STATE_COMPLETED"`)
	_, text = ask(t, http.MethodGet, url+"/agents/koine/.well-known/agent-card.json", "ann", "")
	tells(t, text, "knowledgeGraph")
}

// Refusals under /agents, on a server with credentials.
func TestHubRefuses(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	bot, _ := k.create(`{agentId: "bot"}`)
	ann, _ := k.create(`{agentId: "ann"}`)
	eve, _ := k.create(`{agentId: "eve"}`)
	tells(t, sendTo(t, k.url, "bot", ann, "a key is not enough", ""), `"AGENT_NOT_FOUND"`)
	if status, text := ask(t, http.MethodPut, k.url+"/agents/bot", bot, `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatalf("got %d %s", status, text)
	}
	var sent struct {
		Result struct{ Task struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(sendTo(t, k.url, "bot", ann, "do it", atOnce)), &sent); err != nil {
		t.Fatal(err)
	}
	id := sent.Result.Task.ID
	for _, row := range []struct {
		method, path, who, body string
		status                  int
		code                    string
	}{
		{"GET", "/agents", "", "", 401, "UNAUTHENTICATED"},
		{"GET", "/agents/bot/.well-known/agent-card.json", "", "", 401, "UNAUTHENTICATED"},
		{"GET", "/agents/bot/mailbox", "", "", 401, "UNAUTHENTICATED"},
		{"GET", "/agents/bot/mailbox", eve, "", 403, "SOURCE_FORBIDDEN"},
		{"GET", "/agents/koine/mailbox", k.admin, "", 404, "AGENT_NOT_FOUND"},
		{"GET", "/agents/eve/mailbox", eve, "", 404, "AGENT_NOT_FOUND"},
		{"POST", "/agents/bot/mailbox/" + id, eve, `{"state":"TASK_STATE_COMPLETED"}`, 403, "SOURCE_FORBIDDEN"},
		{"POST", "/agents/eve/mailbox/" + id, eve, `{"state":"TASK_STATE_COMPLETED"}`, 404, "TASK_NOT_FOUND"},
		{"POST", "/agents/ann/mailbox/" + id, ann, `{"state":"TASK_STATE_COMPLETED"}`, 404, "TASK_NOT_FOUND"},
		{"POST", "/agents/bot/mailbox/none", bot, `{"state":"TASK_STATE_COMPLETED"}`, 404, "TASK_NOT_FOUND"},
		{"POST", "/agents/bot/mailbox/" + id, bot, `{"state":"DONE"}`, 400, "INVALID"},
		{"POST", "/agents/bot/mailbox/" + id, bot, `{`, 400, "INVALID"},
		{"POST", "/agents/bot/mailbox/" + id, bot, `{"message":{"parts":[{"text":"x"}]}}`, 400, "INVALID"},
		{"POST", "/agents/bot/mailbox/" + id, bot, `{"artifacts":[` + strings.Repeat(`{"artifactId":"a","parts":[{"text":"x"}]},`, 100) + `{"artifactId":"a","parts":[{"text":"x"}]}]}`, 400, "LIMIT_EXCEEDED"},
		{"GET", "/agents/bot/webhook", eve, "", 403, "SOURCE_FORBIDDEN"},
		{"PUT", "/agents/bot/webhook", eve, `{"url":"https://example.org/"}`, 403, "SOURCE_FORBIDDEN"},
		{"DELETE", "/agents/bot/webhook", eve, "", 403, "SOURCE_FORBIDDEN"},
		{"GET", "/agents/bot/webhook", bot, "", 404, "NOT_FOUND"},
		{"DELETE", "/agents/bot/webhook", bot, "", 404, "NOT_FOUND"},
		{"PUT", "/agents/bot/webhook", bot, `{"url":"http://10.0.0.1/"}`, 400, "INVALID"},
		{"GET", "/agents/bot/upstream", bot, "", 404, "NOT_FOUND"},
		{"DELETE", "/agents/bot/upstream", k.admin, "", 404, "NOT_FOUND"},
		{"PUT", "/agents/bot/upstream", bot, `{"url":"http://10.0.0.1/"}`, 400, "INVALID"},
		{"PUT", "/agents/bot/upstream", bot, `{"url":"https://example.org/","binding":"GRPC"}`, 400, "INVALID"},
		{"PUT", "/agents/bot/upstream", bot, `{"url":"https://example.org/","authentication":{"credentials":"x"}}`, 400, "INVALID"},
		{"PUT", "/agents/bot/upstream", bot, `{`, 400, "INVALID"},
		{"PUT", "/agents/koine/upstream", k.admin, `{"url":"https://example.org/"}`, 404, "AGENT_NOT_FOUND"},
		{"PUT", "/agents/eve/upstream", eve, `{"url":"https://example.org/"}`, 404, "AGENT_NOT_FOUND"},
		{"PUT", "/agents/bot", eve, `{}`, 403, "PERMISSION_DENIED"},
		{"PUT", "/agents/new", eve, `{}`, 403, "PERMISSION_DENIED"},
		{"PUT", "/agents/bot", bot, `{"id":"other"}`, 400, "INVALID"},
		{"PUT", "/agents/bot", bot, `[]`, 400, "INVALID"},
		{"PATCH", "/agents/bot", eve, `{"name":"x"}`, 403, "PERMISSION_DENIED"},
		{"PATCH", "/agents/eve", eve, `{"name":"x"}`, 404, "AGENT_NOT_FOUND"},
		{"DELETE", "/agents/bot", eve, "", 403, "PERMISSION_DENIED"},
		{"DELETE", "/agents/eve", eve, "", 404, "AGENT_NOT_FOUND"},
		{"GET", "/agents/eve", eve, "", 404, "AGENT_NOT_FOUND"},
		{"GET", "/agents?limit=101", eve, "", 400, "INVALID"},
		{"POST", "/agents/bot", eve, `{}`, 405, "METHOD_NOT_ALLOWED"},
		{"GET", "/agents/bot/nothing", eve, "", 404, "PATH_NOT_FOUND"},
	} {
		status, text := k.send(row.method, row.path, row.who, row.body)
		if status != row.status || !strings.HasPrefix(text, `{"error":{"code":"`+row.code+`"`) {
			t.Errorf("%s %s: got %d %s, want %d %s", row.method, row.path, status, text, row.status, row.code)
		}
	}
	// Others get for an upstream the bytes of an agent that is not there, whatever they send.
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		for _, body := range []string{`{"url":"https://example.org/"}`, `{`} {
			status, text := k.send(method, "/agents/bot/upstream", eve, body)
			other, absent := k.send(method, "/agents/nobody/upstream", eve, body)
			if status != http.StatusNotFound || status != other || text != absent || !strings.Contains(text, `"AGENT_NOT_FOUND"`) {
				t.Errorf("%s of an upstream: %d %s, of none: %d %s", method, status, text, other, absent)
			}
		}
	}
	// Errors of a web hook name its member.
	for _, row := range []struct{ body, want string }{
		{`{"url":1}`, `"message":"is a text","details":{"field":"url"}`},
		{`{"url":"https://example.org/","authentication":{"scheme":[]}}`, `"message":"is a text","details":{"field":"authentication.scheme"}`},
		{`{"url":"https://example.org/","authentication":"Bearer"}`, `"message":"is an object","details":{"field":"authentication"}`},
		{`{"authentication":null}`, `"message":"is required","details":{"field":"url"}`},
		{`[]`, `"message":"the body is an object"`},
	} {
		if status, text := k.send(http.MethodPut, "/agents/bot/webhook", bot, row.body); status != http.StatusBadRequest || !strings.Contains(text, row.want) {
			t.Errorf("%s: got %d %s, want %s", row.body, status, text, row.want)
		}
	}
	// A mailbox ends when its agent deregisters, and with its key, with the reason.
	last := k.stream(http.MethodGet, "/agents/bot/mailbox", bot, "")
	if status, text := k.send(http.MethodDelete, "/agents/bot", bot, ""); status != http.StatusNoContent {
		t.Errorf("got %d %s", status, text)
	}
	tells(t, last(), `"error":{"code":"AGENT_NOT_FOUND"`)
	k.send(http.MethodPut, "/agents/bot", bot, `{}`)
	last = k.stream(http.MethodGet, "/agents/bot/mailbox", bot, "")
	keyID := strings.Split(bot, "_")[2]
	tells(t, k.graphql(k.admin, `mutation { revokeApiKey(input: {keyId: "`+keyID+`"}) { key { id } } }`), keyID)
	tells(t, last(), `"error":{"code":"UNAUTHENTICATED"`)
}

// The limits of an agent are enforced for it, over every protocol.
func TestLimitsOfAnAgent(t *testing.T) {
	_, url := startServer(t)
	register := func(limits string) {
		t.Helper()
		if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"limits":`+limits+`}`); status/100 != 2 || !strings.Contains(text, `"limits":`+limits) {
			t.Fatalf("got %d %s", status, text)
		}
	}
	if status, text := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"limits":{"tasks":"many"}}`); status != http.StatusBadRequest || !strings.Contains(text, `"field":"limits.tasks"`) {
		t.Errorf("got %d %s", status, text)
	}
	refused := func(core, code, rest string, status int) {
		t.Helper()
		tells(t, sendTo(t, url, "bot", "ann", "one more", atOnce), `"code":`+core, `"reason":"`+code+`"`)
		got, text := ask(t, http.MethodPost, url+"/rest/agents/bot/messages", "ann", `{"message":[{"type":"text","content":"one more"}]}`)
		if got != status || !strings.Contains(text, `"code":"`+rest+`"`) || !strings.Contains(text, `"reason":"`+code+`"`) {
			t.Errorf("got %d %s", got, text)
		}
		tells(t, askGraphQL(t, url, "ann", `mutation { sendMessage(input: {to: "bot", parts: [{text: "one more"}]}) { task { id } } }`), code)
	}
	register(`{"tasks":1,"own":9007199254740993}`)
	tells(t, sendTo(t, url, "bot", "ann", "1", atOnce), `"TASK_STATE_SUBMITTED"`)
	refused("-31105", "OVERLOADED", "UNAVAILABLE", http.StatusTooManyRequests)
	register(`{"messageBytes":5}`)
	tells(t, sendTo(t, url, "bot", "ann", "12345", atOnce), `"TASK_STATE_SUBMITTED"`)
	refused("-32602", "LIMIT_EXCEEDED", "INVALID_REQUEST", http.StatusBadRequest)
	register(`{"messagesPerMinute":1}`)
	tells(t, sendTo(t, url, "bot", "ann", "2", atOnce), `"TASK_STATE_SUBMITTED"`)
	refused("-31105", "RATE_LIMITED", "RATE_LIMITED", http.StatusTooManyRequests)
}
