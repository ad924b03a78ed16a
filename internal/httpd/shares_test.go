package httpd_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/httpd"
	"koine/internal/throttle"
	"koine/kg"
)

// waiting is a handler that waits until it is released, or echoes a body.
func waiting(release <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if string(text) == "wait" {
			<-release
		}
		fmt.Fprintf(w, "%d", len(text))
	})
}

// metric returns the value of a metric in /metrics.
func metric(t *testing.T, r running, name string) string {
	t.Helper()
	_, text := do(t, r, "GET", "/metrics", "")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s", name)
	return ""
}

// One caller gets half of the places for requests in progress, another half of the
// rest; probes and scrapes need none. A single caller, and one without a name, have the
// same limit on loopback and in open mode.
func TestShareOfRequestsUnderWay(t *testing.T) {
	for _, greedy := range []string{"X-Agent-ID: greedy", "X-Other: anonymous"} {
		release := make(chan struct{})
		s := newServer(httpd.Options{MaxRequests: 4})
		s.HandleRPC(waiting(release))
		r := run(t, s)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { do(t, r, "POST", "/", "wait", greedy) })
		}
		eventually(t, "two requests are under way", func() bool { return metric(t, r, "koine_http_requests_under_way") == "3" })
		if resp, body := do(t, r, "POST", "/", "", greedy); resp.StatusCode != 429 || !strings.Contains(body, `"OVERLOADED"`) {
			t.Errorf("%s, past its share: got %d %s", greedy, resp.StatusCode, body)
		}
		all.Go(func() { do(t, r, "POST", "/", "wait", "X-Agent-ID: second") })
		eventually(t, "three requests are under way", func() bool { return metric(t, r, "koine_http_requests_under_way") == "4" })
		if resp, _ := do(t, r, "POST", "/", "", "X-Agent-ID: second"); resp.StatusCode != 429 {
			t.Errorf("the second past its share: got %d", resp.StatusCode)
		}
		if resp, body := do(t, r, "POST", "/", "", "X-Agent-ID: third"); resp.StatusCode != 200 {
			t.Errorf("the third: got %d %s", resp.StatusCode, body)
		}
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			if resp, body := do(t, r, "GET", path, "", greedy); resp.StatusCode != 200 {
				t.Errorf("%s: got %d %s", path, resp.StatusCode, body)
			}
		}
		close(release)
		all.Wait()
	}
}

// A slow body takes no place among the requests in progress, and is refused if it is
// too slow overall, however steadily it arrives.
func TestTricklingBodies(t *testing.T) {
	s := newServer(httpd.Options{MaxRequests: 1, Intake: throttle.Intake{Grace: 300 * time.Millisecond, BytesPerSecond: 1000}})
	s.HandleRPC(waiting(nil))
	r := run(t, s)
	const slow = 8
	ended := make(chan string, slow)
	for range slow {
		conn := dial(t, r, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
		go func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			go func() {
				for range tick.C {
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
				}
			}()
			answer, _ := io.ReadAll(conn) // the connection may be reset behind the answer
			ended <- string(answer)
		}()
	}
	for range 5 {
		if resp, body := do(t, r, "POST", "/", "hello"); resp.StatusCode != 200 || body != "5" {
			t.Errorf("beside them: got %d %s", resp.StatusCode, body)
		}
	}
	for range slow {
		if answer := receive(t, ended, "end of a body that trickles in"); answer != "" && !strings.Contains(answer, " 408 ") {
			t.Errorf("got %s", answer)
		}
	}
}

// Received bytes of unanswered requests have a budget, of which one caller may use
// half; an answer releases them.
func TestBytesReceived(t *testing.T) {
	const budget = 64 << 10
	release := make(chan struct{})
	s := newServer(httpd.Options{Intake: throttle.Intake{Pool: throttle.NewPool(budget)}})
	s.HandleRPC(waiting(release))
	r := run(t, s)
	half := dial(t, r, fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: a\r\nContent-Length: %d\r\n\r\n%s", 20<<10, strings.Repeat("x", 16<<10)))
	eventually(t, "half a body is accounted for", func() bool {
		received, err := strconv.Atoi(metric(t, r, "koine_http_bytes_received"))
		return err == nil && received >= 16<<10
	})
	for body, want := range map[string]int{strings.Repeat("x", 8<<10): 200, strings.Repeat("x", 24<<10): 429} {
		if resp, answer := do(t, r, "POST", "/", body, "X-Agent-ID: a"); resp.StatusCode != want || want == 429 && (resp.Header.Get("Retry-After") == "" || !strings.Contains(answer, "OVERLOADED")) {
			t.Errorf("%d more bytes of the same caller: got %d %s, want %d", len(body), resp.StatusCode, answer, want)
		}
	}
	if resp, answer := do(t, r, "POST", "/", strings.Repeat("x", 16<<10), "X-Agent-ID: b"); resp.StatusCode != 200 {
		t.Errorf("another caller: got %d %s", resp.StatusCode, answer)
	}
	io.WriteString(half, strings.Repeat("x", 4<<10))
	if answer, err := io.ReadAll(io.LimitReader(half, 12)); err != nil || string(answer) != "HTTP/1.1 200" {
		t.Errorf("the whole of it: got %s, %v", answer, err)
	}
	eventually(t, "all is given back", func() bool { return metric(t, r, "koine_http_bytes_received") == "0" })
	close(release)
}

// A body at the largest limit of a handler arrives whole, and so does one more byte, by
// which a handler detects the excess.
func TestBufferedBody(t *testing.T) {
	s := newServer(httpd.Options{})
	s.HandleRPC(waiting(nil))
	r := run(t, s)
	for _, size := range []int{0, 1, httpd.MaxBufferedBytes - 1, httpd.MaxBufferedBytes, httpd.MaxBufferedBytes + 1, httpd.MaxBufferedBytes + 100_000} {
		if _, body := do(t, r, "POST", "/", strings.Repeat("x", size)); body != fmt.Sprint(size) {
			t.Errorf("of %d bytes %s arrived", size, body)
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+r.addr, io.MultiReader(bytes.NewReader(make([]byte, size)))) // chunked
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || string(body) != fmt.Sprint(size) {
			t.Errorf("of %d chunked bytes %s arrived, %v", size, body, err)
		}
	}
}

// dialFrom opens a connection from an address.
func dialFrom(t *testing.T, r running, from string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// ask sends a request over an open connection and returns the status line.
func ask(t *testing.T, conn net.Conn, request string) string {
	t.Helper()
	io.WriteString(conn, request)
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, status); err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(string(status), "HTTP/1.1 ")
}

const getHealth = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

// post is a request with a body that never arrives.
func post(agent string) string {
	return "POST / HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: " + agent + "\r\nContent-Length: 100\r\n\r\nx"
}

// An address has half of the connections that the others leave. Above that it is served
// probes and refused everything else, other addresses are served, and a connection of
// an authenticated caller counts for that caller.
func TestShareOfConnections(t *testing.T) {
	s := newServer(httpd.Options{MaxConnections: 16})
	s.HandleRPC(waiting(nil))
	r := run(t, s)
	open := func(n int, from, agent string) {
		for range n {
			conn := dialFrom(t, r, from)
			io.WriteString(conn, post(agent))
		}
	}
	const request = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	open(8, "127.0.0.1", "anonymous") // half of them, busy
	eventually(t, "a connection past the share is refused", func() bool { return ask(t, dialFrom(t, r, "127.0.0.1"), request) == "429" })
	if got := ask(t, dialFrom(t, r, "127.0.0.1"), getHealth); got != "200" {
		t.Errorf("a probe past the share: got %s", got)
	}
	if got := ask(t, dialFrom(t, r, "127.0.0.2"), request); got != "200" {
		t.Errorf("another address: got %s", got)
	}
}

// The connections of a trusted proxy have no share, because they belong to many
// clients; the same number of another address has one.
func TestConnectionsOfATrustedProxy(t *testing.T) {
	const request = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	for _, row := range []struct {
		proxies []netip.Prefix
		want    string
	}{
		{[]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, "200"},
		{[]netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, "429"},
	} {
		s := newServer(httpd.Options{MaxConnections: 16, TrustedProxies: row.proxies})
		s.HandleRPC(waiting(nil))
		r := run(t, s)
		for i := range 12 {
			conn := dialFrom(t, r, "127.0.0.1")
			io.WriteString(conn, strings.Replace(post("anonymous"), "Content-Length", fmt.Sprintf("X-Forwarded-For: 10.0.0.%d\r\nContent-Length", i+1), 1))
		}
		if row.want == "429" {
			eventually(t, "a connection past the share is refused", func() bool { return ask(t, dialFrom(t, r, "127.0.0.1"), request) == row.want })
			continue
		}
		eventually(t, "all connections are there", func() bool {
			n, err := strconv.Atoi(metric(t, r, "koine_http_connections"))
			return err == nil && n >= 12
		})
		if got := ask(t, dialFrom(t, r, "127.0.0.1"), strings.Replace(request, "Content-Length", "X-Forwarded-For: 10.0.0.99\r\nContent-Length", 1)); got != row.want {
			t.Errorf("with %v: got %s, want %s", row.proxies, got, row.want)
		}
	}
}

// The connections of an authenticated caller do not count for its address.
func TestConnectionsOfAPrincipal(t *testing.T) {
	s := newServer(httpd.Options{MaxConnections: 16})
	s.HandleRPC(waiting(nil))
	r := run(t, s)
	for i := range 8 {
		conn := dialFrom(t, r, "127.0.0.1")
		io.WriteString(conn, post("greedy"))
		eventually(t, "the connection is busy", func() bool { return metric(t, r, "koine_http_connections") >= fmt.Sprint(i%10) })
	}
	refused := 0
	for range 3 {
		if ask(t, dialFrom(t, r, "127.0.0.1"), strings.ReplaceAll(post("greedy"), "100\r\n\r\nx", "0\r\n\r\n")) == "429" {
			refused++
		}
	}
	if refused != 3 {
		t.Errorf("past its share the caller was refused %d of 3 times", refused)
	}
	if got := ask(t, dialFrom(t, r, "127.0.0.1"), strings.ReplaceAll(post("modest"), "100\r\n\r\nx", "0\r\n\r\n")); got != "200" {
		t.Errorf("another caller at the same address: got %s", got)
	}
}

// Idle connections make room for new ones, those of the same address first.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	s := newServer(httpd.Options{MaxConnections: 8})
	s.HandleRPC(whoami)
	r := run(t, s)
	const request = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Agent-ID: a\r\nContent-Length: 0\r\n\r\n"
	other := dialFrom(t, r, "127.0.0.2")
	if got := ask(t, other, strings.Replace(request, ": a", ": other", 1)); got != "200" {
		t.Fatalf("got %s", got)
	}
	for i := range 40 {
		if got := ask(t, dialFrom(t, r, "127.0.0.1"), request); got != "200" {
			t.Errorf("connection %d: got %s", i+1, got)
		}
	}
	io.Copy(io.Discard, io.LimitReader(other, 0))
	if resp, body := do(t, r, "GET", "/healthz", ""); resp.StatusCode != 200 {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

// Every answer, refusals included, has the security headers.
func TestSecurityHeaders(t *testing.T) {
	s := newServer(httpd.Options{Admit: func(context.Context, string, func(error)) (kg.Principal, func(), error) {
		return kg.Principal{}, nil, kg.Errorf(kg.CodeUnauthenticated, "no")
	}})
	s.HandleRPC(whoami)
	s.Handle("/data", httpd.Plain, whoami)
	s.HandlePublic("/graphql/schema", httpd.GraphQL, whoami)
	r := run(t, s)
	for _, path := range []string{"/", "/a2a", "/data", "/graphql/schema", "/healthz", "/readyz", "/metrics", "/no/such/path"} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			resp, _ := do(t, r, method, path, "")
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s %s (%d): %s is %q", method, path, resp.StatusCode, name, got)
				}
			}
		}
	}
}
