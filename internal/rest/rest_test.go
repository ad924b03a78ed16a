package rest_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"koine/internal/rest"
	"koine/internal/sse"
	"koine/kg"
)

func routes() *rest.Routes {
	m := rest.NewRoutes(func(w http.ResponseWriter, _ *http.Request, err error) {
		status := http.StatusBadRequest
		var none *rest.NoRoute
		if errors.As(err, &none) {
			status = none.Status()
		}
		rest.WriteError(w, status, 0, err.Error())
	})
	m.Call("GET /a/{id}", func(_ http.ResponseWriter, r *http.Request) (int, any, error) {
		return http.StatusOK, map[string]string{"id": r.PathValue("id"), "text": "<b>"}, nil
	})
	m.Call("PATCH /a/{id}", func(_ http.ResponseWriter, r *http.Request) (int, any, error) {
		return 0, nil, kg.Errorf(kg.CodeInvalid, "no")
	})
	m.Call("DELETE /a/{id}", func(http.ResponseWriter, *http.Request) (int, any, error) { return http.StatusNoContent, nil, nil })
	m.Call("GET /own", func(w http.ResponseWriter, _ *http.Request) (int, any, error) {
		w.WriteHeader(http.StatusTeapot)
		return 0, nil, nil
	})
	return m
}

// A call answers with a body, a status or by itself; a request without a route gets the
// supported methods. The request keeps the pattern of the outer mux.
func TestRoutes(t *testing.T) {
	for _, row := range []struct {
		method, path string
		status       int
		body, allow  string
	}{
		{"GET", "/a/x", 200, `{"id":"x","text":"<b>"}`, ""},
		{"PATCH", "/a/x", 400, `"no"`, ""},
		{"DELETE", "/a/x", 204, "", ""},
		{"GET", "/own", 418, "", ""},
		{"POST", "/a/x", 405, `"the path does not support POST: use GET, HEAD, PATCH, DELETE"`, "GET, HEAD, PATCH, DELETE"},
		{"GET", "/b", 404, `"the path does not exist"`, ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(row.method, row.path, nil)
		r.Pattern = "before"
		routes().ServeHTTP(w, r)
		if got := strings.TrimSpace(w.Body.String()); w.Code != row.status || got != row.body || w.Header().Get("Allow") != row.allow {
			t.Errorf("%s %s: got %d %s, allowed is %q", row.method, row.path, w.Code, got, w.Header().Get("Allow"))
		}
		if r.Pattern != "before" {
			t.Errorf("%s %s: the pattern is %q", row.method, row.path, r.Pattern)
		}
	}
}

// A body must be JSON within the limit.
func TestBody(t *testing.T) {
	for _, row := range []struct {
		kind, body string
		code       kg.Code
		field      string
	}{
		{"application/json", `{"a":1}`, "", ""},
		{"application/json; charset=utf-8", `[]`, "", ""},
		{"application/merge-patch+json", `{}`, "", ""},
		{"text/plain", `{}`, kg.CodeContentType, "Content-Type"},
		{"", `{}`, kg.CodeContentType, "Content-Type"},
		{"application/x-www-form-urlencoded", `{}`, kg.CodeContentType, "Content-Type"},
		{"application/json", `{`, kg.CodeInvalid, ""},
		{"application/json", ``, kg.CodeInvalid, ""},
		{"application/json", `"` + strings.Repeat("x", 98) + `"`, "", ""},
		{"application/json", `"` + strings.Repeat("x", 99) + `"`, kg.CodeLimitExceeded, ""},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(row.body))
		r.Header.Set("Content-Type", row.kind)
		raw, err := rest.ReadBody(httptest.NewRecorder(), r, 100, "application/merge-patch+json")
		if kg.CodeOf(err) != row.code || err != nil && kg.AsError(err).Field != row.field || err == nil && string(raw) != row.body {
			t.Errorf("%s %s: got %s, %v", row.kind, row.body, raw, err)
		}
	}
	var into struct{ A struct{ B int } }
	err := rest.Decode([]byte(`{"a":{"b":"x"}}`), &into)
	if kg.CodeOf(err) != kg.CodeInvalid || kg.AsError(err).Field != "a.b" && kg.AsError(err).Field != "A.B" {
		t.Errorf("got %v", err)
	}
	err = rest.Decode([]byte(`[]`), &into)
	if e := kg.AsError(err); e.Code != kg.CodeInvalid || e.Field != "" || e.Message != "the body is an object" {
		t.Errorf("got %v", err)
	}
}

func TestLimit(t *testing.T) {
	for query, want := range map[string]int{"": 50, "limit=1": 1, "limit=100": 100, "limit=0": 0, "limit=101": 0, "limit=x": 0, "limit=-1": 0} {
		n, err := rest.LimitParam(httptest.NewRequest("GET", "/?"+query, nil), 50, 100)
		if n != want || (err != nil) != (want == 0) {
			t.Errorf("%s: got %d, %v", query, n, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, row := range []struct {
		status int
		wait   time.Duration
		want   int
	}{{429, 0, 1}, {429, 1500 * time.Millisecond, 2}, {503, time.Minute, 60}, {400, time.Minute, 0}} {
		if got := rest.RetryAfter(row.status, row.wait); got != row.want {
			t.Errorf("%d %s: got %d", row.status, row.wait, got)
		}
	}
	w := httptest.NewRecorder()
	rest.WriteError(w, http.StatusUnauthorized, 0, "x")
	if w.Header().Get("WWW-Authenticate") == "" || w.Header().Get("Retry-After") != "" {
		t.Errorf("got %v", w.Header())
	}
	w = httptest.NewRecorder()
	rest.WriteError(w, http.StatusTooManyRequests, 7, "x")
	if w.Header().Get("Retry-After") != "7" {
		t.Errorf("got %v", w.Header())
	}
}

func TestNoStream(t *testing.T) {
	full := fmt.Errorf("outside: %w", &sse.Refused{Reason: sse.ErrTooManyStreams, RetryAfter: 3 * time.Second})
	if e := kg.AsError(rest.StreamError(full)); e.Code != kg.CodeOverloaded || e.RetryAfter != 3*time.Second {
		t.Errorf("as many as are served: %+v", e)
	}
	other := kg.Errorf(kg.CodeTaskNotFound, "no")
	if got := rest.StreamError(other); got != error(other) {
		t.Errorf("anything else: %v", got)
	}
}
