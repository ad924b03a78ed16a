package httpd_test

import (
	"slices"
	"strings"
	"testing"

	"koine/internal/httpd"
)

const (
	key  = "Authorization: Bearer right"
	page = "Origin: https://app.example"
)

// In open mode no configuration admits a page of another origin, on any path.
func TestOpenModeLetsNoPageIn(t *testing.T) {
	s := newServer(httpd.Options{AllowOrigins: []string{"https://app.example", httpd.AnyOrigin}, PublicOrigin: "https://app.example"})
	s.HandleRPC(whoami)
	r := run(t, s)
	for _, method := range []string{"POST", "OPTIONS", "GET"} {
		resp, body := do(t, r, method, "/", "", page, "Access-Control-Request-Method: POST", "Upgrade: websocket", "Connection: Upgrade")
		if resp.StatusCode != 403 || !strings.Contains(body, "ORIGIN_FORBIDDEN") || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %d %s %v", method, resp.StatusCode, body, resp.Header)
		}
	}
}

func TestOrigins(t *testing.T) {
	some := []string{"https://app.example", "http://localhost:3000"}
	for _, row := range []struct {
		name    string
		allowed []string
		headers []string
		path    string
		status  int
		allow   string // Access-Control-Allow-Origin
	}{
		{"from no page", some, nil, "/", 200, ""},
		{"from a page in the list", some, []string{page}, "/", 200, "https://app.example"},
		{"from another one in the list", some, []string{"Origin: http://localhost:3000"}, "/", 200, "http://localhost:3000"},
		{"from a page that is not", some, []string{"Origin: https://evil.example"}, "/", 403, ""},
		{"from the same host by another scheme", some, []string{"Origin: http://app.example"}, "/", 403, ""},
		{"from the same host by another port", some, []string{"Origin: https://app.example:8443"}, "/", 403, ""},
		{"from a host below", some, []string{"Origin: https://x.app.example"}, "/", 403, ""},
		{"from a host that begins so", some, []string{"Origin: https://app.example.evil"}, "/", 403, ""},
		{"from nowhere", some, []string{"Origin: null"}, "/", 403, ""},
		{"from two pages", some, []string{page, "Origin: https://evil.example"}, "/", 403, ""},
		{"from where clients know the server", nil, []string{"Origin: https://koine.example"}, "/", 200, ""},
		{"without a list", nil, []string{page}, "/", 403, ""},
		{"with all let in", []string{"*"}, []string{page}, "/", 200, "*"},
		{"from nowhere, with all let in", []string{"*"}, []string{"Origin: null"}, "/", 200, "*"},
		{"metrics", []string{"*"}, []string{page}, "/metrics", 403, ""},
		{"liveness", []string{"*"}, []string{page}, "/healthz", 403, ""},
		{"administration", []string{"*"}, []string{page}, "/admin/x", 403, ""},
	} {
		s := newServer(httpd.Options{Admit: oneKey, AllowOrigins: row.allowed, PublicOrigin: "https://koine.example"})
		s.HandleRPC(whoami)
		s.HandleAdmin("/admin/x", "", httpd.Plain, whoami)
		resp, body := do(t, run(t, s), "POST", row.path, "", append(row.headers, key)...)
		if resp.StatusCode != row.status || resp.Header.Get("Access-Control-Allow-Origin") != row.allow {
			t.Errorf("%s: got %d, Access-Control-Allow-Origin %q, %s", row.name, resp.StatusCode, resp.Header.Get("Access-Control-Allow-Origin"), body)
		}
		if resp.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: a browser's own credentials are allowed", row.name)
		}
		if expose := resp.Header.Get("Access-Control-Expose-Headers"); (row.allow != "") != strings.Contains(expose, "Retry-After") {
			t.Errorf("%s: Access-Control-Expose-Headers %q", row.name, expose)
		}
		if varies := slices.Contains(resp.Header.Values("Vary"), "Origin"); varies != (row.allowed != nil && row.status == 200) {
			t.Errorf("%s: Vary %q", row.name, resp.Header.Values("Vary"))
		}
	}
}

// A preflight is answered without a credential, and a page can read a refusal.
func TestPreflight(t *testing.T) {
	s := newServer(httpd.Options{Admit: oneKey, AllowOrigins: []string{"https://app.example"}})
	s.HandleRPC(whoami)
	s.Handle("/graphql", httpd.GraphQL, whoami)
	r := run(t, s)
	for _, path := range []string{"/", "/a2a", "/graphql"} {
		resp, body := do(t, r, "OPTIONS", path, "", page, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization")
		header := resp.Header
		if resp.StatusCode != 204 || body != "" || header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
			!strings.Contains(header.Get("Access-Control-Allow-Methods"), "POST, PUT, PATCH, DELETE") || !strings.Contains(header.Get("Access-Control-Allow-Headers"), "Authorization") ||
			header.Get("Access-Control-Allow-Credentials") != "" || header.Get("Access-Control-Max-Age") != "7200" {
			t.Errorf("%s: got %d %v", path, resp.StatusCode, header)
		}
	}
	if resp, _ := do(t, r, "OPTIONS", "/graphql", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST"); resp.StatusCode != 403 {
		t.Errorf("a page that was not named: got %d", resp.StatusCode)
	}
	if resp, _ := do(t, r, "OPTIONS", "/graphql", "", page); resp.StatusCode != 401 {
		t.Errorf("OPTIONS that is no preflight: got %d, want it to need a credential", resp.StatusCode)
	}
	resp, _ := do(t, r, "POST", "/graphql", "", page)
	if resp.StatusCode != 401 || resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example" || !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("a refusal: got %d %v", resp.StatusCode, resp.Header)
	}
}

func TestParseOrigins(t *testing.T) {
	got, err := httpd.ParseOrigins([]string{"https://App.Example:443/", "http://localhost:3000", "http://[::1]:80", "*"})
	if want := []string{"https://app.example", "http://localhost:3000", "http://[::1]", "*"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, text := range []string{"", "app.example", "https://", "ftp://app.example", "https://*.example", "https://app.example/path", "https://u@app.example", "https://app.example?q", "null"} {
		if got, err := httpd.ParseOrigins([]string{text}); err == nil {
			t.Errorf("%q: got %q", text, got)
		}
	}
	if _, err := httpd.ParseOrigins(make([]string, httpd.MaxOrigins+1)); err == nil {
		t.Error("more origins than the bound were taken")
	}
	full := slices.Repeat([]string{"https://app.example"}, httpd.MaxOrigins)
	if _, err := httpd.ParseOrigins(full); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	for address, want := range map[string]string{"": "", "https://koine.example/base": "https://koine.example", "koine.example": ""} {
		if got := httpd.OriginOf(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
