package main

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"

	"koine/cmd/koine/internal/cli"
	"koine/internal/audit"
	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/kg"
)

// restFlags configure the REST and WebSocket protocol of agents and tasks.
type restFlags struct {
	RestPrefix string `help:"Path prefix of the REST and WebSocket protocol of agents and tasks. With / its paths are those of its specification (/agents, /messages, /tasks, /ws)." default:"/rest" placeholder:"PATH" name:"rest-prefix"`
}

// reservedPaths are the first path segments of koine's other endpoints.
var reservedPaths = []string{
	".well-known", "a2a", "admin", "agents", "changes", "data", "graphql", "healthz", "metrics", "playground", "readyz", "schemas", "stream-token",
}

// restPrefix returns the path prefix of the protocol, "" for the root.
func (f *restFlags) restPrefix() (string, error) {
	prefix := strings.TrimSuffix(f.RestPrefix, "/")
	if prefix == "" && f.RestPrefix == "/" {
		return "", nil
	}
	if len(prefix) < 2 || prefix[0] != '/' || path.Clean(prefix) != prefix || strings.ContainsFunc(prefix, notInPath) {
		return "", cli.Usagef("--rest-prefix %s: must be / or a path such as /rest, of letters, digits, and - . _ ~", f.RestPrefix)
	}
	if first, _, _ := strings.Cut(prefix[1:], "/"); slices.Contains(reservedPaths, first) {
		return "", cli.Usagef("--rest-prefix %s: /%s is used by another endpoint", f.RestPrefix, first)
	}
	return prefix, nil
}

// firstElement returns the first element of a path.
func firstElement(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

func notInPath(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/-._~", r)
}

// rootRoutes are the routes of the protocol without a prefix. Where the hub has the same
// path, the protocol serves reads of agents and the hub the rest; both serve the same cards.
var rootRoutes = []string{
	"GET /agents", "GET /agents/{id}", "/agents/{id}/messages", "/messages/{id}", "/tasks", "/tasks/{id}", "/ws",
}

// handleREST registers the routes of the protocol.
func handleREST(server *httpd.Server, prefix string, h http.Handler) {
	if prefix != "" {
		server.HandleSocket(prefix+"/", httpd.Named, http.StripPrefix(prefix, h))
		return
	}
	for _, pattern := range rootRoutes {
		server.HandleSocket(pattern, httpd.Named, h)
	}
	server.UnknownPaths(httpd.Named)
}

// recordRefusals returns a function that records refusals in the audit trail.
func recordRefusals(trail *audit.Trail) func(caller.Caller, kg.Code) {
	return func(who caller.Caller, code kg.Code) {
		trail.RecordDenied(caller.With(context.Background(), who), code)
	}
}
