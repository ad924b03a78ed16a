package httpd

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Pages of other sites. A browser sends the page's origin in Origin, and lets the page
// read the answer only if the answer allows it (CORS, Fetch section 3.2). koine refuses
// origins that are not configured, on every path and also for WebSockets, to which CORS
// does not apply. It never allows a browser's own credentials (cookies, client
// certificates): a page sends its key or token itself.

// AnyOrigin, in Options.AllowOrigins, permits all origins.
const AnyOrigin = "*"

// MaxOrigins bounds Options.AllowOrigins.
const MaxOrigins = 100

// ParseOrigins checks a list of origins and normalizes them to the form that browsers
// send.
func ParseOrigins(list []string) ([]string, error) {
	if len(list) > MaxOrigins {
		return nil, fmt.Errorf("%d origins exceed the limit of %d", len(list), MaxOrigins)
	}
	out := make([]string, 0, len(list))
	for _, text := range list {
		if text == AnyOrigin {
			out = append(out, text)
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || strings.Contains(u.Host, "*") {
			return nil, fmt.Errorf("%q is not an origin: write https://app.example, with a port if it is not the usual one, or * for all", text)
		}
		out = append(out, originOf(u))
	}
	return out, nil
}

// originOf returns the origin of an address as browsers write it: without the default
// port.
func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host
}

// OriginOf returns the origin of an address, "" for an invalid one.
func OriginOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return originOf(u)
}

// isMachinePath reports paths that are for machines and closed to pages of other origins.
func isMachinePath(path string) bool {
	return probes[path] || path == "/metrics" || strings.HasPrefix(path, "/admin/")
}

// allowsOrigin reports whether a page of another origin may use the path. Open mode permits
// none, because it has no other protection.
func (s *Server) allowsOrigin(origin, path string) bool {
	if s.isOpen() || isMachinePath(path) {
		return false
	}
	return slices.Contains(s.options.AllowOrigins, AnyOrigin) || slices.Contains(s.options.AllowOrigins, origin)
}

func (s *Server) isOpen() bool { return s.options.Admit == nil }

// isOwn reports whether an origin is the server's own: the requested host or
// PublicOrigin.
func (s *Server) isOwn(origin, host string) bool {
	return sameHost(origin, host) || s.options.PublicOrigin != "" && origin == s.options.PublicOrigin && !s.isOpen()
}

// OriginAllowed reports whether the page that sent a request may use its path; true for
// a request without an origin.
func (s *Server) OriginAllowed(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if !s.isOwn(origin, r.Host) && !s.allowsOrigin(origin, r.URL.Path) {
			return false
		}
	}
	return true
}

const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsRequest = "Authorization, Content-Type, Accept, X-API-Key, X-Agent-ID, X-Request-ID, Idempotency-Key, Last-Event-ID, If-Match, If-None-Match, Content-Encoding, Content-Location, " +
		"X-GraphQL-Event-Stream-Token, GraphQL-Require-Preflight, A2A-Version, A2A-Extensions, X-A2A-Extensions, traceparent, tracestate"
	corsAnswer = "X-Request-ID, Retry-After, WWW-Authenticate, ETag, Location, Allow, Accept-Post, Koine-Position, Koine-Revision, Koine-Unknown-Names, A2A-Extensions, X-A2A-Extensions"
	corsMaxAge = "7200" // seconds; browsers take no more
)

// setCORSHeaders sets the CORS headers for a permitted page and reports whether
// the request is a preflight request, which needs no credential because browsers send none with it.
func (s *Server) setCORSHeaders(header http.Header, r *http.Request) (preflight bool) {
	if len(s.options.AllowOrigins) == 0 || s.isOpen() {
		return false
	}
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !s.allowsOrigin(origin, r.URL.Path) {
		return false
	}
	if slices.Contains(s.options.AllowOrigins, AnyOrigin) {
		origin = AnyOrigin
	}
	header.Set("Access-Control-Allow-Origin", origin)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		header.Set("Access-Control-Expose-Headers", corsAnswer)
		return false
	}
	header.Set("Access-Control-Allow-Methods", corsMethods)
	header.Set("Access-Control-Allow-Headers", corsRequest)
	header.Set("Access-Control-Max-Age", corsMaxAge)
	return true
}
