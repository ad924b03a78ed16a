package agentapi

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
	"time"

	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// Agents are those that can be asked (agents.Directory).
type Agents interface {
	// Card is what is known of an agent, as an AgentCard of this protocol.
	//
	// Errors: CodeAgentNotFound.
	Card(ctx context.Context, by caller.Caller, id kg.AgentID) (json.RawMessage, error)
	// Cards are those of up to first agents behind after that have a capability, or of any
	// for "", in the order of their ids, and the last of them where there are more.
	Cards(ctx context.Context, by caller.Caller, capability string, after kg.AgentID, first int) (cards []json.RawMessage, last kg.AgentID, err error)
}

// Positions are those of the log (kg.Store).
type Positions interface {
	FormatPosition(kg.Position) string
	ParsePosition(string) (kg.Position, error)
}

// Deps are what the handler works with. All are required.
type Deps struct {
	Agents    Agents
	Tasks     *tasks.Service
	Positions Positions
	Streams   *sse.Server
}

// Defaults of the Options.
const (
	DefaultMaxBodyBytes = 4 << 20
	DefaultPage         = 50
	MaxPage             = 100
)

// Options of the handler. The zero value of each means its default.
type Options struct {
	MaxBodyBytes int64
	// PingInterval is how often a socket is asked whether it is there, and how long the
	// answer may take; AuthTimeout how long it may leave open who it is; WriteTimeout how
	// long it may take a frame.
	PingInterval, AuthTimeout, WriteTimeout time.Duration
	Logger                                  *slog.Logger
	// OriginAllowed, if set, says whether a page may open a socket.
	OriginAllowed func(*http.Request) bool
	// Connect, if set, takes the credential in a frame of a socket's (httpd.Server).
	Connect func(ctx context.Context, end func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error)
	// Refused, if set, is told of each error: so that what somebody may not do is
	// noted.
	Refused func(caller.Caller, kg.Code)
}

// Handler answers under a prefix, which whoever mounts it strips. It is safe for
// concurrent use.
type Handler struct {
	deps    Deps
	options Options
	mux     *http.ServeMux
}

// NewHandler makes the handler.
func NewHandler(deps Deps, o Options) *Handler {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, DefaultMaxBodyBytes)
	o.PingInterval, o.AuthTimeout = cmp.Or(o.PingInterval, DefaultPingInterval), cmp.Or(o.AuthTimeout, DefaultAuthTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(caller.Caller, kg.Code) {}
	}
	h := &Handler{deps: deps, options: o, mux: http.NewServeMux()}
	for pattern, serve := range map[string]call{
		"GET /agents":                h.listAgents,
		"GET /agents/{id}":           h.getAgent,
		"POST /agents/{id}/messages": h.sendMessage,
		"GET /messages/{id}":         h.getMessage,
		"GET /tasks":                 h.listTasks,
		"GET /tasks/{id}":            h.getTask,
		"PUT /tasks/{id}":            h.putTask,
		"DELETE /tasks/{id}":         h.deleteTask,
	} {
		h.mux.HandleFunc(pattern, h.serve(serve))
	}
	h.mux.HandleFunc("GET /ws", h.serveSocket)
	return h
}

// call answers a request. What it gives is the body of the answer; with nil it has
// answered itself.
type call func(w http.ResponseWriter, r *http.Request, who caller.Caller) (status int, body any, err error)

func (h *Handler) serve(do call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who := caller.From(r.Context())
		status, body, err := do(w, r, who)
		switch {
		case err != nil:
			refuse(w, h.errorOf(who, err))
		case body != nil:
			writeJSON(w, status, body)
		case status != 0:
			w.WriteHeader(status)
		}
	}
}

// ServeHTTP answers a request under the prefix.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := h.mux.Handler(r)
	if pattern == "" {
		refuse(w, h.nothing(r))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// nothing says why no call fits the request.
func (h *Handler) nothing(r *http.Request) *wireError {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "" {
			return &wireError{Code: codeMethod, Message: r.Method + " is not for this path, but " + method + " is", status: http.StatusMethodNotAllowed}
		}
	}
	return &wireError{Code: codePath, Message: "there is nothing at this path", status: http.StatusNotFound}
}

// readBody reads a JSON object.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return kg.Errorf(kg.CodeInvalid, "a body is application/json").At("Content-Type")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.MaxBodyBytes))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return kg.Errorf(kg.CodeLimitExceeded, "the body is larger than the %d bytes that are taken", h.options.MaxBodyBytes)
	case err != nil:
		return kg.Errorf(kg.CodeInvalid, "the body did not arrive")
	}
	return decode(raw, into)
}

func decode(raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return kg.Errorf(kg.CodeInvalid, "is not to be %s", wrong.Value).At(wrong.Field)
	}
	return kg.Errorf(kg.CodeInvalid, "the body is no JSON: %s", err)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := plainjson.Encode(value)
	if err != nil {
		panic(err) // structs of ours, with JSON that was read or written by us
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// pageOf reads how much of a list is asked for.
func pageOf(r *http.Request) (first int, after string, err error) {
	first = DefaultPage
	if text := r.URL.Query().Get("limit"); text != "" {
		if first, err = strconv.Atoi(text); err != nil || first < 1 || first > MaxPage {
			return 0, "", kg.Errorf(kg.CodeInvalid, "is between 1 and %d", MaxPage).At("limit")
		}
	}
	return first, r.URL.Query().Get("pageToken"), nil
}
