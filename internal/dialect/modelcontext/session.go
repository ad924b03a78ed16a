package modelcontext

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// The bounds of sessions. Past them initialize is answered without a session.
const (
	MaxSessions          = 1_000
	MaxSessionsPerCaller = 32
	// SessionIdle is how long a session stays without a request or a stream.
	SessionIdle = 10 * time.Minute
)

// sessions are the sessions of this process. Their ids begin with its prefix.
type sessions struct {
	prefix string

	mu   sync.Mutex
	byID map[string]*session
	of   map[string]int // by caller
}

// session is a session of one caller, with a server of its own: notifications of the SDK go
// to all subscribers of a server. Its watchers have the rights of its first request, so it
// serves no request with others.
type session struct {
	id, caller, rights string
	server             *mcp.Server
	cancel             context.CancelFunc // ends its watchers

	// Guarded by sessions.mu.
	open int // requests in progress
	idle *time.Timer
}

func newSessions(prefix string) *sessions {
	return &sessions{prefix: prefix, byID: map[string]*session{}, of: map[string]int{}}
}

// isOwn reports whether an id was given by this process.
func (all *sessions) isOwn(id string) bool { return strings.HasPrefix(id, all.prefix) }

// callerKey tells callers apart. A session is of one agent.
func callerKey(ctx context.Context) string {
	by := caller.From(ctx)
	return string(by.Principal.ID) + " " + string(by.Acting())
}

// rightsKey tells the rights of a caller's credentials apart. A renewed token gives the same as
// the one before if its roles and agents are the same; each API key gives rights of its own.
func rightsKey(ctx context.Context) string {
	p := caller.From(ctx).Principal
	return fmt.Sprintf("%q %q %q %q", p.Method, p.Key, slices.Sorted(slices.Values(p.Roles)), slices.Sorted(slices.Values(p.ActFor)))
}

// openSession returns a new session with a request in progress, nil past the bounds. serve makes
// its server; life is that of its watchers, with the values of ctx.
func (all *sessions) openSession(ctx context.Context, serve func(life context.Context, id string) *mcp.Server) *session {
	s := &session{id: all.prefix + rand.Text(), caller: callerKey(ctx), rights: rightsKey(ctx), open: 1}
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.byID) >= MaxSessions || all.of[s.caller] >= MaxSessionsPerCaller {
		return nil
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel, s.server = cancel, serve(life, s.id)
	all.byID[s.id] = s
	all.of[s.caller]++
	return s
}

// enterSession returns a session of the caller for a request, nil for none. A request with other
// rights ends the session: its credential has probably ended, and its watchers must not tell of
// changes that the present one may not read.
func (all *sessions) enterSession(ctx context.Context, id string) *session {
	s, entered := all.tryEnter(ctx, id)
	if s != nil && !entered {
		all.endSession(s)
		return nil
	}
	return s
}

// tryEnter returns a session of the caller, and enters it if the request has its rights.
func (all *sessions) tryEnter(ctx context.Context, id string) (s *session, entered bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s = all.byID[id]
	if s == nil || s.caller != callerKey(ctx) {
		return nil, false
	}
	if s.rights != rightsKey(ctx) {
		return s, false
	}
	s.open++
	if s.idle != nil {
		s.idle.Stop()
	}
	return s, true
}

// leaveSession ends a request. After the last one the session waits for SessionIdle.
func (all *sessions) leaveSession(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.open--; s.open == 0 && all.byID[s.id] == s {
		s.idle = time.AfterFunc(SessionIdle, func() { all.expireSession(s) })
	}
}

// expireSession ends a session, unless a request has come meanwhile.
func (all *sessions) expireSession(s *session) {
	all.mu.Lock()
	removed := s.open == 0 && all.removeSession(s)
	all.mu.Unlock()
	if removed {
		s.closeStreams()
	}
}

// endSession ends a session with its watchers and streams.
func (all *sessions) endSession(s *session) {
	all.mu.Lock()
	removed := all.removeSession(s)
	all.mu.Unlock()
	if removed {
		s.closeStreams()
	}
}

// removeSession reports whether the session was there. The caller holds mu.
func (all *sessions) removeSession(s *session) bool {
	if all.byID[s.id] != s {
		return false
	}
	delete(all.byID, s.id)
	if all.of[s.caller]--; all.of[s.caller] == 0 {
		delete(all.of, s.caller)
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	return true
}

func (s *session) closeStreams() {
	s.cancel()
	for one := range s.server.Sessions() {
		_ = one.Close() // its client may be gone
	}
}

func (all *sessions) endAll() {
	all.mu.Lock()
	list := make([]*session, 0, len(all.byID))
	for _, s := range all.byID {
		list = append(list, s)
	}
	all.mu.Unlock()
	for _, s := range list {
		all.endSession(s)
	}
}

// beginSession answers initialize with a session.
func (h *Handler) beginSession(w http.ResponseWriter, r *http.Request) {
	s := h.sessions.openSession(r.Context(), func(life context.Context, id string) *mcp.Server {
		server := newServer(h.executing, h.options, &watching{life: life, watcher: h.executing}, func() string { return id })
		server.AddReceivingMiddleware(withCaller)
		return server
	})
	if s == nil {
		h.plain.ServeHTTP(w, r)
		return
	}
	defer h.sessions.leaveSession(s)
	h.stateful.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, s.server)))
	for range s.server.Sessions() {
		return
	}
	h.sessions.endSession(s) // it was refused
}

// serveSession answers a request of a session.
func (h *Handler) serveSession(w http.ResponseWriter, r *http.Request, id string) {
	s := h.sessions.enterSession(r.Context(), id)
	if s == nil {
		http.Error(w, "session not found", http.StatusNotFound) // as the SDK says it
		return
	}
	defer h.sessions.leaveSession(s)
	r = r.WithContext(context.WithValue(r.Context(), serverKey{}, s.server))
	if r.Method == http.MethodGet {
		h.serveStream(w, r, h.stateful.ServeHTTP)
	} else {
		h.stateful.ServeHTTP(w, r)
	}
	if r.Method == http.MethodDelete || isCredentialEnd(r.Context()) {
		h.sessions.endSession(s)
	}
}

// isCredentialEnd reports whether a request ended because its credential did.
func isCredentialEnd(ctx context.Context) bool {
	var cause *kg.Error
	return errors.As(context.Cause(ctx), &cause)
}

// endReason returns the code of a stream's end.
func endReason(ctx context.Context) string {
	var cause *kg.Error
	switch err := context.Cause(ctx); {
	case errors.As(err, &cause):
		return string(cause.Code)
	case errors.Is(err, sse.ErrShutdown):
		return "SERVER_SHUTDOWN"
	case err != nil:
		return "CLIENT_GONE"
	}
	return "ENDED"
}

// request is the part of an HTTP request that a call of a session needs.
type request struct {
	by  caller.Caller
	ctx context.Context
}

// asCaller puts the caller of each request where the SDK hands it to the handlers of a
// session, whose context is that of its first request.
func asCaller(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: callerKey(ctx), Extra: map[string]any{"request": request{caller.From(ctx), ctx}}}, nil
	}
	handler := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer checked") // package httpd has checked the credential
		handler.ServeHTTP(w, r)
	})
}

// withCaller runs each call of a session as the caller of its request, until that ends.
func withCaller(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		extra := r.GetExtra()
		if extra == nil || extra.TokenInfo == nil {
			return nil, errors.New("the request has no caller")
		}
		of := extra.TokenInfo.Extra["request"].(request)
		ctx, cancel := context.WithCancel(caller.With(ctx, of.by))
		defer cancel()
		if method != "notifications/initialized" && method != "notifications/cancelled" {
			defer context.AfterFunc(of.ctx, cancel)()
		}
		return next(ctx, method, r)
	}
}

// yieldChanges yields the changes of a subscription, and reports whether to follow it anew,
// because it ended where it cannot go on.
func yieldChanges(s operation.Subscription, yield func(error) bool) (goOn bool) {
	for e, err := range s.Events() {
		switch {
		case err != nil:
			if code := kg.AsError(err).Code; code == kg.CodeResync || code == kg.CodeAccessChanged {
				return yield(nil) // something may have changed
			}
			yield(err)
			return false
		case e.UpToDate:
		case !yield(nil):
			return false
		}
	}
	return false
}
