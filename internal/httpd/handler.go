package httpd

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
)

// Handler returns the handler of all requests: the routes and the checks before them.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	r = s.hideQueryToken(hideStreamToken(r))
	id := s.ids.idOf(r)
	w.Header()["X-Request-Id"] = []string{id}
	setSecurityHeaders(w.Header())
	out := newResponse(w, r, s.options.StallTimeout)
	out.began = began
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = newBody(r, w, s.options.StallTimeout)
	}
	seen := s.routeTraced(out, r, id)
	out.extendDeadline() // renew the deadline for the final flush
	if out.handed == nil {
		s.logAnswer(answerOf(out, seen), began)
	}
}

// routeTraced routes the request in a span, which ends when the answer is written or has
// become a stream.
func (s *Server) routeTraced(w *response, r *http.Request, id string) (seen *http.Request) {
	if s.options.Tracing == nil {
		return s.routeRequest(w, r, id)
	}
	defer w.releasePlace()
	return s.routeRequest(w, s.startSpan(w, r), id)
}

func (s *Server) startSpan(w *response, r *http.Request) *http.Request {
	_, pattern := s.mux.Handler(r)
	ctx, end := s.options.Tracing.Request(r, methodLabel(r.Method)+" "+routeLabel(pattern))
	w.onLeave = func() { end(w.status) }
	return r.WithContext(ctx)
}

// routeRequest admits or refuses the request and calls its handler. seen is the request as the
// handler saw it.
//
// Its frame stays on the stack for the lifetime of a stream, so everything that needs
// much stack is in admitRequest.
func (s *Server) routeRequest(w *response, r *http.Request, id string) (seen *http.Request) {
	seen, leave, in := s.admitRequest(w, r, id)
	defer leave()
	if !in {
		return seen
	}
	defer w.releasePlace()
	defer s.recoverPanic(w, seen)
	s.mux.ServeHTTP(w, seen)
	return seen
}

// admitRequest authenticates the caller, receives the body, and takes a place for the request;
// or it answers the request itself. The caller must call leave at the end of the
// request.
func (s *Server) admitRequest(w *response, r *http.Request, id string) (seen *http.Request, leave func(), in bool) {
	leave = func() {}
	_, pattern := s.mux.Handler(r)
	by := caller.Caller{Address: s.addressOf(r), Path: routeLabel(pattern), RequestID: id}
	if delay := s.routeOf(pattern).delay; delay > 0 {
		w.onRefusal = func() { s.delayRefusal(r.Context(), throttle.OwnerAt(by.Address), delay) }
	}
	if refused := s.checkOrigin(r); refused != nil {
		s.writeRefusal(w, r, by, refused)
		return r, leave, false
	}
	preflight := s.setCORSHeaders(w.Header(), r) // before any refusal, so that a page can read it
	if refused := s.limitAddress(r, by.Address); refused != nil {
		s.writeRefusal(w, r, by, refused)
		return r, leave, false
	}
	if preflight {
		w.WriteHeader(http.StatusNoContent)
		return r, leave, false
	}
	known, end, refused := s.identifyCaller(r, &by)
	if refused != nil {
		s.writeRefusal(w, r, by, refused)
		return r, leave, false
	}
	if refused := s.limitPrincipal(known); refused != nil {
		s.writeRefusal(w, r, by, refused)
		return known, end, false
	}
	received, refused := s.enterRequest(w, known, by, pattern)
	if refused != nil {
		s.writeRefusal(w, r, by, refused)
		return known, end, false
	}
	// A stream may hold much of its request, for example the values of a filter, so the body
	// counts until the stream ends.
	return known, func() { s.endRequest(w, known, func() { received.Release(); end() }) }, true
}

// delayRefusal waits before a refusal is written.
func (s *Server) delayRefusal(ctx context.Context, owner throttle.Owner, delay time.Duration) {
	if s.stopping.Load() || !s.delayed.Acquire(owner, 1) {
		return
	}
	defer s.delayed.Release(owner, 1)
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
}

// enterRequest receives the body of a request and takes a place among the requests in
// progress. The place is released when the handler has returned or its answer has
// become a stream.
func (s *Server) enterRequest(w *response, r *http.Request, by caller.Caller, pattern string) (*throttle.Received, *refusal) {
	owner, c := throttle.OwnerOf(by), connectionOf(r.Context())
	if c != nil && (c.spare && !s.isProbe(r) || !s.conns.claimConn(c, owner)) {
		w.Header().Set("Connection", "close")
		return nil, tooManyConnections
	}
	if c != nil && c.spare {
		w.Header().Set("Connection", "close") // free the place for others
	}
	places := s.requests
	switch {
	case probes[r.URL.Path]:
		return nil, nil
	case s.isProbe(r):
		places = s.scrapes
	}
	var received *throttle.Received
	if !s.routeOf(pattern).upload {
		var refused *refusal
		if received, refused = s.receiveBody(r, owner); refused != nil {
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
	before := w.onLeave
	w.onLeave = func() {
		places.Release(owner, 1)
		if before != nil {
			before()
		}
	}
	return received, nil
}

// setSecurityHeaders sets the security headers of every answer. A handler may set stricter ones.
func setSecurityHeaders(header http.Header) {
	header["X-Content-Type-Options"] = noSniff[:]
	header["Referrer-Policy"] = noReferrer[:]
	header["X-Frame-Options"] = noFrames[:]
}

// The values of headers are shared by all answers, which do not change them: Header.Set replaces
// them, and Header.Add copies them.
var noSniff, noReferrer, noFrames = [1]string{"nosniff"}, [1]string{"no-referrer"}, [1]string{"DENY"}

// recoverPanic turns a panic into an error of the request. If part of the answer was
// written, it cuts the connection instead.
func (s *Server) recoverPanic(w *response, r *http.Request) {
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
	s.writeRefusal(w, r, caller.From(r.Context()), broken)
}
