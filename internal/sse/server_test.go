package sse_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/sse"
)

func TestMaxStreams(t *testing.T) {
	const limit = 3
	s := newServer(t, sse.Options{MaxStreams: limit, RetryAfter: 7 * time.Second})
	ts := serve(t, handler(s, sse.StreamOptions{}, nil, func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] {
		return then(ctx)
	}))
	first, _ := dial(t, ts, 0)
	for range limit - 1 {
		dial(t, ts, 0)
	}
	resp, _ := get(t, ts.URL)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "7" {
		t.Errorf("past the bound: got %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
	if _, err := s.Open(t.Context(), sse.StreamOptions{}); !errors.Is(err, sse.ErrTooManyStreams) {
		t.Errorf("got %v, want %v", err, sse.ErrTooManyStreams)
	}
	first.Close()
	eventually(t, func() bool { return s.Streams() == limit-1 }, func() string { return "the place was not given back" })
	dial(t, ts, 0)
}

// Shutdown notifies every client, waits for all, and refuses later ones, also a stream
// whose place was reserved before.
func TestShutdown(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[http2], func(t *testing.T) {
			s := newServer(t, sse.Options{})
			ts := serve(t, handler(s, sse.StreamOptions{Last: lastEvent}, nil, func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] {
				return then(ctx, sse.Event{ID: "1", Data: []byte("x")})
			}), func(ts *httptest.Server) { ts.EnableHTTP2 = http2 })
			var open5 [5]*http.Response
			for i := range open5 {
				open5[i] = open(t, ts, "/")
				if _, err := io.ReadFull(open5[i].Body, make([]byte, len("data: x\n\n"))); err != nil {
					t.Fatal(err)
				}
			}
			reserved, err := s.Open(t.Context(), sse.StreamOptions{})
			if err != nil {
				t.Fatal(err)
			}
			down := make(chan error, 1)
			go func() { down <- s.Shutdown(t.Context()) }()
			for _, resp := range open5 {
				body, err := io.ReadAll(resp.Body)
				if want := "event: end\ndata: " + sse.ErrShutdown.Error() + " 1\n\n"; err != nil || string(body) != want {
					t.Errorf("got %q and %v, want %q", body, err, want)
				}
			}
			err = reserved.Serve(newFakeWriter(), httptest.NewRequest("GET", "/", nil), list())
			var refused *sse.Refused
			if !errors.As(err, &refused) || !errors.Is(err, sse.ErrShutdown) || refused.RetryAfter != sse.DefaultRetryAfter {
				t.Errorf("the reserved stream: got %v", err)
			}
			if err := receive(t, down, "shutdown"); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			if _, err := s.Open(t.Context(), sse.StreamOptions{}); !errors.Is(err, sse.ErrShutdown) {
				t.Errorf("after it: got %v, want %v", err, sse.ErrShutdown)
			}
		})
	}
}

// A stalled client delays a shutdown by LastTimeout, and a shutdown whose
// context ends does not wait for it.
func TestShutdownStalled(t *testing.T) {
	inBubble(t, sse.Options{}, sse.StreamOptions{Last: lastEvent}, func(t *testing.T, b *bubble) {
		defer b.writer.stall()()
		b.events <- sse.Event{Data: []byte("x")}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), sse.DefaultLastTimeout/2)
		defer cancel()
		if err := b.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		if err := b.server.Shutdown(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
		synctest.Wait()
		if took := time.Since(began); took != sse.DefaultLastTimeout {
			t.Errorf("took %v, want %v", took, sse.DefaultLastTimeout)
		}
		if err := <-b.ended; err != sse.ErrShutdown {
			t.Errorf("got %v, want %v", err, sse.ErrShutdown)
		}
	})
}

// A reserved place that is never served holds a shutdown until it is closed.
func TestShutdownWaitsForReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sse.New(sse.Options{})
		st, err := s.Open(t.Context(), sse.StreamOptions{})
		if err != nil {
			t.Fatal(err)
		}
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		if len(down) > 0 {
			t.Error("did not wait")
		}
		if context.Cause(st.Context()) != sse.ErrShutdown {
			t.Error("the reserved stream's context goes on")
		}
		st.Close()
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}
