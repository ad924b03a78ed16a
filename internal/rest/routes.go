// Package rest serves JSON over paths and methods: the common part of the REST
// protocols. Each protocol supplies its own error format.
package rest

import (
	"net/http"
	"strings"
)

// Call handles a request and returns a status and a body, nil for none. Status 0 means
// that it has written the answer itself.
type Call func(w http.ResponseWriter, r *http.Request) (status int, body any, err error)

// Routes maps patterns of http.ServeMux to calls. Add all before the first request;
// after that it is safe for concurrent use.
type Routes struct {
	mux    *http.ServeMux
	refuse func(http.ResponseWriter, *http.Request, error)
}

// NewRoutes returns empty routes. refuse writes the answer for calls that fail, and for
// requests without a route, with a *NoRoute.
func NewRoutes(refuse func(http.ResponseWriter, *http.Request, error)) *Routes {
	return &Routes{http.NewServeMux(), refuse}
}

// Handle adds a handler.
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

// ServeHTTP serves a request.
func (m *Routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(r.Context()) // a copy: the outer mux has set its own pattern
	if _, pattern := m.mux.Handler(r); pattern != "" {
		m.mux.ServeHTTP(w, r)
		return
	}
	none := &NoRoute{Method: r.Method, Methods: m.allowedMethods(r)}
	if len(none.Methods) > 0 {
		w.Header().Set("Allow", strings.Join(none.Methods, ", "))
	}
	m.refuse(w, r, none)
}

// allowedMethods lists the methods of the path.
func (m *Routes) allowedMethods(r *http.Request) (out []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := m.mux.Handler(other); pattern != "" {
			out = append(out, method)
		}
	}
	return out
}

// NoRoute is the error for a request without a route.
type NoRoute struct {
	Method  string
	Methods []string // supported by the path; empty if the path does not exist
}

func (n *NoRoute) Error() string {
	if len(n.Methods) == 0 {
		return "the path does not exist"
	}
	return "the path does not support " + n.Method + ": use " + strings.Join(n.Methods, ", ")
}

// Status returns the HTTP status: method not allowed, or not found.
func (n *NoRoute) Status() int {
	if len(n.Methods) == 0 {
		return http.StatusNotFound
	}
	return http.StatusMethodNotAllowed
}
