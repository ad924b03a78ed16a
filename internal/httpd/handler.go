package httpd

import (
	"net/http"
	"runtime/debug"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
)

// Handler is everything that Serve answers with: the routes and what stands
// before them.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	r = hideStreamToken(r)
	id := s.ids.of(r)
	w.Header().Set("X-Request-ID", id)
	secure(w.Header())
	out := newResponse(w, r, s.options.StallTimeout)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = newBody(r, w, s.options.StallTimeout)
	}
	seen := s.traced(out, r, id)
	out.progress() // what is still to be flushed has its time too
	s.finish(out, seen, began)
}

// traced routes the request in a span of its own, which ends when the answer is
// there or has become a stream.
func (s *Server) traced(w *response, r *http.Request, id string) (seen *http.Request) {
	if s.options.Tracing == nil {
		return s.route(w, r, id)
	}
	defer w.leave()
	return s.route(w, s.spanned(w, r), id)
}

func (s *Server) spanned(w *response, r *http.Request) *http.Request {
	_, pattern := s.mux.Handler(r)
	ctx, end := s.options.Tracing.Request(r, methodLabel(r.Method)+" "+routeLabel(pattern))
	w.left = func() { end(w.status) }
	return r.WithContext(ctx)
}

// route lets the request in, or refuses it, and hands it to its handler. seen
// is the request as the handler saw it.
//
// It waits above a stream for as long as that is open: what needs much of the stack
// is in letIn.
func (s *Server) route(w *response, r *http.Request, id string) (seen *http.Request) {
	seen, leave, in := s.letIn(w, r, id)
	defer leave()
	if !in {
		return seen
	}
	defer w.leave()
	defer s.recover(w, seen)
	s.mux.ServeHTTP(w, seen)
	return seen
}

// letIn says who asks, receives what is sent, and takes a place for the request; or
// it answers the request itself. leave is to be called when the request is over.
func (s *Server) letIn(w *response, r *http.Request, id string) (seen *http.Request, leave func(), in bool) {
	leave = func() {}
	_, pattern := s.mux.Handler(r)
	who := caller.Caller{Address: s.addressOf(r), Path: routeLabel(pattern), RequestID: id}
	if refused := s.admit(r); refused != nil {
		s.refuse(w, r, who, refused)
		return r, leave, false
	}
	asked := s.cors(w.Header(), r) // before any refusal, which a page may read as well
	if refused := s.limitAddress(r, who.Address); refused != nil {
		s.refuse(w, r, who, refused)
		return r, leave, false
	}
	if asked {
		w.WriteHeader(http.StatusNoContent)
		return r, leave, false
	}
	known, end, refused := s.identify(r, &who)
	if refused != nil {
		s.refuse(w, r, who, refused)
		return r, leave, false
	}
	if refused := s.limitPrincipal(known); refused != nil {
		s.refuse(w, r, who, refused)
		return known, end, false
	}
	received, refused := s.enter(w, known, who, pattern)
	if refused != nil {
		s.refuse(w, r, who, refused)
		return known, end, false
	}
	return known, func() { received.Release(); end() }, true
}

// enter receives what a request sends and takes one of the places for requests
// under way. The request gives that back when its handler has ended or its answer
// has become a stream, whichever is first.
func (s *Server) enter(w *response, r *http.Request, who caller.Caller, pattern string) (*throttle.Received, *refusal) {
	owner, c := throttle.OwnerOf(who), connectionOf(r.Context())
	if c != nil && (c.spare && !s.isProbe(r) || !s.conns.claim(c, owner)) {
		w.Header().Set("Connection", "close")
		return nil, tooManyConnections
	}
	if c != nil && c.spare {
		w.Header().Set("Connection", "close") // others wait for its place
	}
	places := s.requests
	switch {
	case probes[r.URL.Path]:
		return nil, nil
	case s.isProbe(r):
		places = s.scrapes
	}
	var received *throttle.Received
	if !s.uploads[pattern] {
		var refused *refusal
		if received, refused = s.receive(r, owner); refused != nil {
			if refused == tooSlow {
				w.Header().Set("Connection", "close")
			}
			return nil, refused
		}
	}
	if !places.Acquire(owner, 1) {
		received.Release()
		return nil, overloaded
	}
	before := w.left
	w.left = func() {
		places.Release(owner, 1)
		if before != nil {
			before()
		}
	}
	return received, nil
}

// secure sets the headers that every answer has, whatever path gives it. A handler
// may set stricter ones.
func secure(header http.Header) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
}

// recover turns a panic into that request's error. What was written already
// cannot be taken back: then the connection is cut.
func (s *Server) recover(w *response, r *http.Request) {
	value := recover()
	if value == nil {
		return
	}
	if value == http.ErrAbortHandler {
		panic(value)
	}
	s.log.ErrorContext(r.Context(), "a request panicked", "request", caller.From(r.Context()).RequestID,
		"path", r.URL.Path, "panic", value, "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	s.refuse(w, r, caller.From(r.Context()), broken)
}
