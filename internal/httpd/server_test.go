package httpd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/httpd"
)

func TestPaths(t *testing.T) {
	s := newServer(httpd.Options{Store: store{err: errors.New("READ_ONLY: the disk is gone")}})
	s.HandleRPC(whoami)
	r := run(t, s)
	for _, row := range []struct {
		method, path string
		header       []string
		status       int
		location     string
		want         string
	}{
		{"POST", "/", nil, 200, "", "/ agent://anonymous open"},
		{"POST", "/a2a", nil, 200, "", "/a2a agent://anonymous open"},
		{"POST", "/a2a/", nil, 200, "", "/a2a/ agent://anonymous open"},
		{"POST", "/a2a/x", nil, 404, "", "the path does not exist"},
		{"GET", "/", []string{"Accept: text/html,*/*"}, 302, "playground", ""},
		{"GET", "/", nil, 200, "", "koine: one knowledge graph"},
		{"GET", "/healthz", nil, 200, "", `{"status":"ok"}`},
		{"GET", "/readyz", nil, 503, "", `{"status":"not ready","reason":"READ_ONLY: the disk is gone"}`},
		{"GET", "/nothing", nil, 404, "", `{"error":{"message":"the path does not exist","data":{"reason":"NOT_FOUND","domain":"koine",` +
			`"hint":"The agent card is at /.well-known/agent-card.json."}}}`},
	} {
		resp, body := do(t, r, row.method, row.path, "", row.header...)
		if resp.StatusCode != row.status || resp.Header.Get("Location") != row.location || !strings.Contains(body, row.want) {
			t.Errorf("%s %s: got %d %s", row.method, row.path, resp.StatusCode, body)
		}
	}
}

func TestRequestID(t *testing.T) {
	s := newServer(httpd.Options{})
	s.HandleRPC(whoami)
	r := run(t, s)
	id := func(headers ...string) string {
		resp, _ := do(t, r, "POST", "/", "", headers...)
		return resp.Header.Get("X-Request-ID")
	}
	if got := id("X-Request-ID: abc-1.2_X"); got != "abc-1.2_X" {
		t.Errorf("got %q, want the client's own", got)
	}
	long := strings.Repeat("x", 64)
	if got := id("X-Request-ID: " + long); got != long {
		t.Errorf("got %q, want the client's own of 64 bytes", got)
	}
	seen := map[string]bool{}
	for _, theirs := range []string{"", long + "x", "a b", "a\"b", "é"} {
		got := id("X-Request-ID: " + theirs)
		if got == "" || got == theirs || seen[got] {
			t.Errorf("for %q: got %q, want one made up for it", theirs, got)
		}
		seen[got] = true
	}
}

// A request above the limit is refused in its protocol's format; a stream does not
// count any more.
func TestMaxRequests(t *testing.T) {
	s := newServer(httpd.Options{MaxRequests: 1})
	entered, release := make(chan struct{}), make(chan struct{})
	s.HandleRPC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a2a" {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
		}
		entered <- struct{}{}
		<-release
	}))
	r := run(t, s)
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, path := range []string{"/a2a", "/"} { // the stream does not count, the other takes the place
		wg.Go(func() {
			resp, err := http.Post("http://"+r.addr+path, "", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
		receive(t, entered, "request to "+path)
	}
	resp, body := do(t, r, "POST", "/", "")
	want := `{"jsonrpc":"2.0","id":null,"error":{"code":-31105,"message":"too many requests are in progress",` +
		`"data":{"reason":"OVERLOADED","domain":"koine","hint":"Try again later.","retryAfterMs":1000}}}` + "\n"
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || body != want {
		t.Errorf("got %d %q %s", resp.StatusCode, resp.Header.Get("Retry-After"), body)
	}
	close(release)
}

// Readiness, then streams, then requests: each step only after the one before.
func TestShutdownOrder(t *testing.T) {
	st := &streams{}
	s := newServer(httpd.Options{Streams: st})
	entered, release := make(chan struct{}), make(chan struct{})
	s.HandleRPC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		io.WriteString(w, "finished")
	}))
	r := run(t, s)
	answered := make(chan string, 1)
	go func() {
		_, body := do(t, r, "POST", "/", "")
		answered <- body
	}()
	receive(t, entered, "request")
	readyAtShutdown := make(chan string, 1)
	st.shutdown = func() {
		_, body := do(t, r, "GET", "/readyz", "")
		readyAtShutdown <- body
		close(release) // the request under way ends only now
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if got, want := receive(t, readyAtShutdown, "readiness"), `{"status":"not ready","reason":"the server is shutting down"}`+"\n"; got != want {
		t.Errorf("while streams end: got %s, want %s", got, want)
	}
	if got := receive(t, answered, "answer"); got != "finished" {
		t.Errorf("the request under way got %q", got)
	}
}

func TestShutdownDoesNotWaitForEver(t *testing.T) {
	s := newServer(httpd.Options{ShutdownTimeout: 50 * time.Millisecond})
	entered := make(chan struct{})
	s.HandleRPC(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done() // cut off: its connection is closed
	}))
	listener, err := httpd.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	conn := dial(t, running{addr: listener.Addr().String()}, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
	receive(t, entered, "request")
	cancel()
	if err := receive(t, ended, "end"); err == nil {
		t.Error("a shutdown that cut a request off says nothing")
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}

func TestPanics(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	s := newServer(httpd.Options{Logger: slog.New(slog.NewTextHandler(&lockedWriter{mu: &mu, w: &log}, nil))})
	s.HandleRPC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a2a" {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
		}
		panic("the secret")
	}))
	r := run(t, s)
	resp, body := do(t, r, "POST", "/", "")
	want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error",` +
		`"data":{"reason":"INTERNAL","domain":"koine","hint":"The server's log has the details under the request id."}}}` + "\n"
	if resp.StatusCode != 500 || body != want {
		t.Errorf("got %d %s, want %s", resp.StatusCode, body, want)
	}
	conn := dial(t, r, "POST /a2a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
	raw, err := io.ReadAll(conn)
	if err != nil || strings.HasSuffix(string(raw), "0\r\n\r\n") {
		t.Errorf("an answer that broke off looks complete: %q, %v", raw, err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "the secret"); n != 2 {
		t.Errorf("logged %d times, want once a panic:\n%s", n, &log)
	}
}

// A client that stalls within its body is refused before its request reaches the
// handler or, for an upload, by the failing read.
func TestStalledBody(t *testing.T) {
	s := newServer(httpd.Options{StallTimeout: 50 * time.Millisecond})
	read := make(chan error, 1)
	reading := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})
	s.HandleRPC(reading)
	s.HandleUpload("/data", httpd.Plain, reading)
	r := run(t, s)
	conn := dial(t, r, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), `"reason":"TIMEOUT"`) {
		t.Errorf("got %s, %v", answer, err)
	}
	dial(t, r, "POST /data HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
	if err := receive(t, read, "end of the body"); err == nil {
		t.Error("half a body was taken for a whole one")
	}
}

// A client that does not read its answer is disconnected; one that reads slowly but
// steadily is not, though the total exceeds the timeout.
func TestStalledAnswer(t *testing.T) {
	s := newServer(httpd.Options{StallTimeout: 100 * time.Millisecond})
	wrote := make(chan error, 1)
	piece := make([]byte, 64<<10)
	s.HandleRPC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		for i := 0; err == nil && i < 2000; i++ {
			_, err = w.Write(piece)
		}
		wrote <- err
	}))
	r := run(t, s)
	dial(t, r, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
	if err := receive(t, wrote, "write error"); err == nil {
		t.Error("a client that reads nothing took 128 MB")
	}
}

// The stall timeout is for one step, not for the whole.
func TestSlowButSteady(t *testing.T) {
	const stall = 200 * time.Millisecond
	s := newServer(httpd.Options{StallTimeout: stall})
	s.HandleRPC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("after %d bytes: %v", len(got), err)
		}
		w.Write(got)
	}))
	r := run(t, s)
	body, feed := io.Pipe()
	go func() {
		tick := time.NewTicker(stall / 4)
		defer tick.Stop()
		for range 8 { // twice the timeout in all
			<-tick.C
			feed.Write([]byte("x"))
		}
		feed.Close()
	}()
	resp, err := http.Post("http://"+r.addr, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "xxxxxxxx" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestHeaderBound(t *testing.T) {
	s := newServer(httpd.Options{MaxHeaderBytes: 8 << 10})
	s.HandleRPC(whoami)
	r := run(t, s)
	if resp, _ := do(t, r, "POST", "/", "", "X-Long: "+strings.Repeat("x", 4<<10)); resp.StatusCode != 200 {
		t.Errorf("within the bound: got %d", resp.StatusCode)
	}
	if resp, _ := do(t, r, "POST", "/", "", "X-Long: "+strings.Repeat("x", 16<<10)); resp.StatusCode != 431 {
		t.Errorf("past the bound: got %d, want 431", resp.StatusCode)
	}
}

func TestMetrics(t *testing.T) {
	s := newServer(httpd.Options{})
	s.HandleRPC(whoami)
	r := run(t, s)
	do(t, r, "POST", "/", "")
	do(t, r, "POST", "/a2a", "")
	do(t, r, "MADEUP", "/a2a", "")
	do(t, r, "GET", "/made/up", "")
	s.Call("knowledge/query", 0, time.Millisecond)
	s.Call("knowledge/query", -32010, time.Millisecond)
	_, body := do(t, r, "GET", "/metrics", "")
	for _, want := range []string{
		`koine_http_requests_total{method="POST",route="/",status="200"} 1`,
		`koine_http_requests_total{method="POST",route="/a2a",status="200"} 1`,
		`koine_http_requests_total{method="other",route="/a2a",status="200"} 1`,
		`koine_http_requests_total{method="GET",route="none",status="404"} 1`,
		`koine_http_request_duration_seconds_count{route="/a2a"} 2`,
		`koine_rpc_calls_total{code="-32010",method="knowledge/query"} 1`,
		`koine_rpc_call_duration_seconds_count{method="knowledge/query"} 2`,
		`koine_http_requests_under_way 1`, // this one
		`koine_streams 5`,
		`koine_store_revision 7`,
		`koine_store_log_bytes 1234`,
		`koine_store_queue_length 3`,
		`koine_store_watchers 2`,
		`go_goroutines`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

// One line for each request: at debug level, or as a warning if the server failed.
func TestAccessLog(t *testing.T) {
	for _, row := range []struct {
		path  string
		level slog.Level
		want  string
	}{
		{"/ok", slog.LevelDebug, `level=DEBUG msg=request request=abc agent=agent://ada method=POST path=/ok status=200 bytes=2 took=`},
		{"/ok", slog.LevelInfo, ""},
		{"/broken", slog.LevelInfo, `level=WARN msg=request request=abc agent=agent://ada method=POST path=/broken status=500 bytes=0 took=`},
	} {
		var log bytes.Buffer
		var mu sync.Mutex
		s := newServer(httpd.Options{Logger: slog.New(slog.NewTextHandler(&lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: row.level}))})
		s.Handle("/ok", httpd.Plain, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
		s.Handle("/broken", httpd.Plain, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
		r := run(t, s)
		do(t, r, "POST", row.path, "", "X-Request-ID: abc", "X-Agent-ID: ada")
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(strings.TrimSuffix(log.String(), "\n"), " ") // without the time
		if got, _, _ = strings.Cut(got, "took="); got+"took=" != row.want && got != row.want {
			t.Errorf("%s at %s: got %q, want %q", row.path, row.level, log.String(), row.want)
		}
	}
}

// Refusals because of too many streams, or of readiness, do not fill the log: there is
// one warning for many.
func TestUnavailableInTheLog(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	s := newServer(httpd.Options{Logger: slog.New(slog.NewTextHandler(&lockedWriter{&mu, &log}, nil))})
	s.Handle("/full", httpd.Plain, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	r := run(t, s)
	for range 50 {
		do(t, r, "POST", "/full", "")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "status=503"); got != 1 {
		t.Errorf("%d lines of 50 refusals:\n%s", got, log.String())
	}
}

// lockedWriter lets the server's goroutines and the test share a buffer.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
