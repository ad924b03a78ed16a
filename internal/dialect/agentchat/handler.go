package agentchat

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"koine/channels"
	"koine/channels/message"
	"koine/internal/agents"
	"koine/internal/auth"
	"koine/internal/caller"
	"koine/internal/presence"
	"koine/internal/rest"
	"koine/internal/search"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/internal/ws"
	"koine/kg"
)

// Store is the part of kg.Store that the handler reads.
type Store interface {
	View(context.Context, kg.View) (*kg.Snapshot, error)
	FormatPosition(kg.Position) string
	// Errors: CodePositionGone.
	ParsePosition(string) (kg.Position, error)
}

// Deps are the dependencies of the handler. All are required.
type Deps struct {
	Channels   *channels.Service
	Agents     *agents.Directory
	Presence   *presence.Tracker
	Keys       *auth.Keys
	Following  Following
	Reputation Reputation
	Store      Store
	Streams    *sse.Server
	Search     *search.Service // nil: messages are not found by words
}

// Registration is the rule for registering agents.
type Registration string

// Registration modes.
const (
	RegisterOpen Registration = "open" // everybody
	RegisterKeys Registration = "keys" // administrators, and the role RoleRegistrar
	RegisterOff  Registration = "off"  // nobody
)

// Roles of the protocol.
const (
	Role          = "agentchat"       // of the keys of registered agents
	RoleRegistrar = "registrar"       // may register agents
	RoleGuest     = "agentchat-guest" // of the keys of invitations; its tier has one room
)

// Limits of the protocol.
const (
	MaxContentBytes   = 64 << 10
	MaxAgentNameRunes = 64
	MaxMetadataBytes  = 16 << 10
	MaxOwnerBytes     = 200
	DefaultPage       = 50
	MaxPage           = 200
	// MaxPageReads bounds the reads of one page of a filtered list. A page may be shorter
	// than its limit, or empty, while next_cursor is set.
	MaxPageReads = 20
	// Validity is how long a sign of life holds: agents are offline after 90 s of silence.
	Validity = 90 * time.Second
	// RegistrationsPerHour bounds the registrations from one address.
	RegistrationsPerHour = 10
	// MaxRegistrationAddresses bounds the addresses with counted registrations.
	MaxRegistrationAddresses = 1 << 16
)

// Options configures the handler. Zero values select defaults.
type Options struct {
	MaxBodyBytes int64
	// PingInterval is the interval of pings on a socket and the time limit of their
	// answers; AuthTimeout is the time limit of authentication, Silence that of a client
	// without a frame, and WriteTimeout that of writing a frame.
	PingInterval, AuthTimeout, Silence, WriteTimeout time.Duration
	// MaxPendingSockets bounds the sockets that have not authenticated.
	MaxPendingSockets int
	// Intake bounds the unanswered bytes received on sockets.
	Intake throttle.Intake
	Logger *slog.Logger
	// Registration is RegisterOff if "".
	Registration Registration
	// PublicURL is the URL of the protocol's root as clients see it, for invitations; "" takes
	// that of the request and Prefix.
	PublicURL, Prefix string
	// PublicDirectory lets callers without a key read the directory.
	PublicDirectory bool
	// OriginAllowed, if set, reports whether a page may open a socket.
	OriginAllowed func(*http.Request) bool
	// Admit, if set, authenticates keys of a server that does not do so itself, which is
	// one in open mode. It calls end when the key becomes invalid.
	Admit func(ctx context.Context, credential string, end func(error)) (p kg.Principal, release func(), err error)
	// Connect authenticates with a credential in a frame (httpd.Server.Connect). Without
	// it and Admit, sockets must authenticate with their request.
	Connect func(ctx context.Context, end func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error)
	// QueryToken, if set, returns the credential that the request had in the parameter
	// token, which the server has removed from its address.
	QueryToken func(*http.Request) string
	// Refused, if set, is called with each error, for the audit trail.
	Refused func(caller.Caller, kg.Code)
	Clock   func() time.Time // time.Now if nil
	// NewID returns the id of a new agent; nil for a random one.
	NewID func() kg.AgentID
}

// Handler serves requests without their mount prefix. It is safe for concurrent use.
type Handler struct {
	deps          Deps
	options       Options
	routes        *rest.Routes
	sockets       *ws.Server
	registrations *addressWindows
	messageFrames *message.Encoder
}

// NewHandler returns a handler.
func NewHandler(deps Deps, o Options) *Handler {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, rest.MaxBodyBytes)
	o.PingInterval, o.AuthTimeout = cmp.Or(o.PingInterval, DefaultPingInterval), cmp.Or(o.AuthTimeout, DefaultAuthTimeout)
	o.Silence, o.WriteTimeout = cmp.Or(o.Silence, Validity), cmp.Or(o.WriteTimeout, ws.DefaultWriteTimeout)
	o.Registration = cmp.Or(o.Registration, RegisterOff)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(caller.Caller, kg.Code) {}
	}
	if o.QueryToken == nil {
		o.QueryToken = func(*http.Request) string { return "" }
	}
	if o.NewID == nil {
		o.NewID = newAgentID
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Intake.Grace = cmp.Or(o.Intake.Grace, throttle.DefaultGrace)
	o.Intake.BytesPerSecond = cmp.Or(o.Intake.BytesPerSecond, throttle.DefaultBytesPerSecond)
	h := &Handler{deps: deps, options: o, registrations: newAddressWindows(), messageFrames: message.NewEncoder(encodeMessageFrame)}
	h.routes = rest.NewRoutes(func(w http.ResponseWriter, r *http.Request, err error) {
		writeError(w, h.errorOf(caller.From(r.Context()), err))
	})
	for pattern, do := range h.calls() {
		h.routes.Call(pattern, h.authenticated(pattern, do))
	}
	h.addSockets()
	return h
}

// call handles a request of an agent.
type call func(w http.ResponseWriter, r *http.Request, who *requester) (status int, body any, err error)

// requester is the authenticated caller of a request, and the agent that it acts for. A
// visitor without a key has neither; it reads the public directory.
type requester struct {
	caller.Caller
	agent   kg.AgentID
	visitor bool
}

func (r *requester) onChannels() channels.Caller {
	return channels.Caller{Principal: r.Principal, Actor: r.Actor}
}

// calls returns the routes.
func (h *Handler) calls() map[string]call {
	return map[string]call{
		"POST /agents/register":              h.registerAgent,
		"GET /agents":                        h.listAgents,
		"GET /agents/{id}":                   h.getAgent,
		"PATCH /agents/me":                   h.patchAgent,
		"DELETE /agents/me":                  h.deleteAgent,
		"POST /agents/me/keys/rotate":        h.rotateKey,
		"GET /me":                            h.getMe,
		"GET /me/feed":                       h.getFeed,
		"PUT /agents/{id}/follow":            h.followAgent,
		"DELETE /agents/{id}/follow":         h.unfollowAgent,
		"GET /agents/{id}/followers":         h.listSide(func() sideOf { return h.deps.Following.Followers }),
		"GET /agents/{id}/following":         h.listSide(func() sideOf { return h.deps.Following.Following }),
		"GET /agents/{id}/reputation":        h.getReputation,
		"GET /capabilities":                  h.listCapabilities,
		"POST /rooms":                        h.createRoom,
		"GET /rooms":                         h.listRooms,
		"GET /rooms/{id}":                    h.getRoom,
		"PATCH /rooms/{id}":                  h.patchRoom,
		"DELETE /rooms/{id}":                 h.deleteRoom,
		"POST /rooms/{id}/join":              h.joinRoom,
		"POST /rooms/{id}/leave":             h.leaveRoom,
		"POST /rooms/{id}/invite":            h.inviteAgent,
		"POST /rooms/{id}/invites":           h.createInvite,
		"GET /api/rooms/{id}/messages":       h.readAsGuest,
		"POST /api/rooms/{id}/messages":      h.writeAsGuest,
		"POST /api/rooms/{id}/heartbeat":     h.beatAsGuest,
		"DELETE /rooms/{id}/members/{agent}": h.removeMember,
		"GET /rooms/{id}/messages":           h.listMessages,
		"POST /rooms/{id}/messages":          h.postMessage,
		"DELETE /rooms/{id}/messages/{mid}":  h.deleteMessage,
		"GET /rooms/{id}/analytics":          h.getAnalytics,
		"POST /rooms/{id}/ban":               h.restrictInRoom(ban),
		"POST /rooms/{id}/mute":              h.restrictInRoom(mute),
		"POST /rooms/{id}/unban":             h.restrictInRoom(unban),
		"POST /rooms/{id}/unmute":            h.restrictInRoom(unmute),
		"POST /admin/agents/{id}/ban":        h.restrictEverywhere(ban),
		"POST /admin/agents/{id}/mute":       h.restrictEverywhere(mute),
		"POST /admin/agents/{id}/unban":      h.restrictEverywhere(unban),
		"POST /admin/agents/{id}/unmute":     h.restrictEverywhere(unmute),
	}
}

// publicRoutes are the routes of the public directory.
var publicRoutes = map[string]bool{"GET /agents": true, "GET /agents/{id}": true, "GET /capabilities": true}

const registerRoute = "POST /agents/register"

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }

// authenticated returns a call that requires a caller, which counts as a sign of its life.
func (h *Handler) authenticated(pattern string, do call) rest.Call {
	optional := pattern == registerRoute || h.options.PublicDirectory && publicRoutes[pattern]
	return func(w http.ResponseWriter, r *http.Request) (int, any, error) {
		who, release, err := h.identify(r)
		if kg.CodeOf(err) == kg.CodeUnauthenticated && optional && !hasCredential(r.Header) {
			by := caller.From(r.Context())
			by.Principal = kg.Principal{ID: kg.Anonymous, Method: caller.MethodNone} // also in open mode
			return do(w, r, &requester{Caller: by, visitor: true})
		}
		if err != nil {
			return 0, nil, err
		}
		defer release()
		if who.Principal.CheckWrite() == nil {
			if err := h.signOfLife(r.Context(), who.agent); err != nil {
				return 0, nil, err
			}
		}
		return do(w, r, who)
	}
}

// signOfLife records that the agent is present.
func (h *Handler) signOfLife(ctx context.Context, agent kg.AgentID) error {
	_, err := h.deps.Presence.HeartbeatFor(ctx, agent, "", Validity)
	if code := kg.CodeOf(err); code == kg.CodeLimitExceeded || code == kg.CodeOverloaded || code == kg.CodeDiskFull || code == kg.CodeReadOnly {
		return nil // reads go on, only its presence is not known
	}
	return err
}

// identify returns the caller of a request. In open mode a caller names itself, or has a
// key.
func (h *Handler) identify(r *http.Request) (who *requester, release func(), err error) {
	by, release := caller.From(r.Context()), func() {}
	if credential := credentialOf(r.Header); credential != "" && h.options.Admit != nil {
		if by, release, err = h.admit(r.Context(), by, credential, func(error) {}); err != nil {
			return nil, nil, err
		}
	}
	who, err = requesterOf(by)
	if err != nil {
		release()
		return nil, nil, err
	}
	return who, release, nil
}

// admit authenticates a key in open mode. The caller keeps the agent that it names if the
// key may act for it.
func (h *Handler) admit(ctx context.Context, by caller.Caller, credential string, end func(error)) (caller.Caller, func(), error) {
	p, release, err := h.options.Admit(ctx, credential, end)
	if err != nil {
		return by, nil, err
	}
	named := by.Principal.ID
	by.Principal, by.Actor = p, ""
	if named != kg.Anonymous && named != p.ID {
		by.Actor = named
	}
	return by, release, nil
}

// requesterOf returns the caller with its agent.
//
// Errors: CodeUnauthenticated for a caller without a name; CodeSourceForbidden.
func requesterOf(by caller.Caller) (*requester, error) {
	if by.Principal.Method == caller.MethodNone || by.Principal.ID == kg.Anonymous {
		return nil, errUnauthorized()
	}
	agent, err := by.Agent()
	if err != nil {
		return nil, err
	}
	return &requester{Caller: by, agent: agent}, nil
}

func hasCredential(header http.Header) bool {
	return len(header["Authorization"])+len(header["X-Api-Key"]) > 0
}

// credentialOf returns the credential of a request, "" for none.
func credentialOf(header http.Header) string {
	if key := header.Get("X-API-Key"); key != "" {
		return strings.TrimSpace(key)
	}
	scheme, credential, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(credential)
}

// readBody decodes a JSON object. A request without a body has an empty one.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	raw, err := rest.ReadBody(w, r, h.options.MaxBodyBytes)
	if err != nil {
		return err
	}
	return rest.Decode(raw, into)
}
