package httpd_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/httpd"
	"koine/internal/throttle"
	"koine/kg"
)

// still is a clock that stands, so that buckets do not refill.
func still() time.Time { return time.Unix(1_700_000_000, 0) }

// A principal above its share is refused in the format of the path's protocol with a
// retry delay; another one is not.
func TestRequestsOfAPrincipal(t *testing.T) {
	const share = 3
	for _, row := range []struct{ path, body string }{
		{"/", `{"jsonrpc":"2.0","id":null,"error":{"code":-31105,"message":"too many requests of this principal","data":{"reason":"RATE_LIMITED","domain":"koine","hint":"Wait for retryAfterMs.","retryAfterMs":1000}}}`},
		{"/graphql", `{"errors":[{"message":"too many requests of this principal","extensions":{"code":"RATE_LIMITED","hint":"Wait for retryAfterMs.","retryAfterMs":1000}}]}`},
		{"/a2a/http/tasks", `{"code":-31105,"message":"too many requests of this principal","error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"too many requests of this principal","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMITED","domain":"koine","metadata":{"hint":"Wait for retryAfterMs.","retryAfterMs":"1000"}}]}}`},
		{"/data", `{"error":{"message":"too many requests of this principal","data":{"reason":"RATE_LIMITED","domain":"koine","hint":"Wait for retryAfterMs.","retryAfterMs":1000}}}`},
	} {
		s := newServer(httpd.Options{Throttle: throttle.New(throttle.Options{
			Principal: throttle.Limits{Requests: share}, Burst: time.Second, Clock: still,
		})})
		s.HandleRPC(whoami)
		s.Handle("/graphql", httpd.GraphQL, whoami)
		s.Handle("/data", httpd.Plain, whoami)
		s.Handle("/a2a/http/", httpd.A2AHTTP, whoami)
		r := run(t, s)
		for range share {
			if resp, body := do(t, r, "POST", row.path, "", "X-Agent-ID: a"); resp.StatusCode != 200 {
				t.Fatalf("%s: refused within the share: %s", row.path, body)
			}
		}
		resp, body := do(t, r, "POST", row.path, "", "X-Agent-ID: agent://a")
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || body != row.body+"\n" {
			t.Errorf("%s: got %d, Retry-After %q, %s", row.path, resp.StatusCode, resp.Header.Get("Retry-After"), body)
		}
		if resp, body := do(t, r, "POST", row.path, "", "X-Agent-ID: b"); resp.StatusCode != 200 {
			t.Errorf("%s: another principal: got %d %s", row.path, resp.StatusCode, body)
		}
		for _, probe := range []string{"/healthz", "/readyz"} {
			if resp, body := do(t, r, "GET", probe, "", "X-Agent-ID: a"); resp.StatusCode != 200 {
				t.Errorf("%s: got %d %s", probe, resp.StatusCode, body)
			}
		}
	}
}

// Behind a trusted proxy each client address has its own limit, whatever agent it names.
func TestRequestsOfAnAddress(t *testing.T) {
	s := newServer(httpd.Options{
		Throttle:       throttle.New(throttle.Options{Address: throttle.Limits{Requests: 2}, Burst: time.Second, Clock: still}),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	s.HandleRPC(whoami)
	r := run(t, s)
	for i, want := range []int{200, 200, 429} {
		resp, body := do(t, r, "POST", "/", "", "X-Forwarded-For: 2001:db8::"+fmt.Sprint(i), fmt.Sprintf("X-Agent-ID: a%d", i))
		if resp.StatusCode != want {
			t.Errorf("request %d: got %d %s, want %d", i+1, resp.StatusCode, body, want)
		}
	}
	if resp, body := do(t, r, "POST", "/", "", "X-Forwarded-For: 2001:db8:0:1::1"); resp.StatusCode != 200 {
		t.Errorf("another address: got %d %s", resp.StatusCode, body)
	}
}

func TestWhereARequestComesFrom(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
	long := strings.Repeat("10.0.0.9, ", httpd.MaxForwarded-1)
	for _, row := range []struct {
		name    string
		proxies []netip.Prefix
		headers []string
		want    string
	}{
		{"without a proxy", nil, nil, "127.0.0.1"},
		{"a proxy that nobody trusts", nil, []string{"X-Forwarded-For: 192.0.2.1"}, "127.0.0.1"},
		{"a proxy of another address", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, []string{"X-Forwarded-For: 192.0.2.1"}, "127.0.0.1"},
		{"one client", proxies, []string{"X-Forwarded-For: 192.0.2.1"}, "192.0.2.1"},
		{"a client that lies", proxies, []string{"X-Forwarded-For: 198.51.100.7, 192.0.2.1"}, "192.0.2.1"},
		{"two proxies", proxies, []string{"X-Forwarded-For: 192.0.2.1, 10.1.2.3"}, "192.0.2.1"},
		{"two headers", proxies, []string{"X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 10.1.2.3"}, "192.0.2.1"},
		{"with a port", proxies, []string{"X-Forwarded-For: 192.0.2.1:4711"}, "192.0.2.1"},
		{"IPv6", proxies, []string{"X-Forwarded-For: 2001:db8::1"}, "2001:db8::1"},
		{"IPv6 with a port", proxies, []string{"X-Forwarded-For: [2001:db8::1]:4711"}, "2001:db8::1"},
		{"mapped", proxies, []string{"X-Forwarded-For: ::ffff:192.0.2.1"}, "192.0.2.1"},
		{"not an address", proxies, []string{"X-Forwarded-For: 192.0.2.1, unknown"}, "127.0.0.1"},
		{"not an address behind a proxy", proxies, []string{"X-Forwarded-For: 192.0.2.1, unknown, 10.1.2.3"}, "10.1.2.3"},
		{"no header", proxies, nil, "127.0.0.1"},
		{"nothing but proxies", proxies, []string{"X-Forwarded-For: 10.1.2.3"}, "10.1.2.3"},
		{"at the bound", proxies, []string{"X-Forwarded-For: 192.0.2.1, " + strings.TrimSuffix(long, ", ")}, "192.0.2.1"},
		{"past the bound", proxies, []string{"X-Forwarded-For: 192.0.2.1, 10.0.0.9, " + strings.TrimSuffix(long, ", ")}, "10.0.0.9"},
	} {
		s := newServer(httpd.Options{TrustedProxies: row.proxies})
		s.HandleRPC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, caller.From(r.Context()).Address)
		}))
		if _, body := do(t, run(t, s), "POST", "/", "", row.headers...); body != row.want {
			t.Errorf("%s: got %s, want %s", row.name, body, row.want)
		}
	}
}

// An operation on a socket is admitted like a request: from the caller's share, and
// among the requests in progress.
func TestAdmitOperation(t *testing.T) {
	s := newServer(httpd.Options{MaxRequests: 1, Throttle: throttle.New(throttle.Options{
		Principal: throttle.Limits{Requests: 3}, Burst: time.Second, Clock: still,
	})})
	ctx := caller.With(t.Context(), caller.Caller{Principal: kg.Principal{ID: "agent://a"}})
	leave, err := s.AdmitOperation(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AdmitOperation(ctx); kg.CodeOf(err) != kg.CodeOverloaded || kg.AsError(err).RetryAfter <= 0 {
		t.Errorf("past MaxRequests: got %v", err)
	}
	leave()
	if leave, err = s.AdmitOperation(ctx); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := s.AdmitOperation(ctx); kg.CodeOf(err) != kg.CodeRateLimited {
		t.Errorf("past the share: got %v", err)
	}
}
