package httpd

import (
	"net/http"
	"strings"
)

// serveHealthz reports that the process answers.
func (s *Server) serveHealthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, health{Status: "ok"})
}

// serveReadyz reports whether the store takes updates.
func (s *Server) serveReadyz(w http.ResponseWriter, _ *http.Request) {
	if s.stopping.Load() {
		writeJSON(w, http.StatusServiceUnavailable, health{Status: "not ready", Reason: "the server is shutting down"})
		return
	}
	if err := s.options.Store.Ready(); err != nil {
		writeJSON(w, http.StatusServiceUnavailable, health{Status: "not ready", Reason: err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, health{Status: "ready"})
}

type health struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// serveHome redirects a browser to the home page, and lists the endpoints for other clients.
func (s *Server) serveHome(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		// Not http.Redirect: it would make a relative address absolute, and lose the
		// prefix that a proxy may have added.
		w.Header().Set("Location", s.options.Home)
		w.WriteHeader(http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(homeText)) // the client may be gone
}

const homeText = `koine: one knowledge graph for a team of agents.

POST /                              JSON-RPC 2.0: knowledge/query, knowledge/update, knowledge/subscribe, channels/*
GET  /.well-known/agent-card.json   the agent card
GET  /graphql/schema                the GraphQL schema
GET  /changes                       a feed of changes (Server-Sent Events)
`
