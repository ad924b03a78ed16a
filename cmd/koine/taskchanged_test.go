package main

import (
	"bufio"
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

// subscribed is a subscription that is open: next is an event of it, "" at its end.
type subscribed struct {
	next  func() string
	leave func()
}

// Subscription.taskChanged delivers the same over server-sent events, a WebSocket and
// knowledge/subscribe: the events behind a position, new ones, missed ones after an
// interruption, and the end, after which it ends itself.
func TestTaskChangedOverAllTransports(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	ann, _ := k.create(`{agentId: "ann"}`)
	bot, _ := k.create(`{agentId: "bot"}`)
	eve, _ := k.create(`{agentId: "eve"}`)
	if status, text := k.send(http.MethodPut, "/agents/bot", bot, `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(status, text)
	}
	for name, follow := range map[string]func(key, query, last string) subscribed{
		"event stream": k.followStream, "WebSocket": k.followSocket, "knowledge/subscribe": k.followA2A,
	} {
		t.Run(name, func(t *testing.T) {
			var sent struct {
				Data struct {
					SendMessage struct {
						Task     struct{ ID string }
						Position string
					}
				}
			}
			answer := k.graphql(ann, `mutation { sendMessage(input: {to: "bot", parts: [{text: "count"}]}) { task { id } position } }`)
			if err := json.Unmarshal([]byte(answer), &sent); err != nil || sent.Data.SendMessage.Position == "" {
				t.Fatal(answer, err)
			}
			id, position := sent.Data.SendMessage.Task.ID, sent.Data.SendMessage.Position
			reports := func(more string) {
				t.Helper()
				tells(t, k.graphql(bot, `mutation { reportTask(input: {taskId: "`+id+`", `+more+`}) { task { version } } }`), `"version"`)
			}
			counts := func(n int) {
				t.Helper()
				reports(fmt.Sprintf(`state: WORKING, artifacts: [{id: "a", append: %t, parts: [{text: "sheep %d"}]}]`, n > 1, n))
			}
			const told = `{ ... on TaskChange { kind artifact { text } status { state } task { messageCount } position } ... on Resync { reason } }`
			query := func(after string) string {
				return `subscription { taskChanged(id: "` + id + `"` + after + `) ` + told + ` }`
			}
			last := position
			hears := func(f subscribed, want ...string) {
				t.Helper()
				for _, part := range want {
					event := f.next()
					at := positionIn.FindStringSubmatch(event)
					if !strings.Contains(event, part) || at == nil || strings.Contains(event, "0001-01-01") {
						t.Fatalf("got %q, want %s", event, part)
					}
					last = at[1]
				}
			}
			whole := follow(ann, query(""), "")
			hears(whole, `"kind":"TASK"`) // it begins with the task
			counts(1)
			replayed := follow(ann, query(`, resume: "`+position+`"`), "")
			for _, f := range []subscribed{whole, replayed} {
				hears(f, `sheep 1`, `"status":{"state":"WORKING"}`)
			}
			counts(2)
			if name == "knowledge/subscribe" { // which tells it by a statement
				hears(whole, `"value":3,`)
			} else {
				hears(whole, `sheep 2`)
			}
			hears(whole, `"status":{"state":"WORKING"}`)
			hears(replayed, `sheep 2`)
			replayed.leave()
			counts(3) // while it is away
			back := follow(bot, query(`, resume: "`+position+`"`), last)
			hears(back, `"status":{"state":"WORKING"}`, `sheep 3`, `"status":{"state":"WORKING"}`)
			reports(`state: COMPLETED`)
			hears(back, `"status":{"state":"COMPLETED"}`)
			hears(whole, `sheep 3`, `"status":{"state":"WORKING"}`, `"status":{"state":"COMPLETED"}`)
			for _, f := range []subscribed{whole, back} {
				if event := f.next(); event != "" {
					t.Errorf("behind the end comes %s", event)
				}
			}
			if event := follow(eve, query(""), "").next(); !strings.Contains(event, "TASK_NOT_FOUND") {
				t.Errorf("another is told %q", event)
			}
		})
	}
}

// positionIn finds the requested position of an event.
var positionIn = regexp.MustCompile(`"position":"([^"]*)"`)

// followStream follows over graphql-sse.
func (k *knowing) followStream(key, query, last string) subscribed {
	return k.followEvents("/graphql", key, map[string]string{"query": query}, last)
}

// followA2A follows with knowledge/subscribe.
func (k *knowing) followA2A(key, query, last string) subscribed {
	return k.followEvents("/a2a", key, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "knowledge/subscribe", "params": map[string]string{"subscriptionQuery": query}}, last)
}

func (k *knowing) followEvents(path, key string, body any, last string) subscribed {
	k.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), cli.RequestTimeout)
	k.t.Cleanup(cancel)
	r := asking(ctx, k.t, http.MethodPost, k.url+path, key, string(raw))
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	return subscribed{leave: cancel, next: func() string {
		for lines.Scan() {
			if text := lines.Text(); strings.Contains(text, "{") {
				return text
			}
		}
		if ctx.Err() != nil {
			k.t.Fatal("the stream goes on")
		}
		return ""
	}}
}

// followSocket follows over graphql-transport-ws, and resumes after a position.
func (k *knowing) followSocket(key, query, last string) subscribed {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), cli.RequestTimeout)
	k.t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, k.url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"Authorization": {"Bearer " + key}}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = conn.CloseNow() })
	write := func(frame any) {
		raw, err := json.Marshal(frame)
		if err == nil {
			err = conn.Write(ctx, websocket.MessageText, raw)
		}
		if err != nil {
			k.t.Fatal(err)
		}
	}
	if last != "" {
		query = regexp.MustCompile(`resume: "[^"]*"`).ReplaceAllString(query, `resume: "`+last+`"`)
	}
	write(map[string]any{"type": "connection_init"})
	write(map[string]any{"type": "subscribe", "id": "1", "payload": map[string]string{"query": query}})
	return subscribed{leave: func() { _ = conn.CloseNow() }, next: func() string {
		for {
			_, raw, err := conn.Read(ctx)
			if err != nil {
				k.t.Fatal(err)
			}
			switch text := string(raw); {
			case strings.Contains(text, `"type":"complete"`):
				return ""
			case strings.Contains(text, `"id":"1"`):
				return text
			}
		}
	}}
}
