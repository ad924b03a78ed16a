package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// Pages of an origin that is allowed reach every protocol, sockets included, and
// pages of others none.
func TestPagesOfOtherOrigins(t *testing.T) {
	s, url := startServer(t, "--auth", "keys", "--allow-origin", "https://app.example")
	key := trustMasks.FindString(s.log.String())
	ask := func(method, path, origin, body string) *http.Response {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodOptions {
			r.Header.Del("Authorization")
			r.Header.Set("Access-Control-Request-Method", "POST")
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response
	}
	for _, x := range []struct{ method, path, body string }{
		{"POST", "/", `{"jsonrpc":"2.0","id":1,"method":"knowledge/query","params":{"query":"{ revision }"}}`},
		{"POST", "/a2a", `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { statementChanged { __typename } }"}}`},
		{"POST", "/graphql", `{"query":"{ revision }"}`},
		{"GET", "/changes", ""},
		{"GET", "/data", ""},
		{"GET", "/.well-known/agent-card.json", ""},
		{"GET", "/a2a/.well-known/agent-card.json", ""},
		{"GET", "/graphql/schema.graphql", ""},
		{"GET", "/graphql/schema.graphqls", ""},
		{"GET", "/agents", ""},
		{"GET", "/agents/koine/a2a", ""},
		{"GET", "/a2a/http/tasks", ""}, {"GET", "/agents/koine/a2a/http/v1/card", ""}, {"OPTIONS", "/a2a/http/message:send", ""}, {"OPTIONS", "/agents/koine/a2a/http/v1/message:stream", ""},
		{"POST", "/stream-token", `{"url":"/changes"}`},
		{"GET", "/api/v1/intents", ""}, {"POST", "/api/v1/intents", `{"title":"Q1"}`}, {"GET", "/api/v1/agents/admin/subscribe", ""}, {"GET", "/.well-known/openintent.json", ""},
		{"GET", "/agentchat/rooms", ""}, {"POST", "/agentchat/agents/register", `{"name":"Page"}`},
		{"GET", "/a2a/http/tasks", ""}, {"GET", "/a2a/http/v1/card", ""}, {"GET", "/agents/koine/a2a/http/tasks", ""},
		{"OPTIONS", "/mcp", ""}, {"OPTIONS", "/api/v1/intents", ""}, {"OPTIONS", "/agentchat/rooms", ""}, {"OPTIONS", "/a2a/http/message:send", ""},
		{"OPTIONS", "/stream-token", ""}, {"OPTIONS", "/agents/bot/mailbox/1", ""}, {"OPTIONS", "/rest/tasks/1", ""},
		{"OPTIONS", "/", ""}, {"OPTIONS", "/graphql", ""}, {"OPTIONS", "/changes", ""}, {"OPTIONS", "/data", ""}, {"OPTIONS", "/data?graph=urn:g", ""}, {"OPTIONS", "/data/g", ""},
	} {
		response := ask(x.method, x.path, "https://app.example", x.body)
		if allowed := response.Header.Values("Access-Control-Allow-Origin"); response.StatusCode/100 != 2 || len(allowed) != 1 || allowed[0] != "https://app.example" {
			t.Errorf("%s %s: %s, Access-Control-Allow-Origin %q", x.method, x.path, response.Status, allowed)
		}
		if response := ask(x.method, x.path, "https://evil.example", x.body); response.StatusCode != http.StatusForbidden || response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s from another page: %s", x.method, x.path, response.Status)
		}
	}
	for origin, works := range map[string]bool{"https://app.example": true, "https://evil.example": false, url: true} {
		for _, path := range []string{"/graphql", "/rest/ws", "/agentchat/ws"} {
			conn, response, err := websocket.Dial(t.Context(), url+path, &websocket.DialOptions{
				Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{"Origin": {origin}, "Authorization": {"Bearer " + key}},
			})
			if err == nil {
				conn.CloseNow()
			}
			if (err == nil) != works || !works && response.StatusCode != http.StatusForbidden {
				t.Errorf("a socket at %s from %s: %v", path, origin, err)
			}
		}
	}
}
