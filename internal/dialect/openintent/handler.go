package openintent

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"koine/channels"
	"koine/internal/caller"
	"koine/internal/intents"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/kg"
)

// Root is the path below which the protocol lies.
const Root = "/api/v1"

// Deps are the dependencies of the handler. All are required.
type Deps struct {
	Channels *channels.Service
	Intents  *intents.Service
	Agents   Agents
	Presence Presence
	Streams  *sse.Server
	// Positions converts positions of the log (kg.Store).
	Positions Positions
}

// Positions formats and parses positions of the log.
type Positions interface {
	Head() kg.Position
	FormatPosition(kg.Position) string
	// Errors: CodePositionGone.
	ParsePosition(string) (kg.Position, error)
}

// MaxHeartbeat is the longest silence of a stream: the SDK notices that it shall stop when
// a line arrives.
const MaxHeartbeat = 15 * time.Second

// Options configures the handler. Zero values select defaults.
type Options struct {
	MaxBodyBytes int64
	// Heartbeat is the interval of comments on idle streams, at most MaxHeartbeat.
	Heartbeat time.Duration
	// RFCNames writes the RFC's name of the event of an audited message (channel_message)
	// in lists of events too, which the SDK cannot read.
	RFCNames bool
	Clock    func() time.Time // time.Now if nil
	Logger   *slog.Logger
	// CheckAgent, if set, checks an agent that a body names as the acting one.
	CheckAgent func(context.Context, kg.AgentID) error
	// Refused, if set, is called with each error, for the audit trail.
	Refused func(caller.Caller, kg.Code)
}

// Handler serves the protocol. It is safe for concurrent use.
type Handler struct {
	deps    Deps
	options Options
	routes  *rest.Routes
}

// call handles a request, as a rest.Call with its caller.
type call func(w http.ResponseWriter, r *http.Request, who caller.Caller) (status int, body any, err error)

// NewHandler returns a handler.
func NewHandler(deps Deps, o Options) *Handler {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, rest.MaxBodyBytes)
	o.Heartbeat = min(cmp.Or(o.Heartbeat, MaxHeartbeat), MaxHeartbeat)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(caller.Caller, kg.Code) {}
	}
	h := &Handler{deps: deps, options: o}
	h.routes = rest.NewRoutes(func(w http.ResponseWriter, r *http.Request, err error) {
		writeError(w, h.errorOf(caller.From(r.Context()), err))
	})
	for pattern, do := range h.table() {
		h.routes.Call(pattern, func(w http.ResponseWriter, r *http.Request) (int, any, error) {
			return do(w, r, caller.From(r.Context()))
		})
	}
	for pattern, open := range h.streams() {
		h.routes.Call(pattern, func(w http.ResponseWriter, r *http.Request) (int, any, error) {
			return 0, nil, h.serveStream(w, r, caller.From(r.Context()), open)
		})
	}
	return h
}

// table has the paths of the protocol but its streams.
func (h *Handler) table() map[string]call {
	return map[string]call{
		"POST " + Root + "/intents":             h.createIntent,
		"GET " + Root + "/intents":              h.listIntents,
		"GET " + Root + "/intents/{id}":         h.getIntent,
		"POST " + Root + "/intents/{id}/state":  h.patchState,
		"POST " + Root + "/intents/{id}/status": h.setStatus,

		"POST " + Root + "/portfolios":                            h.createPortfolio,
		"GET " + Root + "/portfolios":                             h.listPortfolios,
		"GET " + Root + "/portfolios/{portfolio}":                 h.getPortfolio,
		"PATCH " + Root + "/portfolios/{portfolio}/status":        h.setPortfolioStatus,
		"POST " + Root + "/portfolios/{portfolio}/intents":        h.addToPortfolio,
		"GET " + Root + "/portfolios/{portfolio}/intents":         h.listPortfolioIntents,
		"DELETE " + Root + "/portfolios/{portfolio}/intents/{id}": h.removeFromPortfolio,
		"GET " + Root + "/intents/{id}/portfolios":                h.listPortfoliosOf,

		"POST " + Root + "/intents/{id}/channels":                       h.createChannel,
		"GET " + Root + "/intents/{id}/channels":                        h.listChannels,
		"POST " + Root + "/intents/{id}/channels/{name}/messages":       h.sendByName,
		"GET " + Root + "/channels/{channel}":                           h.getChannel,
		"PATCH " + Root + "/channels/{channel}":                         h.updateChannel,
		"DELETE " + Root + "/channels/{channel}":                        h.deleteChannel,
		"POST " + Root + "/channels/{channel}/messages":                 h.sendMessage,
		"GET " + Root + "/channels/{channel}/messages":                  h.listMessages,
		"GET " + Root + "/channels/{channel}/messages/{message}":        h.getMessage,
		"PATCH " + Root + "/channels/{channel}/messages/{message}":      h.markMessage,
		"POST " + Root + "/channels/{channel}/messages/{message}/reply": h.reply,

		"GET " + Root + "/intents/{id}/events":                 h.listEvents,
		"POST " + Root + "/intents/{id}/events":                h.appendEvent,
		"GET " + Root + "/intents/{id}/events/verify":          h.verifyEvents,
		"GET " + Root + "/intents/{id}/agents":                 h.listAssignments,
		"POST " + Root + "/intents/{id}/agents":                h.assign,
		"DELETE " + Root + "/intents/{id}/agents/{agent}":      h.unassign,
		"GET " + Root + "/intents/{id}/acl":                    h.getAccess,
		"PUT " + Root + "/intents/{id}/acl":                    h.setAccess,
		"POST " + Root + "/intents/{id}/acl/entries":           h.grant,
		"DELETE " + Root + "/intents/{id}/acl/entries/{entry}": h.revoke,

		"POST " + Root + "/intents/{id}/access-requests":                   h.requestAccess,
		"GET " + Root + "/intents/{id}/access-requests":                    h.listRequests,
		"POST " + Root + "/intents/{id}/access-requests/{request}/approve": h.decideRequest(true),
		"POST " + Root + "/intents/{id}/access-requests/{request}/deny":    h.decideRequest(false),

		"POST " + Root + "/intents/{id}/leases":           h.acquireLease,
		"GET " + Root + "/intents/{id}/leases":            h.listLeases,
		"PATCH " + Root + "/intents/{id}/leases/{lease}":  h.renewLease,
		"DELETE " + Root + "/intents/{id}/leases/{lease}": h.releaseLease,
		"POST " + Root + "/tasks":                         h.createTask,
		"GET " + Root + "/tasks/{task}":                   h.getTask,
		"PATCH " + Root + "/tasks/{task}":                 h.updateTask,
		"GET " + Root + "/intents/{id}/tasks":             h.listTasks,

		"POST " + Root + "/agents/register":          h.registerAgent,
		"GET " + Root + "/agents":                    h.listAgents,
		"GET " + Root + "/agents/{agent}/record":     h.getAgent,
		"POST " + Root + "/agents/{agent}/heartbeat": h.heartbeat,
		"PATCH " + Root + "/agents/{agent}/status":   h.setAgentStatus,

		"GET " + Root + "/server/config": h.serverConfig,
	}
}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }
