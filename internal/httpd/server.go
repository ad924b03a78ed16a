package httpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
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
	delayed   *throttle.Pool // refusals that wait
	intake    throttle.Intake
	conns     *connections

	tokens *streamTokens
	hidden map[string]bool // the paths with a credential in the query

	unavailable unavailable
	stopping    atomic.Bool
}

// New returns a server with the routes /healthz, /readyz and /metrics.
func New(options Options) *Server {
	s := &Server{options: options.withDefaults(), mux: http.NewServeMux(), routes: map[string]*route{}, hidden: map[string]bool{}, ids: newRequestIDs()}
	s.requests, s.receiving = throttle.NewPool(int64(s.options.MaxRequests)), throttle.NewPool(int64(s.options.MaxReceiving))
	s.delayed = throttle.NewPool(DefaultMaxDelayed)
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
	public     bool          // needs no credential
	socket     bool          // opens a WebSocket
	upload     bool          // the handler receives the body
	restricted bool          // for administrators, and for the role
	role       string        // "" for none
	streamed   bool          // accepts a stream token
	optional   bool          // also for callers without a credential
	delay      time.Duration // before any answer but 200
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

// HandleOptional adds a route that also serves callers without a credential: they are
// unauthenticated (MethodNone). A credential that is sent must be valid.
func (s *Server) HandleOptional(pattern string, form Form, handler http.Handler) {
	s.addRoute(pattern, form, handler).optional = true
}

// DelayRefusals lets a route wait before any answer but 200, for clients that ask again at
// once whatever the answer is. Up to DefaultMaxDelayed answers wait at a time, and of one
// address its share; others do not wait. The route must exist.
func (s *Server) DelayRefusals(pattern string, delay time.Duration) { s.routes[pattern].delay = delay }

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

// Listen opens the address. Without credentials every client may do anything, so it
// must be a loopback address unless insecure is set.
func Listen(addr string, insecure bool) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !insecure && !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address: without credentials every client that reaches it may do anything; "+
			"listen on 127.0.0.1, authenticate callers with --auth keys, or set --insecure on a trusted network", addr)
	}
	return net.ListenTCP("tcp", tcp)
}

// serveHealthz reports that the process answers.
func (s *Server) serveHealthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, health{Status: "ok"})
}

// serveReadyz reports whether the store takes updates.
func (s *Server) serveReadyz(w http.ResponseWriter, _ *http.Request) {
	if s.stopping.Load() {
		writeJSON(w, http.StatusServiceUnavailable, health{Status: "not ready", Reason: "the server is shutting down"})
		return
	}
	if err := s.options.Store.Ready(); err != nil {
		writeJSON(w, http.StatusServiceUnavailable, health{Status: "not ready", Reason: err.Error()})
		return
	}
	h := health{Status: "ready"}
	if state := s.options.TextIndex; state != nil {
		h.Search = state().describeState()
	}
	writeJSON(w, http.StatusOK, h)
}

type health struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	Search string `json:"search,omitempty"` // while the index of texts is not complete
}

// serveHome redirects a browser to the home page, and lists the endpoints for other clients.
func (s *Server) serveHome(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		// Not http.Redirect: it would make a relative address absolute, and lose the
		// prefix that a proxy may have added.
		w.Header().Set("Location", s.options.Home)
		w.WriteHeader(http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(homeText)) // the client may be gone
}

const homeText = `koine: one knowledge graph for a team of agents.

POST /                              JSON-RPC 2.0: knowledge/query, knowledge/update, knowledge/subscribe, channels/*
GET  /.well-known/agent-card.json   the agent card
GET  /graphql/schema                the GraphQL schema
GET  /changes                       a feed of changes (Server-Sent Events)
`
