package agentapi

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"koine/internal/caller"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/internal/throttle"
	"koine/internal/ws"
	"koine/kg"
)

// Agents reads the registered agents (agents.Directory).
type Agents interface {
	// Card returns an agent as an AgentCard of this protocol.
	//
	// Errors: CodeAgentNotFound.
	Card(ctx context.Context, by caller.Caller, id kg.AgentID) (json.RawMessage, error)
	// Cards returns up to first agents after one, with the capability or any for "", in
	// the order of their ids, and the last of them if there are more.
	Cards(ctx context.Context, by caller.Caller, capability string, after kg.AgentID, first int) (cards []json.RawMessage, last kg.AgentID, err error)
}

// Deps are the dependencies of the handler. All are required.
type Deps struct {
	Agents  Agents
	Tasks   *tasks.Service
	Streams *sse.Server
	// Positions converts positions of the log (kg.Store).
	Positions Positions
}

// Positions formats and parses positions of the log.
type Positions interface {
	FormatPosition(kg.Position) string
	// Errors: CodePositionGone.
	ParsePosition(string) (kg.Position, error)
}

// Defaults of the Options.
const (
	DefaultPage = 50
	MaxPage     = 100
)

// Options configures the handler. Zero values select defaults.
type Options struct {
	MaxBodyBytes int64
	// PingInterval is the interval of pings on a socket and the time limit of their
	// answers; AuthTimeout is the time limit of authentication, and WriteTimeout that
	// of writing a frame.
	PingInterval, AuthTimeout, WriteTimeout time.Duration
	// MaxPendingSockets bounds the sockets that have not authenticated. A caller may
	// have half of the remaining places. They do not count as streams.
	MaxPendingSockets int
	// Intake bounds the unanswered bytes received on sockets, and the slowness of a
	// frame.
	Intake throttle.Intake
	Logger *slog.Logger
	// OriginAllowed, if set, reports whether a page may open a socket.
	OriginAllowed func(*http.Request) bool
	// Connect, if set, authenticates with a credential in a frame (httpd.Server).
	Connect func(ctx context.Context, end func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error)
	// Refused, if set, is called with each error, for the audit trail.
	Refused func(caller.Caller, kg.Code)
}

// Handler serves requests without their mount prefix. It is safe for concurrent use.
type Handler struct {
	deps    Deps
	options Options
	routes  *rest.Routes
	sockets *ws.Server
}

// NewHandler returns a handler.
func NewHandler(deps Deps, o Options) *Handler {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, rest.MaxBodyBytes)
	o.PingInterval, o.AuthTimeout = cmp.Or(o.PingInterval, DefaultPingInterval), cmp.Or(o.AuthTimeout, DefaultAuthTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, ws.DefaultWriteTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(caller.Caller, kg.Code) {}
	}
	o.Intake.Grace = cmp.Or(o.Intake.Grace, throttle.DefaultGrace)
	o.Intake.BytesPerSecond = cmp.Or(o.Intake.BytesPerSecond, throttle.DefaultBytesPerSecond)
	h := &Handler{deps: deps, options: o}
	h.sockets = h.newSocketServer()
	h.routes = rest.NewRoutes(func(w http.ResponseWriter, r *http.Request, err error) {
		writeError(w, h.errorOf(caller.From(r.Context()), err))
	})
	for pattern, do := range map[string]call{
		"GET /agents":                h.listAgents,
		"GET /agents/{$}":            h.listAgents,
		"GET /agents/{id}":           h.getAgent,
		"POST /agents/{id}/messages": h.sendMessage,
		"GET /messages/{id}":         h.getMessage,
		"GET /tasks":                 h.listTasks,
		"GET /tasks/{$}":             h.listTasks,
		"GET /tasks/{id}":            h.getTask,
		"PUT /tasks/{id}":            h.putTask,
		"DELETE /tasks/{id}":         h.deleteTask,
	} {
		h.routes.Call(pattern, func(w http.ResponseWriter, r *http.Request) (int, any, error) {
			return do(w, r, caller.From(r.Context()))
		})
	}
	h.routes.Handle("GET /ws", h.serveSocket)
	return h
}

// call handles a request, as a rest.Call with its caller.
type call func(w http.ResponseWriter, r *http.Request, who caller.Caller) (status int, body any, err error)

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }

// readBody decodes a JSON object.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := rest.ReadBody(w, r, h.options.MaxBodyBytes)
	if err != nil {
		return err
	}
	return rest.Decode(raw, into)
}

// pageOf reads the page parameters of a list.
func pageOf(r *http.Request) (first int, after string, err error) {
	first, err = rest.LimitParam(r, DefaultPage, MaxPage)
	return first, r.URL.Query().Get("pageToken"), err
}
