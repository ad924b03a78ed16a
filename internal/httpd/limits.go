package httpd

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
	"koine/kg"
)

// probes are never limited: an overloaded server must still answer liveness and
// readiness checks.
var probes = map[string]bool{"/healthz": true, "/readyz": true}

// isProbe reports whether a request is a probe or a scrape, which have places of their
// own.
func (s *Server) isProbe(r *http.Request) bool {
	return probes[r.URL.Path] || r.URL.Path == metricsPath
}

const metricsPath = "/metrics"

// limitAddress charges a request to its address. It runs before authentication, so that
// it also limits the guessing of credentials.
func (s *Server) limitAddress(r *http.Request, from netip.Addr) *refusal {
	if probes[r.URL.Path] {
		return nil
	}
	return limitRefusal(s.options.Throttle.AllowAddress(from))
}

// limitPrincipal charges a request to its principal. Unauthenticated callers have no
// share.
func (s *Server) limitPrincipal(r *http.Request) *refusal {
	by := caller.From(r.Context()).Principal
	if probes[r.URL.Path] || by.Method == MethodNone {
		return nil
	}
	return limitRefusal(s.options.Throttle.AllowRequest(by.ID))
}

func limitRefusal(err error) *refusal {
	if err == nil {
		return nil
	}
	e := kg.AsError(err)
	return &refusal{status: http.StatusTooManyRequests, rpc: rpcRateLimit, reason: string(e.Code), message: e.Message, hint: e.Hint,
		retry: int((e.RetryAfter + time.Second - 1) / time.Second)}
}

// AdmitOperation admits one more operation on an open socket like a request: it is
// charged to the caller, and counts as in progress until leave is called.
func (s *Server) AdmitOperation(ctx context.Context) (leave func(), err error) {
	if err := s.options.Throttle.AdmitCall(ctx); err != nil {
		return nil, err
	}
	owner := throttle.OwnerOf(caller.From(ctx))
	if !s.requests.Acquire(owner, 1) {
		return nil, &kg.Error{Code: kg.CodeOverloaded, Message: overloaded.message, Hint: overloaded.hint,
			RetryAfter: time.Duration(overloaded.retry) * time.Second}
	}
	return func() { s.requests.Release(owner, 1) }, nil
}

// MaxForwarded bounds the entries of X-Forwarded-For that are read, far above the
// length of a chain of proxies.
const MaxForwarded = 16

// addressOf returns the address of the client: the peer of the connection or, if that
// is a trusted proxy, the address that the proxy reports. Entries of X-Forwarded-For
// from before the first trusted proxy are ignored.
func (s *Server) addressOf(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap().WithZone("")
	if len(s.options.TrustedProxies) == 0 || !s.trustsProxy(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	slices.Reverse(hops)
	for _, hop := range hops[:min(len(hops), MaxForwarded)] {
		next, ok := hopAddr(hop)
		if !ok {
			break // no trusted proxy vouches for earlier entries
		}
		if addr = next; !s.trustsProxy(addr) {
			break
		}
	}
	return addr
}

// hopAddr parses an entry, which may have a port.
func hopAddr(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		var with netip.AddrPort
		if with, err = netip.ParseAddrPort(text); err != nil {
			return netip.Addr{}, false
		}
		addr = with.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

func (s *Server) trustsProxy(addr netip.Addr) bool {
	return slices.ContainsFunc(s.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
