package httpd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/kg"
)

// gate admits credentials of the test and can revoke them.
type gate struct {
	mu       sync.Mutex
	inside   map[string]func(error)
	released int
	left     []string // the credentials that were released
}

func (d *gate) admit(_ context.Context, credential string, end func(error)) (kg.Principal, func(), error) {
	p, ok := map[string]kg.Principal{
		"dora":  {ID: "agent://dora", Roles: []string{"r"}, ActFor: []kg.AgentID{"agent://chen"}, Method: "key"},
		"root":  {ID: "agent://root", Roles: []string{kg.RoleAdmin}, ActFor: []kg.AgentID{"*"}, Method: "key"},
		"probe": {ID: "agent://probe", Roles: []string{kg.RoleMetrics}, Method: "key"},
	}[credential]
	switch {
	case credential == "suspended":
		return p, nil, kg.Errorf(kg.CodePermissionDenied, "the agent is suspended")
	case credential == "broken":
		return p, nil, io.ErrUnexpectedEOF
	case credential == "old":
		return p, nil, &kg.Error{Code: kg.CodeUnauthenticated, Message: "the credential is not valid", Hint: "Get a new one."}
	case !ok:
		return p, nil, kg.Errorf(kg.CodeUnauthenticated, "the credential is not valid")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inside == nil {
		d.inside = map[string]func(error){}
	}
	d.inside[credential] = end
	return p, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.released, d.left = d.released+1, append(d.left, credential)
	}, nil
}

// releasedOf returns how often the credential was released.
func (d *gate) releasedOf(credential string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, left := range d.left {
		if left == credential {
			n++
		}
	}
	return n
}

func (d *gate) throwOut(credential string) {
	d.mu.Lock()
	end := d.inside[credential]
	d.mu.Unlock()
	end(kg.Errorf(kg.CodeUnauthenticated, "the key was revoked"))
}

var who = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	c := caller.From(r.Context())
	fmt.Fprintf(w, "%s %s %s", c.Principal.ID, c.Acting(), c.Principal.Method)
})

func knowing(d *gate) *httpd.Server {
	s := newServer(httpd.Options{Admit: d.admit})
	s.HandleRPC(who)
	s.HandleSocket("/graphql", httpd.GraphQL, who)
	s.Handle("GET /changes", httpd.Plain, who)
	s.Handle("/agents", httpd.Coded, who)
	s.Handle("/rest", httpd.Named, who)
	s.Handle("/a2a/http/", httpd.A2AHTTP, who)
	s.HandlePublic("GET /schema", httpd.Plain, who)
	s.HandleAdmin("POST /check", "", httpd.Plain, who)
	return s
}

func TestCredentials(t *testing.T) {
	r := run(t, knowing(&gate{}))
	const (
		none    = `{"error":{"message":"authentication required","data":{"reason":"UNAUTHENTICATED","domain":"koine","hint":"Send an API key or a token as Authorization: Bearer …, or a key as X-API-Key."}}}` + "\n"
		bare    = `Bearer realm="koine"`
		request = `Bearer realm="koine", error="invalid_request"`
		token   = `Bearer realm="koine", error="invalid_token"`
	)
	for _, row := range []struct {
		name      string
		method    string
		path      string
		headers   []string
		status    int
		want      string // begins with
		challenge string
	}{
		{"bearer", "GET", "/changes", []string{"Authorization: Bearer dora"}, 200, "agent://dora agent://dora key", ""},
		{"bearer in other letters", "GET", "/changes", []string{"Authorization: bearer  dora"}, 200, "agent://dora agent://dora key", ""},
		{"X-API-Key", "GET", "/changes", []string{"X-API-Key: dora"}, 200, "agent://dora agent://dora key", ""},
		{"from another host and name", "GET", "/changes", []string{"X-API-Key: dora", "Host: koine.example"}, 200, "agent://dora agent://dora key", ""},
		{"for itself", "GET", "/changes", []string{"X-API-Key: dora", "X-Agent-ID: dora"}, 200, "agent://dora agent://dora key", ""},
		{"for another", "GET", "/changes", []string{"X-API-Key: dora", "X-Agent-ID: chen"}, 200, "agent://dora agent://chen key", ""},
		{"for anybody", "GET", "/changes", []string{"X-API-Key: root", "X-Agent-ID: chen"}, 200, "agent://root agent://chen key", ""},
		{"for one that it may not act for", "GET", "/changes", []string{"X-API-Key: dora", "X-Agent-ID: smith"}, 403,
			`{"error":{"message":"you may not act for the agent in X-Agent-ID","data":{"reason":"SOURCE_FORBIDDEN"`, ""},
		{"for a bad name", "GET", "/changes", []string{"X-API-Key: dora", "X-Agent-ID: a b"}, 400, `{"error":{"message":"X-Agent-ID: `, ""},
		{"nothing", "GET", "/changes", nil, 401, none, bare},
		{"a name alone", "GET", "/changes", []string{"X-Agent-ID: dora"}, 401, none, bare},
		{"an empty key", "GET", "/changes", []string{"X-API-Key: "}, 401, none, bare},
		{"wrong", "GET", "/changes", []string{"X-API-Key: wrong"}, 401, `{"error":{"message":"the credential is not valid","data":{"reason":"UNAUTHENTICATED","domain":"koine"}}}`, token},
		{"old", "GET", "/changes", []string{"X-API-Key: old"}, 401, `{"error":{"message":"the credential is not valid","data":{"reason":"UNAUTHENTICATED","domain":"koine","hint":"Get a new one."}}}`, token},
		{"another scheme", "GET", "/changes", []string{"Authorization: Basic ZG9yYTpkb3Jh"}, 401, `{"error":{"message":"the Authorization header must be: Bearer`, request},
		{"a bare word", "GET", "/changes", []string{"Authorization: dora"}, 401, `{"error":{"message":"the Authorization header must be: Bearer`, request},
		{"two", "GET", "/changes", []string{"Authorization: Bearer dora", "X-API-Key: dora"}, 401, `{"error":{"message":"more than one credential`, request},
		{"suspended", "GET", "/changes", []string{"X-API-Key: suspended"}, 403, `{"error":{"message":"the agent is suspended","data":{"reason":"PERMISSION_DENIED"`, ""},
		{"a fault of ours", "GET", "/changes", []string{"X-API-Key: broken"}, 500, `{"error":{"message":"Internal error"`, ""},
		{"JSON-RPC", "POST", "/", nil, 401, `{"jsonrpc":"2.0","id":null,"error":{"code":-31102,"message":"authentication required`, bare},
		{"JSON-RPC at /a2a/", "POST", "/a2a/", []string{"X-API-Key: wrong"}, 401, `{"jsonrpc":"2.0","id":null,"error":{"code":-31102,"message":"the credential is not valid"`, token},
		{"the hub", "GET", "/agents", nil, 401, `{"error":{"code":"UNAUTHENTICATED","message":"authentication required","details":{"hint":`, bare},
		{"the REST protocol", "GET", "/rest", nil, 401, `{"error":{"code":"AUTHENTICATION_ERROR","message":"authentication required","details":{"reason":"UNAUTHENTICATED","hint":`, bare},
		{"A2A over HTTP+JSON", "GET", "/a2a/http/tasks", nil, 401, `{"code":-31102,"message":"authentication required","error":{"code":401,"status":"UNAUTHENTICATED","message":"authentication required","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"koine","metadata":{"hint":"Send an API key or a token as Authorization: Bearer …, or a key as X-API-Key."}},` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}` + "\n", bare},
		{"as a suspended agent", "POST", "/a2a/http/message:send", []string{"X-API-Key: suspended"}, 403, `{"code":-31102,"message":"the agent is suspended","error":{"code":403,"status":"PERMISSION_DENIED","message":"the agent is suspended","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"PERMISSION_DENIED","domain":"koine"},{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHORIZED","domain":"a2a-protocol.org"}]}}`, ""},
		{"GraphQL", "POST", "/graphql", nil, 401, `{"errors":[{"message":"authentication required","extensions":{"code":"UNAUTHENTICATED"`, bare},
		{"the page of a browser", "GET", "/", nil, 200, "koine: one knowledge graph", ""},
		{"health", "GET", "/healthz", nil, 200, `{"status":"ok"}`, ""},
		{"readiness", "GET", "/readyz", []string{"X-API-Key: wrong"}, 200, `{"status":"ready"}`, ""},
		{"what is public", "GET", "/schema", []string{"X-API-Key: wrong"}, 200, "agent://anonymous agent://anonymous none", ""},
		{"nothing there", "GET", "/nothing", nil, 404, `{"error":`, ""},
		{"another method of what is public", "POST", "/schema", nil, 404, `{"error":`, ""},
		{"metrics", "GET", "/metrics", nil, 401, none, bare},
		{"metrics, as anybody", "GET", "/metrics", []string{"X-API-Key: dora"}, 403, `{"error":{"message":"the path requires the role of an administrator"`, ""},
		{"metrics, as who may", "GET", "/metrics", []string{"X-API-Key: probe"}, 200, "#", ""},
		{"metrics, as an administrator", "GET", "/metrics", []string{"X-API-Key: root"}, 200, "#", ""},
		{"what is for administrators", "POST", "/check", []string{"X-API-Key: probe"}, 403, `{"error":{"message":"the path requires the role of an administrator"`, ""},
		{"the same, as one", "POST", "/check", []string{"X-API-Key: root"}, 200, "agent://root", ""},
	} {
		resp, body := do(t, r, row.method, row.path, "", row.headers...)
		if resp.StatusCode != row.status || !strings.HasPrefix(body, row.want) || resp.Header.Get("WWW-Authenticate") != row.challenge {
			t.Errorf("%s: got %d %q %s, want %d %q %s", row.name, resp.StatusCode, resp.Header.Get("WWW-Authenticate"), body, row.status, row.challenge, row.want)
		}
	}
}

// A page of another site is refused with any credential.
func TestForeignOriginWithCredential(t *testing.T) {
	r := run(t, knowing(&gate{}))
	if resp, body := do(t, r, "POST", "/", "", "X-API-Key: dora", "Origin: http://evil.example"); resp.StatusCode != 403 {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

// A request ends with its credential, with the reason.
func TestRequestEndsWithItsCredential(t *testing.T) {
	d := &gate{}
	s := knowing(d)
	began, cause := make(chan struct{}), make(chan error, 1)
	s.Handle("GET /long", httpd.Plain, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		cause <- context.Cause(r.Context())
	}))
	r := run(t, s)
	go func() {
		receive(t, began, "request")
		d.throwOut("dora")
	}()
	do(t, r, "GET", "/long", "", "X-API-Key: dora")
	if err := receive(t, cause, "end"); kg.CodeOf(err) != kg.CodeUnauthenticated || err.Error() != "the key was revoked" {
		t.Errorf("ended with %v", err)
	}
	if d.released != 1 {
		t.Errorf("released %d times", d.released)
	}
}

// A socket may be opened without a credential; its first message has it.
func TestConnect(t *testing.T) {
	d := &gate{}
	s := knowing(d)
	r := run(t, s)
	if resp, body := do(t, r, "GET", "/graphql", "", "Upgrade: websocket"); resp.StatusCode != 200 || body != "agent://anonymous agent://anonymous none" {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	if resp, _ := do(t, r, "GET", "/changes", "", "Upgrade: websocket"); resp.StatusCode != 401 {
		t.Errorf("a socket elsewhere: got %d", resp.StatusCode)
	}
	if resp, _ := do(t, r, "GET", "/graphql", "", "Upgrade: websocket", "X-API-Key: wrong"); resp.StatusCode != 401 {
		t.Errorf("with a wrong key: got %d", resp.StatusCode)
	}
	nobody := caller.Caller{Principal: kg.Principal{ID: kg.Anonymous, Method: httpd.MethodNone}}
	dora := caller.Caller{Principal: kg.Principal{ID: "agent://dora", ActFor: []kg.AgentID{"agent://chen"}, Method: "key"}}
	for _, row := range []struct {
		name    string
		opened  caller.Caller
		payload string
		want    string // principal and acting, or the code
	}{
		{"authorization", nobody, `{"authorization":"Bearer dora"}`, "agent://dora agent://dora"},
		{"Authorization", nobody, `{"Authorization":"Bearer dora"}`, "agent://dora agent://dora"},
		{"X-API-Key", nobody, `{"x-api-key":"dora"}`, "agent://dora agent://dora"},
		{"headers", nobody, `{"headers":{"Authorization":"Bearer dora","X-Agent-ID":"chen"}}`, "agent://dora agent://chen"},
		{"for another", nobody, `{"authorization":"Bearer dora","x-agent-id":"smith"}`, "SOURCE_FORBIDDEN"},
		{"another than who opened it", dora, `{"authorization":"Bearer root"}`, "agent://root agent://root"},
		{"who opened it", dora, ``, "agent://dora agent://dora"},
		{"who opened it, for another", dora, `{"X-Agent-ID":"chen"}`, "agent://dora agent://chen"},
		{"nothing", nobody, ``, "UNAUTHENTICATED"},
		{"no object", nobody, `"Bearer dora"`, "UNAUTHENTICATED"},
		{"no text", nobody, `{"authorization":{"Bearer":"dora"}}`, "UNAUTHENTICATED"},
		{"wrong", nobody, `{"authorization":"Bearer wrong"}`, "UNAUTHENTICATED"},
		{"wrong, of who was let in", dora, `{"authorization":"Bearer wrong"}`, "UNAUTHENTICATED"},
		{"two", nobody, `{"authorization":"Bearer dora","x-api-key":"dora"}`, "UNAUTHENTICATED"},
		{"suspended", nobody, `{"authorization":"Bearer suspended"}`, "PERMISSION_DENIED"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		got, err := s.Connect(ctx, cancel, row.opened, json.RawMessage(row.payload))
		text := fmt.Sprint(got.Principal.ID, " ", got.Acting())
		if err != nil {
			text = string(kg.CodeOf(err))
		}
		if text != row.want {
			t.Errorf("%s: got %s (%v), want %s", row.name, text, err, row.want)
		}
		cancel(nil)
	}
	open := newServer(httpd.Options{})
	if got, err := open.Connect(t.Context(), nil, dora, json.RawMessage(`{"authorization":"Bearer wrong"}`)); err != nil || !slices.Equal(got.Principal.ActFor, dora.Principal.ActFor) {
		t.Errorf("open mode: got %+v, %v", got, err)
	}
}
