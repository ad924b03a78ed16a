package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"koine/client"
)

// losing is a proxy in front of a server. It forwards a number of requests and drops their
// answers.
type losing struct {
	*httptest.Server
	lose  atomic.Int64
	asked atomic.Int64 // that came, without those for cards
}

func loses(t *testing.T, url string) *losing {
	l := new(losing)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		on, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.Path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		on.Header = r.Header.Clone()
		answer, err := http.DefaultClient.Do(on)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method != http.MethodGet {
			l.asked.Add(1)
			if l.lose.Add(-1) >= 0 {
				panic(http.ErrAbortHandler)
			}
		}
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write(text) // a client that has left has no use for it
	}))
	t.Cleanup(l.Close)
	return l
}

// A request with a lost answer is repeated if that has no further effect, and is an error
// otherwise.
func TestLostAnswers(t *testing.T) {
	s := start(t)
	l := loses(t, s.URL)
	ctx, ann := bounded(t), open(t, l.URL, "ann")
	channel, err := ann.CreateChannel(ctx, client.NewChannel{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := ann.A2A(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Destroy() }()
	if err := ann.RegisterAgent(ctx, "bot", map[string]any{"name": "Bot", "version": "1"}); err != nil {
		t.Fatal(err)
	}
	bot, err := client.OpenAgent(ctx, l.URL, "bot", client.Options{Agent: "ann", Retry: client.Retry{MinWait: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	toBot, err := bot.A2A(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = toBot.Destroy() }()
	message := func(text string) *a2a.SendMessageRequest {
		return &a2a.SendMessageRequest{
			Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text)), Config: &a2a.SendMessageConfig{ReturnImmediately: true},
		}
	}
	var task a2a.TaskID
	for _, c := range []struct {
		name  string
		again bool
		call  func() error
	}{
		{"query", true, func() error {
			var answer struct{ Revision uint64 }
			_, err := ann.Query(ctx, client.Query{Text: "{ revision }"}, &answer)
			if err == nil && answer.Revision == 0 {
				err = errors.New("no revision")
			}
			return err
		}},
		{"mutation", false, func() error {
			_, err := ann.Query(ctx, client.Query{Text: `mutation { createChannel(input: {name: "made once"}) { channel { id } } }`}, nil)
			return err
		}},
		{"GraphQL query", true, func() error { return ann.GraphQL(ctx, "{ me { id } }", nil, nil) }},
		{"GraphQL mutation", false, func() error {
			return ann.GraphQL(ctx, `mutation { createChannel(input: {name: "made once more"}) { channel { id } } }`, nil, nil)
		}},
		{"update", true, func() error {
			_, err := ann.Update(ctx, client.Update{Patches: []client.Patch{client.Add("finding:1", "lab:seen", client.Value(1))}})
			return err
		}},
		{"update, once", false, func() error {
			_, err := ann.Update(ctx, client.Update{Patches: []client.Patch{client.Add("finding:1", "lab:seen", client.Value(2))}, Once: true})
			return err
		}},
		{"publish", true, func() error {
			_, err := ann.Publish(ctx, client.Publication{Channel: channel.ID, Parts: []any{client.TextPart("x")}})
			return err
		}},
		{"create a channel", true, func() error {
			_, err := ann.CreateChannel(ctx, client.NewChannel{Name: "once"})
			return err
		}},
		{"register", true, func() error {
			return ann.RegisterAgent(ctx, "bot", map[string]any{"name": "Bot", "version": "1"})
		}},
		{"message", true, func() error {
			_, err := agent.SendMessage(ctx, message(`{ revision }`))
			return err
		}},
		{"message to an agent", true, func() error {
			answer, err := toBot.SendMessage(ctx, message("rain?"))
			if err == nil {
				task = answer.TaskInfo().TaskID
			}
			return err
		}},
		{"task", true, func() error {
			_, err := toBot.GetTask(ctx, &a2a.GetTaskRequest{ID: task})
			return err
		}},
		{"cancel", false, func() error {
			_, err := toBot.CancelTask(ctx, &a2a.CancelTaskRequest{ID: task})
			return err
		}},
	} {
		l.asked.Store(0)
		l.lose.Store(1)
		err := c.call()
		want := int64(1)
		if c.again {
			want = 2
		}
		if asked := l.asked.Load(); (err == nil) != c.again || asked != want {
			t.Errorf("%s: %v, after %d calls", c.name, err, asked)
		}
		l.lose.Store(0)
	}
	said := 0
	for m, err := range ann.History(ctx, channel.ID, client.HistoryFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		said++
		if m.IdempotencyKey == "" {
			t.Error("a message without a key was sent again")
		}
	}
	if said != 1 {
		t.Errorf("%d messages for one", said)
	}
	names := map[string]int{}
	for c, err := range ann.ListChannels(ctx, client.ChannelFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		names[c.Name]++
	}
	if names["made once"] != 1 || names["made once more"] != 1 || names["once"] != 1 {
		t.Errorf("%v", names)
	}
	var changes struct {
		Changes struct{ Nodes []json.RawMessage }
	}
	if _, err := ann.Query(ctx, client.Query{Text: `{ changes(first: 100, where: {predicate: {eq: "lab:seen"}}) { nodes { op } } }`}, &changes); err != nil || len(changes.Changes.Nodes) != 2 {
		t.Errorf("%d changes for two updates: %v", len(changes.Changes.Nodes), err)
	}
	list, err := toBot.ListTasks(ctx, &a2a.ListTasksRequest{})
	if err != nil || len(list.Tasks) != 1 {
		t.Errorf("%+v for one message: %v", list, err)
	}
}

// A busy server is asked again after its own delay, up to a bound, unless the program wants
// the first answer.
func TestBusy(t *testing.T) {
	var asked int
	status := http.StatusTooManyRequests
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"name": "busy", "url": "http://x/", "capabilities": {"knowledgeGraph": true}}`)
			return
		}
		asked++
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
	}))
	defer server.Close()
	query := func(text string, r client.Retry) (waits []time.Duration, err error) {
		asked = 0
		r.MinWait = time.Microsecond
		r.OnRetry = func(_ error, wait time.Duration) { waits = append(waits, wait) }
		c, err := client.Open(t.Context(), server.URL, client.Options{Retry: r})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Query(t.Context(), client.Query{Text: text}, nil)
		return waits, err
	}
	var e *client.Error
	// The hint is followed, up to MaxWait.
	waits, err := query("{ x }", client.Retry{Attempts: 3, MaxWait: time.Millisecond})
	if !errors.As(err, &e) || e.Status != 429 || e.RetryAfter != time.Second || asked != 3 || len(waits) != 2 || waits[0] != time.Millisecond {
		t.Errorf("%v after %d calls and waits of %v", err, asked, waits)
	}
	if waits, err := query("{ x }", client.Retry{FailFast: true}); err == nil || asked != 1 || len(waits) != 0 {
		t.Errorf("%v after %d calls", err, asked)
	}
	for _, mutation := range []string{
		"mutation { x }", "mutation{x}", "# { mutation }\nmutation X { x }", "{ y } mutation Z { x }", "query mutation { x }",
		"\"\"\" mutation \\\"\"\" \"\"\" mutation { x }", "query($a: String = \"{\\\"{\") { x } mutation { x }", "\ufeffmutation { x }",
	} {
		if waits, err := query(mutation, client.Retry{Attempts: 2, MaxWait: time.Millisecond}); err == nil || asked != 1 || len(waits) != 0 {
			t.Errorf("%s: %v after %d calls", mutation, err, asked)
		}
	}
	for _, reading := range []string{
		"{ mutation }", "query { x(a: \"} mutation\") }", "# mutation\n{ x }", "{ x(a: \"\"\"} mutation \\\"\"\" mutation\"\"\") }", "query Mutation { x }",
	} {
		if _, err := query(reading, client.Retry{Attempts: 2, MaxWait: time.Millisecond}); err == nil || asked != 2 {
			t.Errorf("%s: %v after %d calls", reading, err, asked)
		}
	}
	// A permanent error is not retried.
	for _, final := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotImplemented, http.StatusMovedPermanently} {
		status = final
		if _, err := query("{ x }", client.Retry{Attempts: 2, MaxWait: time.Millisecond}); !errors.As(err, &e) || e.Status != final || asked != 1 {
			t.Errorf("%d: %v after %d calls", final, err, asked)
		}
	}
	// The context ends a wait.
	status = http.StatusServiceUnavailable
	ctx, cancel := context.WithCancel(t.Context())
	c, err := client.Open(ctx, server.URL, client.Options{Retry: client.Retry{MinWait: time.Hour, MaxWait: time.Hour, OnRetry: func(error, time.Duration) { cancel() }}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Query(ctx, client.Query{Text: "{ x }"}, nil); !errors.Is(err, context.Canceled) || !errors.As(err, &e) {
		t.Error(err)
	}
}
