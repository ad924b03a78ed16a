package main

import (
	"net/http"
	"strings"
	"testing"
)

// guardedDoors are the paths of the HTTP server that need a credential, each with one of
// its methods.
var guardedDoors = []struct{ method, path string }{
	{"POST", "/"}, {"POST", "/a2a"}, {"POST", "/a2a/"},
	{"POST", "/graphql"}, {"GET", "/graphql"}, {"GET", "/graphql?query={revision}"},
	{"GET", "/changes"}, {"GET", "/data"}, {"POST", "/data"}, {"PUT", "/data"}, {"DELETE", "/data"}, {"OPTIONS", "/data"}, {"PATCH", "/data"}, {"GET", "/data/g"}, {"PUT", "/data/g"}, {"POST", "/stream-token"},
	{"GET", "/agents"}, {"GET", "/agents/"}, {"GET", "/agents/ann"}, {"GET", "/agents/ann/"}, {"PUT", "/agents/ann"}, {"PATCH", "/agents/ann"}, {"DELETE", "/agents/ann"},
	{"GET", "/agents/ann/a2a"}, {"POST", "/agents/ann/a2a"}, {"POST", "/agents/ann/a2a/"}, {"POST", "/agents/koine/a2a"},
	{"GET", "/agents/ann/.well-known/agent-card.json"}, {"GET", "/agents/ann/.well-known/agent.json"},
	{"GET", "/agents/ann/a2a/.well-known/agent-card.json"}, {"GET", "/agents/ann/a2a/.well-known/agent.json"},
	{"GET", "/agents/ann/mailbox"}, {"POST", "/agents/ann/mailbox/1"}, {"DELETE", "/agents/ann/mailbox/1.1"},
	{"GET", "/agents/ann/webhook"}, {"PUT", "/agents/ann/webhook"}, {"DELETE", "/agents/ann/webhook"},
	{"GET", "/agents/ann/upstream"}, {"PUT", "/agents/ann/upstream"}, {"DELETE", "/agents/ann/upstream"},
	{"GET", "/rest/agents"}, {"GET", "/rest/agents/ann"}, {"POST", "/rest/agents/ann/messages"}, {"GET", "/rest/messages/1.1"},
	{"GET", "/rest/tasks"}, {"GET", "/rest/tasks/1"}, {"PUT", "/rest/tasks/1"}, {"DELETE", "/rest/tasks/1"},
	{"GET", "/rest/ws"},
	{"POST", "/a2a/http/message:send"}, {"GET", "/a2a/http/v1/card"}, {"GET", "/agents/ann/a2a/http/tasks"}, {"POST", "/agents/ann/a2a/http/v1/message:stream"},
	{"GET", "/api/v1/intents"}, {"POST", "/api/v1/intents/1/state"}, {"GET", "/api/v1/channels/1/messages"}, {"PATCH", "/api/v1/tasks/1"}, {"POST", "/api/v1/agents/register"}, {"GET", "/api/v1/nothing"},
	{"POST", "/mcp"}, {"GET", "/mcp"}, {"DELETE", "/mcp"},
	{"POST", "/admin/check"}, {"GET", "/metrics"}, {"POST", "/admin/backup"},
}

// guardedRestDoors are those that the REST protocol has where it has no prefix.
var guardedRestDoors = []struct{ method, path string }{
	{"GET", "/agents"}, {"GET", "/agents/ann"}, {"POST", "/agents/ann/messages"}, {"GET", "/messages/1.1"},
	{"GET", "/tasks"}, {"GET", "/tasks/1"}, {"PUT", "/tasks/1"}, {"DELETE", "/tasks/1"}, {"GET", "/ws"},
	{"GET", "/agents/ann/mailbox"}, {"POST", "/agents/ann/a2a"},
}

// Every protocol authenticates, and none lets a principal past its limit of requests.
func TestDoorsAreGuarded(t *testing.T) {
	t.Run("with a prefix", func(t *testing.T) { guarded(t, guardedDoors) })
	t.Run("without", func(t *testing.T) { guarded(t, guardedRestDoors, "--rest-prefix", "/") })
}

func guarded(t *testing.T, doors []struct{ method, path string }, args ...string) {
	k := startKnowing(t, append(args, "--auth", "keys", "--principal-requests", "0.001")...) // one at once
	key, _ := k.create(`{agentId: "ann"}`)
	for _, d := range doors {
		if status, text := k.send(d.method, d.path, "", ""); status != http.StatusUnauthorized {
			t.Errorf("%s %s without a key: %d %s", d.method, d.path, status, text)
		}
		if status, text := k.send(d.method, d.path, strings.Repeat("x", len(key)), ""); status != http.StatusUnauthorized {
			t.Errorf("%s %s with a wrong key: %d %s", d.method, d.path, status, text)
		}
	}
	k.send(http.MethodGet, "/agents", key, "")
	for _, d := range doors {
		status, text := k.send(d.method, d.path, key, "")
		if d.path == "/metrics" || d.path == "/admin/backup" { // of certain roles, which are asked for first
			if status != http.StatusForbidden {
				t.Errorf("%s %s without its role: %d %s", d.method, d.path, status, text)
			}
			continue
		}
		if status != http.StatusTooManyRequests || !strings.Contains(text, "requests of this principal") {
			t.Errorf("%s %s past the share: %d %s", d.method, d.path, status, text)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/.well-known/agent-card.json"} {
		if status, text := k.send(http.MethodGet, path, "", ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
