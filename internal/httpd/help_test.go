package httpd_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/httpd"
	"koine/kg"
)

// patience is the time limit of a test.
const patience = time.Minute

// store stands for the part of the store that the server uses.
type store struct {
	err   error
	stats kg.Stats
}

func (s store) Ready() error { return s.err }
func (s store) Stats() kg.Stats {
	if s.stats.Revision != 0 {
		return s.stats
	}
	return kg.Stats{Revision: 7, LogBytes: 1234, QueueLength: 3, Watchers: 2}
}

// streams records that it was shut down.
type streams struct {
	shut     atomic.Bool
	shutdown func()
}

func (s *streams) Streams() int { return 5 }
func (s *streams) Shutdown(context.Context) error {
	s.shut.Store(true)
	if s.shutdown != nil {
		s.shutdown()
	}
	return nil
}

func newServer(options httpd.Options) *httpd.Server {
	if options.Store == nil {
		options.Store = store{}
	}
	if options.Streams == nil {
		options.Streams = &streams{}
	}
	return httpd.New(options)
}

// running is a server that serves until stop, which waits for its end.
type running struct {
	addr string
	stop func() error
}

func run(t *testing.T, s *httpd.Server) running {
	t.Helper()
	listener, err := httpd.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	var result error
	stopped := false
	stop := func() error {
		if !stopped {
			stopped = true
			cancel()
			result = receive(t, ended, "end of the server")
		}
		return result
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return running{listener.Addr().String(), stop}
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// do sends a request with these headers ("Name: value"); Host is one of them.
func do(t *testing.T, r running, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	resp, err := noRedirects.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

var noRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// dial opens a connection and sends text.
func dial(t *testing.T, r running, text string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.After(patience); !holds(); {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("it did not come about that %s", what)
		}
	}
}
