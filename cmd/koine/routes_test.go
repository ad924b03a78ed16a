package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// Everything that the server announces exists: the routes, and the links of the agent card.
func TestEverythingIsServed(t *testing.T) {
	_, url := startServer(t)
	for path, kind := range map[string]string{
		"/healthz":                     "application/json",
		"/readyz":                      "application/json",
		"/metrics":                     "text/plain",
		"/playground":                  "text/html",
		"/.well-known/agent-card.json": "application/json",
		"/.well-known/agent.json":      "application/json",
		"/schemas/knowledge.json":      "application/schema+json",
		"/schemas/channels.json":       "application/schema+json",
		"/graphql/schema":              "text/plain",
		"/graphql/schema.graphql":      "application/graphql",
		"/graphql/schema.graphqls":     "application/graphql",
		"/agents":                      "application/json",
		"/agents/koine/a2a":            "application/json",
		"/a2a/http/tasks":              "application/json",
		"/a2a/http/extendedAgentCard":  "application/json",
		"/a2a/http/v1/card":            "application/json",
		"/agents/koine/a2a/http/tasks": "application/json",

		"/a2a/.well-known/agent-card.json": "application/json",
		"/a2a/.well-known/agent.json":      "application/json",
		"/graphql?query={revision}":        "application/",
		"/data":                            "application/n-quads",
	} {
		if got := get(t, url+path).Header.Get("Content-Type"); !strings.HasPrefix(got, kind) {
			t.Errorf("%s: got %q, want %q", path, got, kind)
		}
	}
	var card any
	response := get(t, url+"/.well-known/agent-card.json")
	if err := json.NewDecoder(response.Body).Decode(&card); err != nil {
		t.Fatal(err)
	}
	links := 0
	eachText(card, func(text string) {
		if !strings.HasPrefix(text, url) || strings.HasSuffix(text, "/a2a") || strings.HasSuffix(text, "/a2a/http") || strings.HasSuffix(text, "/changes") {
			return // those are spoken to otherwise
		}
		links++
		get(t, text)
	})
	if links < 2 {
		t.Errorf("the card links to %d documents", links)
	}
}

// The schema at the endpoint is behind the same rules as its operations; the paths of the
// schema need no credential.
func TestSchemaBehindTheEndpoint(t *testing.T) {
	k := startKnowing(t, "--auth", "keys")
	reader, _ := k.create(`{agentId: "ann", roles: ["reader"]}`)
	for _, x := range []struct {
		path, key, origin string
		status            int
	}{
		{"/graphql", reader, "", http.StatusOK}, {"/graphql", "", "", http.StatusUnauthorized}, {"/graphql", "koine_none", "", http.StatusUnauthorized},
		{"/graphql", reader, "https://evil.example", http.StatusForbidden},
		{"/graphql/schema.graphql", "", "", http.StatusOK}, {"/graphql/schema.graphql", "", "https://evil.example", http.StatusForbidden},
	} {
		headers := []string{"Accept", "application/graphql"}
		if x.origin != "" {
			headers = append(headers, "Origin", x.origin)
		}
		status, text := k.send(http.MethodGet, x.path, x.key, "", headers...)
		if status != x.status || strings.Contains(text, "type Query") != (x.status == http.StatusOK) {
			t.Errorf("%+v: got %d %.80s", x, status, text)
		}
	}
}

// A socket works through the whole server.
func TestSocketIsServed(t *testing.T) {
	_, url := startServer(t)
	conn, _, err := websocket.Dial(t.Context(), url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	for _, exchange := range []struct{ send, want string }{
		{`{"type":"connection_init"}`, `{"type":"connection_ack"}`},
		{`{"id":"1","type":"subscribe","payload":{"query":"{ __typename }"}}`, `{"type":"next","id":"1","payload":{"data":{"__typename":"Query"}`},
	} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(exchange.send)); err != nil {
			t.Fatal(err)
		}
		if _, text, err := conn.Read(t.Context()); err != nil || !strings.HasPrefix(string(text), exchange.want) {
			t.Errorf("got %s, %v, want %s", text, err, exchange.want)
		}
	}
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Errorf("%s: %s %s", url, response.Status, text)
	}
	return response
}

// eachText visits the strings of a JSON document.
func eachText(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			eachText(item, visit)
		}
	case map[string]any:
		for _, item := range v {
			eachText(item, visit)
		}
	}
}
