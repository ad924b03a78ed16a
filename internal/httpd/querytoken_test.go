package httpd_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/kg"
)

// The credential in the parameter token of a hidden path reaches the handler alone: it is
// in no log line and in no part of the address that the handler sees. Other paths keep
// the parameter.
func TestQueryTokenIsHidden(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	s := newServer(httpd.Options{Logger: slog.New(slog.NewTextHandler(&lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	s.HideQueryToken("/chat/ws")
	s.Handle("/chat/", httpd.Framed, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %q", r.URL.RawQuery, r.RequestURI, httpd.QueryToken(r))
	}))
	f := run(t, s)
	for address, want := range map[string]string{
		"/chat/ws?a=1&token=se%20cret&b=2":     `a=1&b=2 /chat/ws?a=1&b=2 "se cret"`,
		"/chat/ws?%74oken=secret":              ` /chat/ws "secret"`,
		"/chat/ws?token=secret&token=more":     ` /chat/ws "secret"`,
		"/chat/ws?tok%zzen=secret":             ` /chat/ws "secret"`,
		"/chat/other?token=public":             `token=public /chat/other?token=public ""`,
		"/chat/ws?streamToken=x&after=y&%74=1": `after=y&%74=1 /chat/ws?after=y&%74=1 ""`,
	} {
		if _, got := do(t, f, "GET", address, ""); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if text := log.String(); strings.Contains(text, "cret") || !strings.Contains(text, "/chat/ws") {
		t.Errorf("the log has the credential, or no request: %s", text)
	}
}

// An optional route serves callers with a credential as themselves and others
// unauthenticated, and refuses an invalid credential in the form of its protocol.
func TestOptionalRoute(t *testing.T) {
	s := newServer(httpd.Options{Admit: func(_ context.Context, credential string, _ func(error)) (kg.Principal, func(), error) {
		if credential != "key" {
			return kg.Principal{}, nil, kg.Errorf(kg.CodeUnauthenticated, "no such key")
		}
		return kg.Principal{ID: "agent://ann", Method: "key"}, func() {}, nil
	}})
	s.HandleOptional("GET /directory", httpd.Framed, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := caller.From(r.Context()).Principal
		fmt.Fprintf(w, "%s %s", p.ID, p.Method)
	}))
	f := run(t, s)
	for _, row := range []struct{ header, want string }{
		{"X-API-Key: key", "agent://ann key"},
		{"Accept: */*", string(kg.Anonymous) + " " + httpd.MethodNone},
		{"X-API-Key: other", `{"type":"error","code":"UNAUTHORIZED","message":"no such key"}` + "\n"},
	} {
		if _, got := do(t, f, "GET", "/directory", "", row.header); got != row.want {
			t.Errorf("%s: got %s, want %s", row.header, got, row.want)
		}
	}
}
