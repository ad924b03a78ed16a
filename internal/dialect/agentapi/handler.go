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

// Deps are what the handler works with. All are required.
type Deps struct {
	Agents  Agents
	Tasks   *tasks.Service
	Streams *sse.Server
	// Positions are those of the log (kg.Store).
	Positions Positions
}

// Positions reads and writes positions of the log.
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

// Options of the handler. The zero value of each means its default.
type Options struct {
	MaxBodyBytes int64
	// PingInterval is how often a socket is asked whether it is there, and how long the
	// answer may take; AuthTimeout how long it may leave open who it is; WriteTimeout how
	// long it may take a frame.
	PingInterval, AuthTimeout, WriteTimeout time.Duration
	// MaxPendingSockets bounds the sockets that have not said who they are, of which one
	// caller may have half of what the others leave. They take no place among the streams.
	MaxPendingSockets int
	// Intake bounds what sockets sent and is not answered yet, and how slowly a frame may
	// come.
	Intake throttle.Intake
	Logger *slog.Logger
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
	routes  *rest.Routes
	pending *throttle.Pool // sockets that have not said who they are
}

// NewHandler makes the handler.
func NewHandler(deps Deps, o Options) *Handler {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, rest.MaxBodyBytes)
	o.PingInterval, o.AuthTimeout = cmp.Or(o.PingInterval, DefaultPingInterval), cmp.Or(o.AuthTimeout, DefaultAuthTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(caller.Caller, kg.Code) {}
	}
	o.Intake.Grace = cmp.Or(o.Intake.Grace, throttle.DefaultGrace)
	o.Intake.BytesPerSecond = cmp.Or(o.Intake.BytesPerSecond, throttle.DefaultBytesPerSecond)
	h := &Handler{deps: deps, options: o, pending: throttle.NewPool(int64(cmp.Or(o.MaxPendingSockets, DefaultPendingSockets)))}
	h.routes = rest.NewRoutes(func(w http.ResponseWriter, r *http.Request, err error) {
		refuse(w, h.errorOf(caller.From(r.Context()), err))
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

// call answers a request, as a rest.Call.
type call func(w http.ResponseWriter, r *http.Request, who caller.Caller) (status int, body any, err error)

// ServeHTTP answers a request under the prefix.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }

// readBody reads a JSON object.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := rest.Body(w, r, h.options.MaxBodyBytes)
	if err != nil {
		return err
	}
	return rest.Decode(raw, into)
}

// pageOf reads how much of a list is asked for.
func pageOf(r *http.Request) (first int, after string, err error) {
	first, err = rest.Limit(r, DefaultPage, MaxPage)
	return first, r.URL.Query().Get("pageToken"), err
}
