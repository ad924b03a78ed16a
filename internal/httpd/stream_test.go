package httpd_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"koine/internal/httpd"
	"koine/internal/sse"
	"koine/internal/throttle"
)

// The server's limits do not affect streams: they outlive the stall timeout, take no
// place among the requests in progress, and end first at shutdown.
func TestStreams(t *testing.T) {
	t.Run("on its handler", func(t *testing.T) {
		testStreams(t, func(st *sse.Stream, w http.ResponseWriter, r *http.Request, events iter.Seq2[sse.Event, error], ended func(error)) {
			ended(st.Serve(w, r, events))
		})
	})
	t.Run("detached", func(t *testing.T) {
		testStreams(t, func(st *sse.Stream, w http.ResponseWriter, r *http.Request, events iter.Seq2[sse.Event, error], ended func(error)) {
			if err := st.ServeDetached(w, r, events, ended); err != nil {
				ended(err)
			}
		})
	})
}

func testStreams(t *testing.T, serve func(*sse.Stream, http.ResponseWriter, *http.Request, iter.Seq2[sse.Event, error], func(error))) {
	const stall = 50 * time.Millisecond
	events := sse.New(sse.Options{Heartbeat: 4 * stall})
	s := newServer(httpd.Options{Streams: events, StallTimeout: stall, MaxRequests: 1})
	s.HandleRPC(whoami)
	s.Handle("POST /stream", httpd.Plain, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		st, err := events.Open(r.Context(), sse.StreamOptions{Last: func(reason error, _ string) (sse.Event, bool) {
			return sse.Event{Data: []byte(reason.Error())}, true
		}})
		if err != nil {
			t.Error(err)
			return
		}
		defer st.Close()
		serve(st, w, r, func(yield func(sse.Event, error) bool) {
			if yield(sse.Event{Data: []byte("first")}, nil) {
				<-st.Context().Done()
			}
		}, func(err error) {
			if err != sse.ErrShutdown {
				t.Errorf("the stream ended: %v", err)
			}
		})
	}))
	r := run(t, s)
	resp, err := http.Post("http://"+r.addr+"/stream", "text/plain", strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	want := "data: first\n\n: \n\n: \n\n" // the heartbeats come long after the stall timeout
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
	if resp, body := do(t, r, "POST", "/", ""); resp.StatusCode != 200 {
		t.Errorf("a request beside the stream: got %d %s", resp.StatusCode, body)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(rest), "data: "+sse.ErrShutdown.Error()+"\n\n") {
		t.Errorf("at the end: got %q, %v", rest, err)
	}
}

// A detached stream keeps its credential and its share of received bytes until it ends, ends with the
// credential, and is logged and counted then, as any other request is at its end. Its connection gives
// its place back.
func TestDetachedStream(t *testing.T) {
	d, log := new(gate), new(locked)
	events, bytes := sse.New(sse.Options{}), throttle.NewPool(1<<20)
	s := newServer(httpd.Options{Admit: d.admit, Streams: events, MaxConnections: 100, Intake: throttle.Intake{Pool: bytes},
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	returned := make(chan bool, 1)
	s.Handle("POST /stream", httpd.Plain, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st, err := events.Open(r.Context(), sse.StreamOptions{Last: func(reason error, _ string) (sse.Event, bool) {
			return sse.Event{Data: []byte(reason.Error())}, true
		}})
		if err != nil {
			t.Error(err)
			return
		}
		ctx := st.Context()
		if err := st.ServeDetached(w, r, func(func(sse.Event, error) bool) { <-ctx.Done() }, func(error) {}); err != nil {
			t.Error(err)
		}
		returned <- true
	}))
	r := run(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.addr+"/stream", strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer dora")
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	receive(t, returned, "return of the handler")
	metrics := func() string {
		_, text := do(t, r, "GET", "/metrics", "", "Authorization: Bearer probe")
		return text
	}
	const counted = `koine_http_requests_total{method="POST",route="/stream",status="200"} 1`
	if open := metrics(); d.releasedOf("dora") != 0 || strings.Contains(open, counted) || log.count("path=/stream") != 0 {
		t.Errorf("the request ended with its handler; the credential was released %d times", d.releasedOf("dora"))
	}
	if bytes.InUse() == 0 {
		t.Error("the bytes of the request were released with its handler")
	}
	d.throwOut("dora")
	want := "data: the key was revoked\n\n"
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != want {
		t.Errorf("got %q, %v, want %q", body, err, want)
	}
	if n := d.releasedOf("dora"); n != 1 {
		t.Errorf("the credential was released %d times after the stream", n)
	}
	if n := bytes.InUse(); n != 0 {
		t.Errorf("%d bytes are in use after the stream", n)
	}
	if ended := metrics(); !strings.Contains(ended, counted) {
		t.Errorf("the request was not counted: %s", ended)
	}
	if line := fmt.Sprintf("agent=agent://dora method=POST path=/stream status=200 bytes=%d", len(want)); log.count(line) != 1 {
		t.Errorf("the log has not %q once: %s", line, log.text.String())
	}
}
