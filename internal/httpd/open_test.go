package httpd_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/kg"
)

// whoami answers with the caller.
var whoami = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	c := caller.From(r.Context())
	fmt.Fprintf(w, "%s %s %s", r.URL.Path, c.Principal.ID, c.Principal.Method)
})

func TestOpenModeHostAndOrigin(t *testing.T) {
	s := newServer(httpd.Options{})
	s.HandleRPC(whoami)
	r := run(t, s)
	_, port, _ := strings.Cut(r.addr, ":")
	for _, row := range []struct {
		name   string
		header []string
		status int
		reason string
	}{
		{"by its address", nil, 200, ""},
		{"by name", []string{"Host: localhost:" + port}, 200, ""},
		{"by name in capitals", []string{"Host: LOCALHOST"}, 200, ""},
		{"by name with a dot", []string{"Host: localhost."}, 200, ""},
		{"by another loopback address", []string{"Host: 127.1.2.3"}, 200, ""},
		{"by the IPv6 address", []string{"Host: [::1]:" + port}, 200, ""},
		{"by a foreign name", []string{"Host: evil.example"}, 403, "HOST_FORBIDDEN"},
		{"by a name that looks like ours", []string{"Host: localhost.evil.example"}, 403, "HOST_FORBIDDEN"},
		{"by a name that begins like an address", []string{"Host: 127.0.0.1.evil.example"}, 403, "HOST_FORBIDDEN"},
		{"by another address", []string{"Host: 192.0.2.1"}, 403, "HOST_FORBIDDEN"},
		{"by the unspecified address", []string{"Host: 0.0.0.0"}, 403, "HOST_FORBIDDEN"},
		{"from its own page", []string{"Origin: http://" + r.addr}, 200, ""},
		{"from another page", []string{"Origin: http://evil.example"}, 403, "ORIGIN_FORBIDDEN"},
		{"from a page of another port", []string{"Origin: http://127.0.0.1:1"}, 403, "ORIGIN_FORBIDDEN"},
		{"from a page by another name of this machine", []string{"Origin: http://localhost:" + port}, 403, "ORIGIN_FORBIDDEN"},
		{"from nowhere", []string{"Origin: null"}, 403, "ORIGIN_FORBIDDEN"},
		{"from a file", []string{"Origin: file://"}, 403, "ORIGIN_FORBIDDEN"},
		{"from an empty origin", []string{"Origin: "}, 403, "ORIGIN_FORBIDDEN"},
		{"from two origins", []string{"Origin: http://" + r.addr, "Origin: http://evil.example"}, 403, "ORIGIN_FORBIDDEN"},
		{"with the default port", []string{"Host: localhost", "Origin: http://localhost:80"}, 200, ""},
		{"without the default port", []string{"Host: localhost:80", "Origin: http://localhost"}, 200, ""},
	} {
		for _, path := range []string{"/", "/healthz", "/metrics", "/nothing"} {
			resp, body := do(t, r, "POST", path, "", row.header...)
			refused := resp.StatusCode == http.StatusForbidden
			if refused != (row.status == 403) || !strings.Contains(body, row.reason) {
				t.Errorf("%s, %s: got %d %s, want %d %s", row.name, path, resp.StatusCode, body, row.status, row.reason)
			}
		}
	}
}

// A refusal has the format of the path's protocol.
func TestRefusalsByForm(t *testing.T) {
	s := newServer(httpd.Options{})
	s.HandleRPC(whoami)
	s.Handle("/graphql", httpd.GraphQL, whoami)
	s.Handle("GET /changes", httpd.Plain, whoami)
	r := run(t, s)
	hint := `"hint":"Use http://127.0.0.1 or http://localhost; --insecure disables the check."`
	message := `"message":"the server accepts loopback host names and addresses only"`
	rpc := `{"jsonrpc":"2.0","id":null,"error":{"code":-31102,` + message + `,"data":{"reason":"HOST_FORBIDDEN","domain":"koine",` + hint + `}}}` + "\n"
	plain := `{"error":{` + message + `,"data":{"reason":"HOST_FORBIDDEN","domain":"koine",` + hint + `}}}` + "\n"
	for _, row := range []struct{ method, path, want string }{
		{"POST", "/", rpc},
		{"POST", "/a2a", rpc},
		{"POST", "/a2a/", rpc},
		{"POST", "/graphql", `{"errors":[{` + message + `,"extensions":{"code":"HOST_FORBIDDEN",` + hint + `}}]}` + "\n"},
		{"GET", "/changes", plain},
		{"GET", "/nothing", plain},
	} {
		resp, body := do(t, r, row.method, row.path, "", "Host: evil.example")
		if resp.StatusCode != 403 || resp.Header.Get("Content-Type") != "application/json" || body != row.want {
			t.Errorf("%s %s: got %d\n%s\nwant\n%s", row.method, row.path, resp.StatusCode, body, row.want)
		}
	}
}

// With --insecure the server accepts any host name; pages of other sites are still
// refused.
func TestInsecureStillKeepsForeignPagesOut(t *testing.T) {
	s := newServer(httpd.Options{Insecure: true})
	s.HandleRPC(whoami)
	r := run(t, s)
	if resp, body := do(t, r, "POST", "/", "", "Host: koine.lan"); resp.StatusCode != 200 {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	if resp, body := do(t, r, "POST", "/", "", "Host: koine.lan", "Origin: http://evil.example"); resp.StatusCode != 403 {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

func TestAgentID(t *testing.T) {
	s := newServer(httpd.Options{})
	s.HandleRPC(whoami)
	r := run(t, s)
	long := strings.Repeat("x", kg.MaxAgentIDBytes-len("agent://"))
	bad := func(why string) string {
		return `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"X-Agent-ID: ` + why + `","data":{"reason":"INVALID","domain":"koine"}}}` + "\n"
	}
	for _, row := range []struct {
		name   string
		header []string
		status int
		want   string
	}{
		{"none", nil, 200, "/ agent://anonymous open"},
		{"bare", []string{"X-Agent-ID: ada"}, 200, "/ agent://ada open"},
		{"canonical", []string{"X-Agent-ID: agent://ada"}, 200, "/ agent://ada open"},
		{"of another scheme", []string{"X-Agent-ID: did:web:ada"}, 200, "/ did:web:ada open"},
		{"at the bound", []string{"X-Agent-ID: " + long}, 200, "/ agent://" + long + " open"},
		{"past the bound", []string{"X-Agent-ID: " + long + "x"}, 400, bad("an agent id of 1025 bytes is longer than the 1024 that are stored")},
		{"empty", []string{"X-Agent-ID: "}, 400, bad("agent id is empty")},
		{"two", []string{"X-Agent-ID: a", "X-Agent-ID: b"}, 400, bad("the header must occur once")},
		{"with a space", []string{"X-Agent-ID: a b"}, 400, bad(`\"agent://a b\" is not an agent id: use letters, digits and - . _ ~ @ +, or an IRI of a scheme in use`)},
	} {
		if resp, body := do(t, r, "POST", "/", "", row.header...); resp.StatusCode != row.status || body != row.want {
			t.Errorf("%s: got %d %s, want %d %s", row.name, resp.StatusCode, body, row.status, row.want)
		}
	}
}

func TestListen(t *testing.T) {
	for _, row := range []struct {
		addr     string
		insecure bool
		ok       bool
	}{
		{"127.0.0.1:0", false, true},
		{"localhost:0", false, true},
		{"0.0.0.0:0", false, false},
		{":0", false, false},
		{"192.0.2.1:0", false, false},
		{"[::]:0", false, false},
		{"nonsense", false, false},
		{"127.0.0.1:0", true, true},
	} {
		l, err := httpd.Listen(row.addr, row.insecure)
		if (err == nil) != row.ok {
			t.Errorf("%s, insecure %v: got %v, want ok %v", row.addr, row.insecure, err, row.ok)
		}
		if err == nil {
			l.Close()
		}
	}
}
