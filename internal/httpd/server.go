package httpd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"koine/internal/throttle"
	"koine/kg"
)

// Server is the HTTP server. Add routes before calling Serve.
type Server struct {
	options Options
	log     *slog.Logger
	mux     *http.ServeMux
	routes  map[string]*route // by pattern
	metrics *metrics
	ids     requestIDs

	requests  *throttle.Pool // requests in progress
	receiving *throttle.Pool // requests with an incomplete body
	scrapes   *throttle.Pool // reads of /metrics
	intake    throttle.Intake
	conns     *connections

	tokens *streamTokens

	unavailable unavailable
	stopping    atomic.Bool
}

// New returns a server with the routes /healthz, /readyz and /metrics.
func New(options Options) *Server {
	s := &Server{options: options.withDefaults(), mux: http.NewServeMux(), routes: map[string]*route{}, ids: newRequestIDs()}
	s.requests, s.receiving = throttle.NewPool(int64(s.options.MaxRequests)), throttle.NewPool(int64(s.options.MaxReceiving))
	s.scrapes, s.intake = throttle.NewPool(DefaultMaxScrapes), s.options.Intake
	s.conns = newConnections(s.maxConnections(), s.trustsProxy)
	s.tokens, s.log = newStreamTokens(MaxStreamTokens), s.options.Logger
	s.metrics = newMetrics(s)
	s.HandlePublic("GET /healthz", Plain, http.HandlerFunc(s.serveHealthz))
	s.HandlePublic("GET /readyz", Plain, http.HandlerFunc(s.serveReadyz))
	s.HandleAdmin("GET "+metricsPath, kg.RoleMetrics, Plain, s.metrics.handler())
	if !s.isOpen() { // open mode needs no tokens
		s.Handle("POST "+StreamTokenPath, Plain, http.HandlerFunc(s.serveStreamToken))
	}
	s.HandlePublic("/", Plain, http.HandlerFunc(s.notFound))
	return s
}

// route is the treatment of the requests of a pattern.
type route struct {
	form       Form
	public     bool   // needs no credential
	socket     bool   // opens a WebSocket
	upload     bool   // the handler receives the body
	restricted bool   // for administrators, and for the role
	role       string // "" for none
	streamed   bool   // accepts a stream token
}

// routeOf returns the route of a pattern; the zero route if there is none.
func (s *Server) routeOf(pattern string) route {
	if r := s.routes[pattern]; r != nil {
		return *r
	}
	return route{}
}

// Handle adds a route. The pattern is one of http.ServeMux; form is the format of the
// server's own errors there.
func (s *Server) Handle(pattern string, form Form, handler http.Handler) {
	s.addRoute(pattern, form, handler)
}

func (s *Server) addRoute(pattern string, form Form, handler http.Handler) *route {
	s.mux.Handle(pattern, handler)
	s.routes[pattern] = &route{form: form}
	return s.routes[pattern]
}

// HandlePublic adds a route that needs no credential. Its caller is unauthenticated.
func (s *Server) HandlePublic(pattern string, form Form, handler http.Handler) {
	s.addRoute(pattern, form, handler).public = true
}

// HandleAdmin adds a route for administrators, and for the role unless it is "".
func (s *Server) HandleAdmin(pattern, role string, form Form, handler http.Handler) {
	r := s.addRoute(pattern, form, handler)
	r.restricted, r.role = true, role
}

// HandleSocket adds a route on which a WebSocket may be opened without a credential.
// The handler must do nothing on such a socket before its caller (MethodNone) has
// authenticated.
func (s *Server) HandleSocket(pattern string, form Form, handler http.Handler) {
	s.addRoute(pattern, form, handler).socket = true
}

// HandleUpload adds a route with large bodies: the handler runs before they are
// received, and must limit their size and number itself.
func (s *Server) HandleUpload(pattern string, form Form, handler http.Handler) {
	s.addRoute(pattern, form, handler).upload = true
}

func (s *Server) maxConnections() int {
	if s.options.MaxConnections > 0 {
		return s.options.MaxConnections
	}
	files, known := maxFiles()
	if !known {
		return DefaultMaxConnections
	}
	return connectionsFor(files)
}

// HandleRPC adds the JSON-RPC endpoint, at / and /a2a, each also with a trailing slash.
// A GET of / shows the home page.
func (s *Server) HandleRPC(rpc http.Handler) {
	s.Handle("/{$}", JSONRPC, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			s.serveHome(w, r)
			return
		}
		rpc.ServeHTTP(w, r)
	}))
	s.Handle("/a2a", JSONRPC, rpc)
	s.Handle("/a2a/{$}", JSONRPC, rpc)
}

// UnknownPaths sets the error format for paths without a route.
func (s *Server) UnknownPaths(form Form) { s.routes["/"].form = form }

// Call counts a JSON-RPC call for the metrics: code is 0 or that of its error.
func (s *Server) Call(method string, code int, took time.Duration) {
	s.metrics.countCall(method, code, took)
}

// Serve serves the listener until ctx ends, and then shuts down in order. It returns
// nil after an orderly shutdown, and closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: s.options.HeaderTimeout,
		IdleTimeout:       s.options.IdleTimeout,
		MaxHeaderBytes:    s.options.MaxHeaderBytes,
		ConnContext:       connContext,
		ConnState:         stateChanged,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		// A request outlives ctx, because it is finished and not cut off.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan error, 1)
	go func() { served <- s.serveListener(server, listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	err := s.shutdown(server)
	<-served // http.ErrServerClosed
	return err
}

func (s *Server) serveListener(server *http.Server, listener net.Listener) error {
	listener = sharedListener{listener, s.conns}
	if s.options.Certificate == nil {
		return server.Serve(listener)
	}
	server.TLSConfig = s.options.Certificate.Config()
	return server.ServeTLS(listener, "", "")
}

// shutdown ends the streams first, because http.Server.Shutdown waits for them.
func (s *Server) shutdown(server *http.Server) error {
	s.stopping.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), s.options.ShutdownTimeout)
	defer cancel()
	streams := s.options.Streams.Shutdown(ctx)
	requests := server.Shutdown(ctx)
	if requests != nil {
		requests = errors.Join(requests, server.Close())
	}
	return errors.Join(streams, requests)
}
