package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"koine/a2a"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/delivery/forward"
	"koine/internal/delivery/mailhook"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// Deps are the dependencies of the handler. All are required.
type Deps struct {
	Endpoint *a2a.Handler // koine's own
	Card     http.Handler // koine's own
	Agents   *agents.Directory
	Tasks    *tasks.Service
	Hooks    *mailhook.Service
	Forward  *forward.Service
	Streams  *sse.Server
}

// Options configures the handler. Zero values select defaults.
type Options struct {
	// PublicURL, Keys, Tokens, Push and Only are as in a2a.CardOptions.
	PublicURL          string
	Only               a2a.CardVersion
	Keys, Tokens, Push bool
	MaxBodyBytes       int64
	Logger             *slog.Logger
	// Refused, if set, is called with each error, for the audit trail.
	Refused func(context.Context, kg.Code)
}

// Handler serves /agents. It is safe for concurrent use.
type Handler struct {
	deps    Deps
	options Options
	routes  *rest.Routes
	open    openMailboxes
}

// NewHandler returns a handler.
func NewHandler(deps Deps, o Options) *Handler {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, rest.MaxBodyBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(context.Context, kg.Code) {}
	}
	h := &Handler{deps: deps, options: o}
	h.routes = rest.NewRoutes(h.writeError)
	for pattern, do := range map[string]rest.Call{
		"GET /agents":         h.listAgents,
		"GET /agents/{id}":    h.getAgent,
		"PUT /agents/{id}":    h.registerAgent,
		"PATCH /agents/{id}":  h.updateAgent,
		"DELETE /agents/{id}": h.deregisterAgent,
		"GET /agents/{id}/.well-known/agent-card.json": h.getCard,
		"GET /agents/{id}/.well-known/agent.json":      h.getCard,
		// For clients that have the address of the endpoint.
		"GET /agents/{id}/a2a/.well-known/agent-card.json": h.getCard,
		"GET /agents/{id}/a2a/.well-known/agent.json":      h.getCard,
		"GET /agents/{id}/a2a":                             h.getCard,
		// For clients that have the address of an agent without its slash.
		"GET /agents/.well-known/agent-card.json": h.noCard,
		"GET /agents/.well-known/agent.json":      h.noCard,
		"GET /agents/{id}/mailbox":                h.serveMailbox,
		"POST /agents/{id}/mailbox/{task}":        h.reportTask,
		"DELETE /agents/{id}/mailbox/{letter}":    h.acknowledgeLetter,
		"GET /agents/{id}/webhook":                h.getWebhook,
		"PUT /agents/{id}/webhook":                h.setWebhook,
		"DELETE /agents/{id}/webhook":             h.deleteWebhook,
		"GET /agents/{id}/upstream":               h.getUpstream,
		"PUT /agents/{id}/upstream":               h.setUpstream,
		"DELETE /agents/{id}/upstream":            h.deleteUpstream,
	} {
		h.routes.Call(pattern, do)
		h.routes.Call(pattern+"/{$}", do)
	}
	h.routes.Handle("/agents/{id}/a2a", h.serveEndpoint)
	h.routes.Handle("/agents/{id}/a2a/{$}", h.serveEndpoint)
	h.routes.Handle("/agents/{id}/a2a"+a2a.HTTPPath+"/", h.serveHTTP)
	return h
}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }

// agentOf returns the agent of the path.
func agentOf(r *http.Request) kg.AgentID { return kg.CanonicalAgent(r.PathValue("id")) }

// serveEndpoint serves base A2A for an agent, and all of A2A for koine's own.
func (h *Handler) serveEndpoint(w http.ResponseWriter, r *http.Request) {
	endpoint := h.deps.Endpoint
	if agent := agentOf(r); agent != kg.System {
		endpoint = endpoint.For(agent)
	}
	endpoint.ServeHTTP(w, r)
}

// serveHTTP serves base A2A over HTTP+JSON for an agent, and for koine itself.
func (h *Handler) serveHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint := h.deps.Endpoint
	if agent := agentOf(r); agent != kg.System {
		endpoint = endpoint.For(agent)
	}
	// The base is cut off the path as it was escaped.
	segments := strings.SplitN(r.URL.EscapedPath(), "/", 6)
	endpoint.HTTP(strings.Join(segments[:5], "/")).ServeHTTP(w, r)
}

// Deregistered ends the mailboxes of an agent that deregistered.
func (h *Handler) Deregistered(agent kg.AgentID) { h.open.endAll(agent, errUnregistered()) }

// agentPage is the answer of GET /agents.
type agentPage struct {
	Agents []json.RawMessage `json:"agents"`
	Next   string            `json:"nextPageToken,omitempty"`
}

// listAgents handles GET /agents.
func (h *Handler) listAgents(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	query := r.URL.Query()
	first, err := rest.LimitParam(r, agents.DefaultPage, agents.MaxPage)
	if err != nil {
		return 0, nil, err
	}
	list, last, err := h.deps.Agents.Find(r.Context(), agents.Query{Capability: query.Get("capability"), After: kg.AgentID(query.Get("pageToken")), First: first})
	page := agentPage{Agents: []json.RawMessage{}, Next: agents.ShortID(last)}
	for i := range list {
		page.Agents = append(page.Agents, h.deps.Agents.CardOf(&list[i]))
	}
	return http.StatusOK, page, err
}

// getAgent handles GET /agents/<id>.
func (h *Handler) getAgent(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	card, err := h.deps.Agents.Card(r.Context(), caller.From(r.Context()), agentOf(r))
	return http.StatusOK, card, err
}

// registerAgent handles PUT /agents/<id>: 201 for a new registration.
func (h *Handler) registerAgent(w http.ResponseWriter, r *http.Request) (int, any, error) {
	body, err := h.readBody(w, r)
	if err != nil {
		return 0, nil, err
	}
	wish, err := agents.ParseCard(body)
	if err != nil {
		return 0, nil, err
	}
	id := agentOf(r)
	if wish.ID != "" && wish.ID != id {
		return 0, nil, kg.Errorf(kg.CodeInvalid, "id differs from the agent of the path").At("id")
	}
	wish.ID = id
	now, err := h.deps.Agents.Register(r.Context(), caller.From(r.Context()), wish)
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusOK
	if now.NewlyRegistered {
		status = http.StatusCreated
	}
	return status, h.deps.Agents.CardOf(&now), nil
}

// updateAgent handles PATCH /agents/<id>.
func (h *Handler) updateAgent(w http.ResponseWriter, r *http.Request) (int, any, error) {
	body, err := h.readBody(w, r)
	if err != nil {
		return 0, nil, err
	}
	now, err := h.deps.Agents.Update(r.Context(), caller.From(r.Context()), agentOf(r), body)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, h.deps.Agents.CardOf(&now), nil
}

// deregisterAgent handles DELETE /agents/<id>.
func (h *Handler) deregisterAgent(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	return http.StatusNoContent, nil, h.deps.Agents.Deregister(r.Context(), caller.From(r.Context()), agentOf(r))
}

// readBody reads a JSON document.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	return rest.ReadBody(w, r, h.options.MaxBodyBytes, "application/merge-patch+json")
}
