package httpd

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
	"koine/kg"
)

// probes are never limited: who asks whether the server is alive must not be
// told that it is busy.
var probes = map[string]bool{"/healthz": true, "/readyz": true}

// isProbe reports whether a request looks after the server: those have room of
// their own, whatever others take.
func (s *Server) isProbe(r *http.Request) bool {
	return probes[r.URL.Path] || r.URL.Path == metricsPath
}

const metricsPath = "/metrics"

// limitAddress takes a request from the share of where it comes from. It stands
// before authentication, so that guessing credentials is bounded too.
func (s *Server) limitAddress(r *http.Request, from netip.Addr) *refusal {
	if probes[r.URL.Path] {
		return nil
	}
	return limited(s.options.Throttle.AllowAddress(from))
}

// limitPrincipal takes a request from the caller's share. Those who are nobody
// share nothing.
func (s *Server) limitPrincipal(r *http.Request) *refusal {
	who := caller.From(r.Context()).Principal
	if probes[r.URL.Path] || who.Method == MethodNone {
		return nil
	}
	return limited(s.options.Throttle.AllowRequest(who.ID))
}

func limited(err error) *refusal {
	if err == nil {
		return nil
	}
	e := kg.AsError(err)
	return &refusal{status: http.StatusTooManyRequests, rpc: rpcRateLimit, reason: string(e.Code), message: e.Message, hint: e.Hint,
		retry: int((e.RetryAfter + time.Second - 1) / time.Second)}
}

// AdmitOperation lets one more operation of an open socket in, as a request is
// let in: from the share of the caller, and among those under way until leave is
// called.
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
