package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"

	"koine/a2a"
	"koine/internal/agents"
	"koine/internal/caller"
	"koine/internal/courier"
	"koine/internal/plainjson"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// Deps are what the handler works with. All are required.
type Deps struct {
	Endpoint *a2a.Handler // koine's own
	Card     http.Handler // koine's own
	Agents   *agents.Directory
	Tasks    *tasks.Service
	Courier  *courier.Service
	Streams  *sse.Server
}

// DefaultMaxBodyBytes bounds what an agent sends.
const DefaultMaxBodyBytes = 4 << 20

// Options of the handler. The zero value of each means its default.
type Options struct {
	// PublicURL, Keys, Tokens and Push are as in a2a.CardOptions.
	PublicURL          string
	Keys, Tokens, Push bool
	MaxBodyBytes       int64
	Logger             *slog.Logger
	// Refused, if set, is told of each error: so that what somebody may not do is noted.
	Refused func(context.Context, kg.Code)
}

// Handler answers under /agents. It is safe for concurrent use.
type Handler struct {
	deps    Deps
	options Options
	mux     *http.ServeMux
}

// call answers a request with a body, nil for none. With status 0 it has answered itself.
type call func(w http.ResponseWriter, r *http.Request) (status int, body any, err error)

// NewHandler makes the handler.
func NewHandler(deps Deps, o Options) *Handler {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, DefaultMaxBodyBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(context.Context, kg.Code) {}
	}
	h := &Handler{deps: deps, options: o, mux: http.NewServeMux()}
	for pattern, do := range map[string]call{
		"GET /agents":         h.list,
		"GET /agents/{id}":    h.get,
		"PUT /agents/{id}":    h.register,
		"PATCH /agents/{id}":  h.update,
		"DELETE /agents/{id}": h.deregister,
		"GET /agents/{id}/.well-known/agent-card.json": h.card,
		"GET /agents/{id}/.well-known/agent.json":      h.card,
		"GET /agents/{id}/mailbox":                     h.mailbox,
		"POST /agents/{id}/mailbox/{task}":             h.report,
		"GET /agents/{id}/webhook":                     h.webhook,
		"PUT /agents/{id}/webhook":                     h.setWebhook,
		"DELETE /agents/{id}/webhook":                  h.deleteWebhook,
	} {
		h.mux.HandleFunc(pattern, h.serve(do))
		h.mux.HandleFunc(pattern+"/{$}", h.serve(do))
	}
	h.mux.HandleFunc("/agents/{id}/a2a", h.endpoint)
	h.mux.HandleFunc("/agents/{id}/a2a/{$}", h.endpoint)
	return h
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := h.mux.Handler(r); pattern == "" {
		refuse(w, h.nothing(r))
		return
	}
	h.mux.ServeHTTP(w, r.WithContext(r.Context())) // a copy: who called has noted its pattern
}

// nothing says why no call fits the request.
func (h *Handler) nothing(r *http.Request) *wireError {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "" {
			return &wireError{Code: codeMethod, Message: r.Method + " is not for this path, but " + method + " is", status: http.StatusMethodNotAllowed}
		}
	}
	return &wireError{Code: codePath, Message: "there is nothing at this path", status: http.StatusNotFound}
}

func (h *Handler) serve(do call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, body, err := do(w, r)
		switch {
		case err != nil:
			refuse(w, h.errorOf(r.Context(), err))
		case body != nil:
			writeJSON(w, status, body)
		case status != 0:
			w.WriteHeader(status)
		}
	}
}

// agentOf is the agent of the path.
func agentOf(r *http.Request) kg.AgentID { return kg.CanonicalAgent(r.PathValue("id")) }

// endpoint is base A2A for an agent; koine's own is all of A2A.
func (h *Handler) endpoint(w http.ResponseWriter, r *http.Request) {
	endpoint := h.deps.Endpoint
	if agent := agentOf(r); agent != kg.System {
		endpoint = endpoint.For(agent)
	}
	endpoint.ServeHTTP(w, r)
}

// agentPage is what GET /agents answers.
type agentPage struct {
	Agents []json.RawMessage `json:"agents"`
	Next   string            `json:"nextPageToken,omitempty"`
}

// list is GET /agents.
func (h *Handler) list(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	query := r.URL.Query()
	q := agents.Query{Capability: query.Get("capability"), After: kg.AgentID(query.Get("pageToken"))}
	if text := query.Get("limit"); text != "" {
		var err error
		if q.First, err = strconv.Atoi(text); err != nil || q.First < 1 || q.First > agents.MaxPage {
			return 0, nil, kg.Errorf(kg.CodeInvalid, "is between 1 and %d", agents.MaxPage).At("limit")
		}
	}
	list, last, err := h.deps.Agents.Find(r.Context(), q)
	page := agentPage{Agents: []json.RawMessage{}, Next: agents.Bare(last)}
	for i := range list {
		page.Agents = append(page.Agents, h.deps.Agents.CardOf(&list[i]))
	}
	return http.StatusOK, page, err
}

// get is GET /agents/<id>.
func (h *Handler) get(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	card, err := h.deps.Agents.Card(r.Context(), caller.From(r.Context()), agentOf(r))
	return http.StatusOK, card, err
}

// register is PUT /agents/<id>: 201 for an agent that was not registered.
func (h *Handler) register(w http.ResponseWriter, r *http.Request) (int, any, error) {
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
		return 0, nil, kg.Errorf(kg.CodeInvalid, "is not that of the path").At("id")
	}
	wish.ID = id
	now, err := h.deps.Agents.Register(r.Context(), caller.From(r.Context()), wish)
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusOK
	if now.Registration.Changed.IsZero() {
		status = http.StatusCreated
	}
	return status, h.deps.Agents.CardOf(&now), nil
}

// update is PATCH /agents/<id>.
func (h *Handler) update(w http.ResponseWriter, r *http.Request) (int, any, error) {
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

// deregister is DELETE /agents/<id>.
func (h *Handler) deregister(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	return http.StatusNoContent, nil, h.deps.Agents.Deregister(r.Context(), caller.From(r.Context()), agentOf(r))
}

// readBody reads a JSON document. Nothing but JSON is read: a foreign web page can send
// forms and plain text without asking first.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" && kind != "application/merge-patch+json" {
		return nil, kg.Errorf(kg.CodeInvalid, "a body is application/json").At("Content-Type")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.MaxBodyBytes))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the body is larger than the %d bytes that are taken", h.options.MaxBodyBytes)
	case err != nil:
		return nil, kg.Errorf(kg.CodeInvalid, "the body did not arrive")
	case !json.Valid(raw):
		return nil, kg.Errorf(kg.CodeInvalid, "the body is no JSON")
	}
	return raw, nil
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(plainjson.MustEncode(value), '\n')) // the client may be gone
}
