package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"koine/cmd/koine/internal/cli"
)

// outsidersOfIntents is eve's requests to OpenIntent about what is of others, with the
// status of her answer.
var outsidersOfIntents = []struct {
	method, path, body string
	status             int
}{
	{"GET", "/intents/{intent}", "", 404},
	{"POST", "/intents/{intent}/state", `{"state":{"a":1}}`, 404},
	{"POST", "/intents/{intent}/status", `{"status":"active"}`, 404},
	{"GET", "/intents/{intent}/portfolios", "", 404},
	{"GET", "/intents/{intent}/events", "", 404},
	{"POST", "/intents/{intent}/events", `{"event_type":"comment"}`, 404},
	{"GET", "/intents/{intent}/events/verify", "", 404},
	{"GET", "/intents/{intent}/agents", "", 404},
	{"POST", "/intents/{intent}/agents", `{"agent_id":"eve"}`, 404},
	{"DELETE", "/intents/{intent}/agents/ann", "", 404},
	{"GET", "/intents/{intent}/acl", "", 404},
	{"PUT", "/intents/{intent}/acl", `{"default_policy":"open","entries":[]}`, 404},
	{"POST", "/intents/{intent}/acl/entries", `{"principal_id":"eve","permission":"read"}`, 404},
	{"DELETE", "/intents/{intent}/acl/entries/{entry}", "", 404},
	{"GET", "/intents/{intent}/access-requests", "", 404},
	{"POST", "/intents/{intent}/access-requests", `{"principal_id":"eve","requested_permission":"read"}`, 404},
	{"POST", "/intents/{intent}/access-requests/{request}/approve", `{}`, 404},
	{"POST", "/intents/{intent}/access-requests/{request}/deny", `{}`, 404},
	{"POST", "/intents/{intent}/leases", `{"scope":"research"}`, 404},
	{"GET", "/intents/{intent}/leases", "", 404},
	{"PATCH", "/intents/{intent}/leases/{lease}", `{"duration_seconds":60}`, 404},
	{"DELETE", "/intents/{intent}/leases/{lease}", "", 404},
	{"POST", "/tasks", `{"intent_id":"{intent}","name":"x"}`, 404},
	{"GET", "/tasks/{task}", "", 404},
	{"PATCH", "/tasks/{task}", `{"status":"completed"}`, 404},
	{"GET", "/intents/{intent}/tasks", "", 404},
	{"POST", "/intents", `{"title":"x","parent_intent_id":"{intent}"}`, 404},
	{"POST", "/intents/{intent}/channels", `{"name":"release"}`, 404},
	{"GET", "/intents/{intent}/channels", "", 404},
	{"POST", "/intents/{intent}/channels/release/messages", `{"sender":"eve","payload":{}}`, 404},
	{"GET", "/channels/{channel}", "", 404},
	{"PATCH", "/channels/{channel}", `{"name":"x"}`, 404},
	{"DELETE", "/channels/{channel}", "", 404},
	{"POST", "/channels/{channel}/messages", `{"sender":"eve","payload":{}}`, 404},
	{"GET", "/channels/{channel}/messages", "", 404},
	{"GET", "/channels/{channel}/messages/{message}", "", 404},
	{"PATCH", "/channels/{channel}/messages/{message}", `{"status":"read"}`, 404},
	{"POST", "/channels/{channel}/messages/{message}/reply", `{"sender":"eve","payload":{}}`, 404},
	{"GET", "/intents/{intent}/subscribe", "", 404},
	{"GET", "/subscribe/intents/{intent}", "", 404},
	{"GET", "/channels/{channel}/subscribe", "", 404},
	{"GET", "/subscribe/channels/{channel}", "", 404},
	{"GET", "/agents/{agent}/subscribe", "", 403},
	{"GET", "/subscribe/agents/{agent}", "", 403},
}

// outsidersListIntents is eve's requests for lists: {portfolio} is a portfolio of ann's,
// which everybody may read.
var outsidersListIntents = []string{"/intents", "/intents?status=draft", "/agents", "/portfolios", "/portfolios/{portfolio}", "/portfolios/{portfolio}/intents"}

// TestOutsidersOfIntents proves that eve gets the same answer about an intent of others, its
// channels, messages, tasks, leases and access as about one that never existed: to the byte;
// and that the lists that she reads do not change with it.
func TestOutsidersOfIntents(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	ann, _ := k.create(`{agentId: "ann"}`)
	cy, _ := k.create(`{agentId: "cy"}`)
	eve, _ := k.create(`{agentId: "eve"}`)
	hears := func(method, path, body string) (int, string) {
		ctx, cancel := context.WithTimeout(t.Context(), cli.RequestTimeout)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, k.url+"/api/v1"+path, strings.NewReader(body))
		if err != nil {
			return 0, err.Error()
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-API-Key", eve)
		r.Header.Set("If-Match", "1")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return response.StatusCode, fmt.Sprintln(response.StatusCode, response.Header.Get("Content-Type"), err) + string(text)
	}
	hidden := map[string]string{"agent": "ann"}
	fill := func(names map[string]string, text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(name string) string { return names[name[1:len(name)-1]] })
	}
	create := func(name, key, path, body string) {
		t.Helper()
		var answer struct{ ID string }
		status, text := k.send("POST", "/api/v1"+fill(hidden, path), key, fill(hidden, body))
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.ID == "" {
			t.Fatal(name, status, text, err)
		}
		hidden[name] = answer.ID
	}
	create("portfolio", ann, "/portfolios", `{"name":"quarter"}`)
	before := map[string]string{}
	for _, path := range outsidersListIntents {
		if _, before[path] = hears("GET", fill(hidden, path), ""); !strings.HasPrefix(before[path], "200 ") {
			t.Errorf("GET %s: %s", path, before[path])
		}
	}
	create("intent", ann, "/intents", `{"title":"secret","state":{"secret":1}}`)
	create("channel", ann, "/intents/{intent}/channels", `{"name":"release","members":["ann"]}`)
	create("message", ann, "/channels/{channel}/messages", `{"sender":"ann","payload":{"secret":2}}`)
	create("lease", ann, "/intents/{intent}/leases", `{"scope":"research"}`)
	create("task", ann, "/tasks", `{"intent_id":"{intent}","name":"secret"}`)
	create("entry", ann, "/intents/{intent}/acl/entries", `{"principal_id":"dora","permission":"read"}`)
	create("request", cy, "/intents/{intent}/access-requests", `{"principal_id":"cy","requested_permission":"read","reason":"r"}`)
	create("membership", ann, "/portfolios/{portfolio}/intents", `{"intent_id":"{intent}"}`)
	if status, text := k.send("PUT", "/api/v1/intents/"+hidden["intent"]+"/acl", ann, `{"default_policy":"closed","entries":[{"principal_id":"dora","permission":"read"}]}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	for _, path := range outsidersListIntents {
		if _, got := hears("GET", fill(hidden, path), ""); got != before[path] {
			t.Errorf("GET %s: got\n%s\nwhere nothing was hidden\n%s", path, got, before[path])
		}
	}

	absent := map[string]string{"agent": "nob"}
	for i, name := range []string{"intent", "channel", "message", "lease", "task", "entry", "request"} {
		absent[name] = fmt.Sprintf("0192aaaa-0000-7000-8000-00000000000%d", i)
	}
	var all sync.WaitGroup // refused streams are delayed
	for _, row := range outsidersOfIntents {
		all.Go(func() {
			status, want := hears(row.method, fill(absent, row.path), fill(absent, row.body))
			if status != row.status {
				t.Errorf("%s %s: of what is not there eve is told %s, want %d", row.method, row.path, want, row.status)
			}
			if _, got := hears(row.method, fill(hidden, row.path), fill(hidden, row.body)); got != want {
				t.Errorf("%s %s:\n got %s\nwant %s", row.method, row.path, got, want)
			}
		})
	}
	all.Wait()
	// Who takes part sees all of it, unchanged.
	if status, text := k.send("GET", "/api/v1/channels/"+hidden["channel"]+"/messages", ann, ""); status != http.StatusOK || !strings.Contains(text, `{"secret":2}`) {
		t.Error(status, text)
	}
	if _, text := k.send("GET", "/api/v1/intents/"+hidden["intent"], ann, ""); !strings.Contains(text, `"version":1,`) {
		t.Error(text)
	}
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)
