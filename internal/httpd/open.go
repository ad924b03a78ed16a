package httpd

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"koine/internal/caller"
	"koine/kg"
)

// Open mode: there are no credentials, the caller names itself, and protection comes
// from listening on loopback only. A web page in a browser on the machine is not
// trusted: it must not get in by a cross-site request, nor by pointing its own name at
// a loopback address.

// openPrincipal returns the principal of a caller in open mode, an administrator.
func openPrincipal(agent kg.AgentID) kg.Principal {
	return kg.Principal{ID: agent, Roles: []string{kg.RoleAdmin}, ActFor: []kg.AgentID{kg.Anybody}, Method: kg.MethodOpen}
}

// checkOrigin refuses requests with a foreign host name or from a foreign page.
func (s *Server) checkOrigin(r *http.Request) *refusal {
	if s.options.Admit == nil && !s.options.Insecure && !isLoopback(r.Host) {
		return foreignHost
	}
	if !s.OriginAllowed(r) {
		return foreignOrigin
	}
	return nil
}

// isLoopback reports whether a Host header names the loopback interface.
func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if strings.EqualFold(strings.TrimSuffix(name, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// sameHost reports whether an origin (RFC 6454) is the requested host.
func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	port := ":80"
	if u.Scheme == "https" {
		port = ":443"
	}
	return strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(host, port))
}

// agentOf returns the agent that the caller names.
func (s *Server) agentOf(ctx context.Context, header http.Header) (kg.AgentID, error) {
	agent, err := agentNamed(header)
	if err == nil && s.options.CheckAgent != nil {
		err = s.options.CheckAgent(ctx, agent)
	}
	return agent, err
}

func agentNamed(header http.Header) (kg.AgentID, error) {
	switch names := header.Values("X-Agent-ID"); len(names) {
	case 0:
		return kg.Anonymous, nil
	case 1:
		return caller.ParseAgent(names[0])
	}
	return "", kg.Errorf(kg.CodeInvalid, "the header must occur once")
}
