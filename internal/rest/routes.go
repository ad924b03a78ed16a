// Package rest answers requests about resources with JSON: what the protocols that are made
// of paths and methods have in common. What an error looks like is theirs.
package rest

import (
	"net/http"
	"strings"
)

// Call answers a request with a status and a body, nil for none. With status 0 it has
// answered itself.
type Call func(w http.ResponseWriter, r *http.Request) (status int, body any, err error)

// Routes are calls by the patterns of http.ServeMux. All are added before the first
// request; then it is safe for concurrent use.
type Routes struct {
	mux    *http.ServeMux
	refuse func(http.ResponseWriter, *http.Request, error)
}

// NewRoutes makes empty routes. refuse answers for calls that fail, and with a *NoRoute for
// requests that fit none.
func NewRoutes(refuse func(http.ResponseWriter, *http.Request, error)) *Routes {
	return &Routes{http.NewServeMux(), refuse}
}

// Handle adds what answers by itself.
func (m *Routes) Handle(pattern string, h http.HandlerFunc) { m.mux.HandleFunc(pattern, h) }

// Call adds a call.
func (m *Routes) Call(pattern string, do Call) {
	m.Handle(pattern, func(w http.ResponseWriter, r *http.Request) {
		status, body, err := do(w, r)
		switch {
		case err != nil:
			m.refuse(w, r, err)
		case body != nil:
			Write(w, status, body)
		case status != 0:
			w.WriteHeader(status)
		}
	})
}

// ServeHTTP answers a request.
func (m *Routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(r.Context()) // a copy: who called has noted its own pattern
	if _, pattern := m.mux.Handler(r); pattern != "" {
		m.mux.ServeHTTP(w, r)
		return
	}
	none := &NoRoute{Method: r.Method, Methods: m.methods(r)}
	if len(none.Methods) > 0 {
		w.Header().Set("Allow", strings.Join(none.Methods, ", "))
	}
	m.refuse(w, r, none)
}

// methods lists those that there are for the path.
func (m *Routes) methods(r *http.Request) (out []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := m.mux.Handler(other); pattern != "" {
			out = append(out, method)
		}
	}
	return out
}

// NoRoute says that no call fits a request.
type NoRoute struct {
	Method  string
	Methods []string // that the path is for; none where there is nothing
}

func (n *NoRoute) Error() string {
	if len(n.Methods) == 0 {
		return "there is nothing at this path"
	}
	return n.Method + " is not for this path: it takes " + strings.Join(n.Methods, ", ")
}

// Status is that of HTTP: of a method that is not for the path, or of no such path.
func (n *NoRoute) Status() int {
	if len(n.Methods) == 0 {
		return http.StatusNotFound
	}
	return http.StatusMethodNotAllowed
}
