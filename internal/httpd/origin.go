package httpd

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Pages of other sites. A browser says in Origin whose page sends a request, and
// lets the page read the answer only if that says so (CORS, Fetch section 3.2).
// koine refuses pages that were not named, on every path and for WebSockets,
// which know no CORS. It never allows a browser's own credentials (cookies, client
// certificates): a page sends its key or token itself.

// AnyOrigin, in Options.AllowOrigins, lets every page in.
const AnyOrigin = "*"

// MaxOrigins bounds Options.AllowOrigins.
const MaxOrigins = 100

// ParseOrigins checks a list of origins and gives them in the form in which
// browsers send them.
func ParseOrigins(list []string) ([]string, error) {
	if len(list) > MaxOrigins {
		return nil, fmt.Errorf("%d origins are more than the %d that are taken", len(list), MaxOrigins)
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

// originOf is the origin of an address as browsers write it: without the
// scheme's own port.
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

// OriginOf is the origin of an address, "" of what is none.
func OriginOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return originOf(u)
}

// notForPages are paths that only the server's own pages may use: what they
// answer is for machines beside it.
func notForPages(path string) bool {
	return probes[path] || path == "/metrics" || strings.HasPrefix(path, "/admin/")
}

// allows tells whether a page of another origin may use the path. In open mode
// none may: nothing else would keep it out.
func (s *Server) allows(origin, path string) bool {
	if s.isOpen() || notForPages(path) {
		return false
	}
	return slices.Contains(s.options.AllowOrigins, AnyOrigin) || slices.Contains(s.options.AllowOrigins, origin)
}

// isOpen tells whether the server is in open mode.
func (s *Server) isOpen() bool { return s.options.Admit == nil }

// isOwn tells whether an origin is the server's: the host that was asked, or the
// one under which clients know it.
func (s *Server) isOwn(origin, host string) bool {
	return sameHost(origin, host) || s.options.PublicOrigin != "" && origin == s.options.PublicOrigin && !s.isOpen()
}

// OriginAllowed tells whether the pages that a request says it comes from may use
// its path; true for what is from no page.
func (s *Server) OriginAllowed(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if !s.isOwn(origin, r.Host) && !s.allows(origin, r.URL.Path) {
			return false
		}
	}
	return true
}

const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsRequest = "Authorization, Content-Type, Accept, X-API-Key, X-Agent-ID, X-Request-ID, Last-Event-ID, If-Match, If-None-Match, Content-Encoding, Content-Location, " +
		"X-GraphQL-Event-Stream-Token, GraphQL-Require-Preflight, A2A-Version, A2A-Extensions, X-A2A-Extensions, traceparent, tracestate"
	corsAnswer = "X-Request-ID, Retry-After, WWW-Authenticate, ETag, Location, Allow, Accept-Post, Koine-Position, Koine-Revision, Koine-Unknown-Names, A2A-Extensions, X-A2A-Extensions"
	corsMaxAge = "7200" // seconds; browsers take no more
)

// cors tells the browser of a page that was let in that it may read the answer.
// asked says that the request does no more than ask whether it might be sent: it
// needs no credential, for browsers send none with it.
func (s *Server) cors(header http.Header, r *http.Request) (asked bool) {
	if len(s.options.AllowOrigins) == 0 || s.isOpen() {
		return false
	}
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !s.allows(origin, r.URL.Path) {
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
