package agentchat

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"koine/channels/channel"
	"koine/internal/caller"
	"koine/internal/plainjson"
	"koine/internal/presence"
	"koine/internal/rest"
	"koine/internal/sse"
	"koine/internal/ws"
	"koine/kg"
)

// Limits of a socket.
const (
	DefaultPingInterval = 30 * time.Second
	DefaultAuthTimeout  = 10 * time.Second
	// MaxAuthBytes bounds a frame before the authentication, MaxFrameBytes one after.
	MaxAuthBytes  = 64 << 10
	MaxFrameBytes = 256 << 10
	MaxEmojiBytes = 64
	// MaxResumedRooms bounds the rooms of a resumption.
	MaxResumedRooms = 1000
	// MaxQueuedFrames bounds the frames that wait to be written.
	MaxQueuedFrames = 1024
)

// Close codes of the protocol beside those of package ws.
const (
	statusSilent    websocket.StatusCode = 4408
	statusTooMany   websocket.StatusCode = 4429
	reasonUndecided                      = "an internal error"
)

// errSilent ends a socket if its client sent no frame for Options.Silence.
var errSilent = errors.New("no frame arrived for too long")

// socket is a WebSocket of the protocol.
type socket struct {
	handler *Handler
	conn    *ws.Conn
	silence *time.Timer
	queue   *frameQueue
	guest   bool // it joined with an invitation: see invites.go; written before the feed runs

	mu  sync.Mutex // guards who, nil before the authentication
	who *requester

	deliverMu sync.Mutex           // guards the following, and the order of messages
	last      map[channel.ID]int64 // the last sequence written by a resumption
}

// addSockets adds the route of sockets.
func (h *Handler) addSockets() {
	o := &h.options
	h.sockets = ws.NewServer(ws.Options{
		Streams: h.deps.Streams, Intake: o.Intake, OriginChecked: o.OriginAllowed != nil, MaxPending: max(o.MaxPendingSockets, ws.DefaultMaxPending),
		FirstTimeout: o.AuthTimeout, ErrFirst: errNoAuthFrame(), MaxFirstBytes: MaxAuthBytes, MaxBytes: MaxFrameBytes,
		ErrLate:      kg.Errorf(kg.CodeTimeout, "a frame did not arrive completely in time"),
		WriteTimeout: o.WriteTimeout, PingInterval: o.PingInterval, PongTimeout: o.PingInterval,
		CloseReason: closeReason,
		Panicked: func(p any) error {
			o.Logger.Error("a socket panicked", "panic", p, "stack", string(debug.Stack()))
			return errors.New("a socket panicked")
		},
	})
	h.routes.Handle("GET /ws", h.serveSocket)
}

func errNoAuthFrame() *kg.Error {
	return kg.Errorf(kg.CodeUnauthenticated, `authentication required: send {"type":"auth","token":"ak_…"} as the first frame`)
}

// lateEnd passes the end of a credential on to a connection that may not exist yet.
type lateEnd struct {
	mu    sync.Mutex
	conn  *ws.Conn
	cause error
}

func (l *lateEnd) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		l.cause = cause
		return
	}
	l.conn.End(cause)
}

func (l *lateEnd) attach(conn *ws.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn = conn; l.cause != nil {
		conn.End(l.cause)
	}
}

// serveSocket serves a WebSocket. Its frame stays on the stack as long as the socket is
// open, so everything that needs much stack is in acceptSocket.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	if s := h.acceptSocket(w, r); s != nil {
		defer s.silence.Stop()
		s.conn.Serve(s.answerFrame)
	}
}

// acceptSocket opens a socket, or answers the request itself. The credential comes with the
// request, in the header or the query, or in the first frame.
func (h *Handler) acceptSocket(w http.ResponseWriter, r *http.Request) *socket {
	by := caller.From(r.Context())
	refuse := func(err error) { writeError(w, h.errorOf(by, err)) }
	if allowed := h.options.OriginAllowed; allowed != nil && !allowed(r) {
		refuse(kg.Errorf(kg.CodePermissionDenied, "the origin is not allowed to open a socket"))
		return nil
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		writeError(w, &wireError{Type: frameError, Code: codeInvalid, Message: "the path requires a WebSocket: send Upgrade: websocket", status: http.StatusUpgradeRequired})
		return nil
	}
	credential := h.options.QueryToken(r)
	if credential == "" && h.options.Admit != nil {
		credential = credentialOf(r.Header)
	}
	var ends lateEnd
	var refused error
	if credential != "" {
		var err error
		if by, err = h.connect(r.Context(), ends.end, by, credential); err != nil {
			refused, by = err, caller.From(r.Context())
			by.Principal = kg.Principal{ID: kg.Anonymous, Method: caller.MethodNone}
		}
	}
	who, _ := requesterOf(by)
	conn, err := h.sockets.Accept(w, r.WithContext(caller.With(r.Context(), by)), who != nil)
	if err != nil {
		refuse(rest.StreamError(err))
		return nil
	}
	if conn == nil {
		return nil
	}
	ends.attach(conn)
	s := &socket{handler: h, conn: conn}
	s.queue = newFrameQueue(func() { conn.Go(s.writeQueued) })
	s.silence = time.AfterFunc(h.options.Silence, s.endSilent)
	switch {
	case refused != nil:
		s.endWith(by, refused)
	case who != nil:
		if err := s.begin(who, nil, nil, nil); err != nil {
			s.endWith(by, err)
		}
	}
	return s
}

// connect authenticates a credential. The caller ends with the context.
func (h *Handler) connect(ctx context.Context, end func(error), by caller.Caller, credential string) (caller.Caller, error) {
	if h.options.Admit != nil {
		by, release, err := h.admit(ctx, by, credential, end)
		if err == nil {
			context.AfterFunc(ctx, release)
		}
		return by, err
	}
	if h.options.Connect == nil {
		return by, errUnauthorized()
	}
	return h.options.Connect(ctx, end, by, plainjson.MustEncode(map[string]string{"Authorization": "Bearer " + credential}))
}

// endSilent ends the socket of a silent client. Its agent is offline at once, unless it
// has another one.
func (s *socket) endSilent() {
	if who := s.requester(); who != nil {
		_, _ = s.handler.deps.Presence.Heartbeat(s.conn.Context(), who.agent, presence.Offline) // the connection ends anyway
	}
	s.conn.End(errSilent)
}

// endWith tells the client an error and ends the socket with it.
func (s *socket) endWith(by caller.Caller, err error) {
	raw, encodeErr := plainjson.Encode(s.handler.errorOf(by, err))
	if encodeErr == nil {
		_ = s.conn.Write(raw) // the client may be gone
	}
	s.conn.End(err)
}

func (s *socket) requester() *requester {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}

func (s *socket) currentCaller() caller.Caller {
	if who := s.requester(); who != nil {
		return who.Caller
	}
	return caller.From(s.conn.Context())
}

func closeReason(cause error) (websocket.StatusCode, string) {
	e := kg.AsError(cause)
	switch code := kg.CodeOf(cause); {
	case errors.Is(cause, sse.ErrClientGone):
		return websocket.StatusNormalClosure, ""
	case errors.Is(cause, sse.ErrShutdown) || code == kg.CodeClosed:
		return websocket.StatusGoingAway, "the server is shutting down"
	case errors.Is(cause, sse.ErrSlowConsumer) || code == kg.CodeResync:
		return websocket.StatusTryAgainLater, "the client read too slowly"
	case errors.Is(cause, errSilent):
		return statusSilent, cause.Error()
	case code == kg.CodeUnauthenticated:
		return ws.StatusUnauthorized, kg.Excerpt(e.Message, ws.MaxReasonBytes-len("…"))
	case code == kg.CodeLimitExceeded && e.Limit == "streams":
		return statusTooMany, kg.Excerpt(e.Message, ws.MaxReasonBytes-len("…"))
	case code == kg.CodePermissionDenied || code == kg.CodeSourceForbidden:
		return ws.StatusForbidden, kg.Excerpt(e.Message, ws.MaxReasonBytes-len("…"))
	case code == kg.CodeTimeout || code == kg.CodeChannelNotFound || code == kg.CodeLimitExceeded:
		return websocket.StatusPolicyViolation, kg.Excerpt(e.Message, ws.MaxReasonBytes-len("…"))
	case code == kg.CodeRateLimited || code == kg.CodeOverloaded || code == kg.CodeAccessChanged:
		return websocket.StatusTryAgainLater, string(code)
	}
	return websocket.StatusInternalError, reasonUndecided
}
