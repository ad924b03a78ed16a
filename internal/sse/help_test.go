package sse_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"koine/internal/sse"
)

// patience is the time limit of a test.
const patience = time.Minute

// handler answers a request on a server with a stream of events. ended, if not nil, gets
// the result of Serve.
func handler(s *sse.Server, options sse.StreamOptions, ended chan<- error,
	events func(ctx context.Context, r *http.Request) iter.Seq2[sse.Event, error],
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		st, err := s.Open(r.Context(), options)
		if err != nil {
			refuse(w, err)
			return
		}
		defer st.Close()
		serveStream(st, w, r, events(st.Context(), r), func(err error) {
			var refused *sse.Refused
			if errors.As(err, &refused) {
				refuse(w, err)
			}
			if ended != nil {
				ended <- err
			}
		})
	})
}

// serveStream serves the stream, detached if its server is one of TestDetached.
func serveStream(st *sse.Stream, w http.ResponseWriter, r *http.Request, events iter.Seq2[sse.Event, error], ended func(error)) {
	if _, ok := w.(*detachable); !ok {
		ended(st.Serve(w, r, events))
	} else if err := st.ServeDetached(w, r, events, ended); err != nil {
		ended(err)
	}
}

func refuse(w http.ResponseWriter, err error) {
	var refused *sse.Refused
	if errors.As(err, &refused) {
		w.Header().Set("Retry-After", fmt.Sprint(int(refused.RetryAfter.Seconds())))
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// always serves the same events to all clients.
func always(events iter.Seq2[sse.Event, error]) func(context.Context, *http.Request) iter.Seq2[sse.Event, error] {
	return func(context.Context, *http.Request) iter.Seq2[sse.Event, error] { return events }
}

// list yields the events and ends.
func list(events ...sse.Event) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// then yields the events and waits for the end of ctx.
func then(ctx context.Context, events ...sse.Event) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(sse.Event{}, ctx.Err())
	}
}

// newServer starts a server whose shutdown is part of the test's cleanup, after
// which no goroutine of this package or of the hub may be left.
func newServer(t testing.TB, options sse.Options) *sse.Server {
	t.Helper()
	s := sse.New(options)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		noGoroutines(t)
	})
	return s
}

// serve listens on the loopback address with the connection hook installed.
func serve(t testing.TB, h http.Handler, configure ...func(*httptest.Server)) *httptest.Server {
	t.Helper()
	ts := httptest.NewUnstartedServer(letDetach(h))
	ts.Config.ConnContext = sse.ConnContext
	ts.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, c := range configure {
		c(ts)
	}
	if ts.EnableHTTP2 {
		ts.StartTLS()
	} else {
		ts.Start()
	}
	t.Cleanup(ts.Close)
	return ts
}

// noGoroutines waits until no goroutine runs code of the streams.
func noGoroutines(t testing.TB) {
	t.Helper()
	var stacks string
	buf := make([]byte, 16<<20)
	eventually(t, func() bool {
		stacks = ""
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "r3labs/sse") || strings.Contains(g, "sse.(*") {
				stacks += g + "\n\n"
			}
		}
		return stacks == ""
	}, func() string { return "goroutines left:\n" + stacks })
}

// eventually yields the processor until ok holds.
func eventually(t testing.TB, ok func() bool, message func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal(message())
		}
		runtime.Gosched()
	}
}

// receive takes one value from c within patience.
func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// dial opens a raw HTTP/1.1 connection, sends a GET and reads the header. The chunked
// body remains to be read.
func dial(t testing.TB, ts *httptest.Server, receiveBuffer int) (net.Conn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if receiveBuffer > 0 {
		if err := conn.(*net.TCPConn).SetReadBuffer(receiveBuffer); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %s", resp.Status)
	}
	return conn, resp
}

// get reads the whole stream.
func get(t testing.TB, url string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%v after %q", err, body)
	}
	return resp, string(body)
}
