package httpd

import (
	"context"
	"net/http"
	"strings"

	"koine/internal/caller"
	"koine/internal/sse"
	"koine/kg"
)

// Admit authenticates a credential (auth.Gate). It calls end, at most once and without
// blocking, if the credential becomes invalid before release is called. The error is a
// *kg.Error.
type Admit func(ctx context.Context, credential string, end func(error)) (p kg.Principal, release func(), err error)

// MethodNone is the method of an unauthenticated caller: on a public path, or on a
// socket before its first message. It has no rights.
const MethodNone = caller.MethodNone

// identifyCaller authenticates the caller and completes caller. The context of the returned
// request ends with the credential; the caller must call leave after the answer.
func (s *Server) identifyCaller(r *http.Request, by *caller.Caller) (seen *http.Request, leave func(), refused *refusal) {
	ctx, leave := r.Context(), func() {}
	if s.options.Admit == nil {
		agent, err := s.agentOf(ctx, r.Header)
		if err != nil {
			return nil, nil, invalidAgent(err)
		}
		by.Principal = openPrincipal(agent)
	} else if ctx, leave, refused = s.identifyByCredential(ctx, r, by); refused != nil {
		return nil, nil, refused
	}
	return r.WithContext(caller.With(ctx, *by)), leave, nil
}

// identifyByCredential authenticates the caller of a server with credentials.
func (s *Server) identifyByCredential(ctx context.Context, r *http.Request, by *caller.Caller) (context.Context, func(), *refusal) {
	_, pattern := s.mux.Handler(r)
	if s.isPublic(pattern, r.Method) {
		by.Principal = unauthenticated
		return ctx, func() {}, nil
	}
	token, refused := s.redeemToken(r, pattern)
	if refused != nil {
		return nil, nil, refused
	}
	if token != nil {
		return s.authenticateToken(ctx, token, by)
	}
	credential, refused := credentialOf(r.Header)
	if refused == nil && credential == "" {
		if route := s.routeOf(pattern); route.optional || route.socket && isUpgrade(r) {
			by.Principal = unauthenticated
			return ctx, func() {}, nil
		}
		refused = noCredential
	}
	if refused != nil {
		return nil, nil, refused
	}
	ctx, leave, refused := s.authenticateCredential(ctx, credential, by)
	if refused != nil {
		return nil, nil, refused
	}
	if refused = s.actFor(ctx, r.Header, by); refused == nil {
		refused = s.checkRoute(pattern, by)
	}
	if refused != nil {
		leave()
		return nil, nil, refused
	}
	return ctx, leave, nil
}

var unauthenticated = kg.Principal{ID: kg.Anonymous, Method: MethodNone}

func (s *Server) authenticateCredential(ctx context.Context, credential string, by *caller.Caller) (context.Context, func(), *refusal) {
	ctx, cancel := sse.WithEnd(ctx)
	p, release, err := s.options.Admit(ctx, credential, cancel)
	if err != nil {
		cancel(nil)
		return nil, nil, notAdmitted(err)
	}
	by.Principal = p
	return ctx, func() { release(); cancel(nil) }, nil
}

// credentialOf returns the credential of a request, "" if it has none.
func credentialOf(header http.Header) (string, *refusal) {
	bearer, keys := header.Values("Authorization"), header.Values("X-API-Key")
	if len(bearer)+len(keys) > 1 {
		return "", badCredential("more than one credential: send either Authorization or X-API-Key, once")
	}
	if len(keys) == 1 {
		return strings.TrimSpace(keys[0]), nil
	}
	if len(bearer) == 0 {
		return "", nil
	}
	scheme, credential, _ := strings.Cut(bearer[0], " ")
	if credential = strings.TrimSpace(credential); !strings.EqualFold(scheme, "Bearer") || credential == "" {
		return "", badCredential("the Authorization header must be: Bearer, a space, and an API key or a token")
	}
	return credential, nil
}

// actFor sets the agent that the caller acts for, from X-Agent-ID.
func (s *Server) actFor(ctx context.Context, header http.Header, by *caller.Caller) *refusal {
	agent, err := agentNamed(header)
	if _, present := header["X-Agent-Id"]; err == nil && (!present || agent == by.Principal.ID) {
		return nil
	}
	if err == nil && s.options.CheckAgent != nil {
		err = s.options.CheckAgent(ctx, agent)
	}
	if err != nil {
		return invalidAgent(err)
	}
	if !by.Principal.MayActFor(agent) {
		return sourceForbidden
	}
	by.Actor = agent
	return nil
}

// isPublic reports whether the request needs no credential.
func (s *Server) isPublic(pattern, method string) bool {
	if pattern == "/{$}" { // the page for browsers; a POST is a call
		return method == http.MethodGet || method == http.MethodHead
	}
	return s.routeOf(pattern).public
}

// isUpgrade reports whether the request opens a socket, whose first message may have
// the credential: a browser cannot send it with the request.
func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// checkRoute refuses restricted routes to other roles, and all other routes to callers that
// may use only restricted ones.
func (s *Server) checkRoute(pattern string, by *caller.Caller) *refusal {
	r := s.routeOf(pattern)
	switch {
	case !r.restricted:
		return checkRead(by)
	case by.Principal.IsAdmin(), r.role != "" && by.Principal.HasRole(r.role):
		return nil
	}
	return notAdmin
}

func checkRead(by *caller.Caller) *refusal {
	if err := by.Principal.CheckRead(); err != nil {
		return notAdmitted(err)
	}
	return nil
}
