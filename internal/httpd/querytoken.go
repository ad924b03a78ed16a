package httpd

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// QueryTokenParameter is the query parameter with the credential of a socket.
const QueryTokenParameter = "token"

type queryTokenKey struct{}

// HideQueryToken removes the parameter token from the addresses of a path before anything
// else sees the request, so that no log, trace or metric has the credential. The handler
// gets it from QueryToken and authenticates it. Call it before Serve.
func (s *Server) HideQueryToken(path string) { s.hidden[path] = true }

// QueryToken returns the credential that was removed from the address of the request, ""
// if there was none.
func QueryToken(r *http.Request) string {
	token, _ := r.Context().Value(queryTokenKey{}).(string)
	return token
}

// hideQueryToken removes the token from the address of a request. The first one counts.
func (s *Server) hideQueryToken(r *http.Request) *http.Request {
	if r.URL.RawQuery == "" || !s.hidden[r.URL.Path] {
		return r
	}
	var rest []string
	token := ""
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		if err == nil && plain != QueryTokenParameter {
			rest = append(rest, part)
			continue
		}
		if credential, err := url.QueryUnescape(value); err == nil && token == "" {
			token = credential
		}
	}
	r.URL.RawQuery = strings.Join(rest, "&")
	r.RequestURI = r.URL.RequestURI()
	return r.WithContext(context.WithValue(r.Context(), queryTokenKey{}, token))
}
