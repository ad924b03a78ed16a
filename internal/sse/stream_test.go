package sse_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/internal/sse"
)

// The exact bytes of blocks: data first, unless ids were requested (docs/reference/json-rpc.md).
func TestBlocks(t *testing.T) {
	events := []sse.Event{
		{ID: "p1", Data: []byte(`{"n":1}`)},
		{ID: "p2", Name: "next", Data: []byte("a\nb\n")},
		{Data: []byte("no id")},
		{ID: "p3"},
		{Name: "complete"},
		{ID: "p4", Name: "complete"},
		{Data: []byte("id: x\nevent: y\n: z")},
	}
	for _, tt := range []struct {
		name string
		ids  bool
		want string
	}{
		{"without ids", false, "data: {\"n\":1}\n\n" +
			"event: next\ndata: a\ndata: b\ndata: \n\n" +
			"data: no id\n\n" +
			"event: complete\ndata: \n\n" +
			"event: complete\ndata: \n\n" +
			"data: id: x\ndata: event: y\ndata: : z\n\n"},
		{"with ids", true, "id: p1\ndata: {\"n\":1}\n\n" +
			"id: p2\nevent: next\ndata: a\ndata: b\ndata: \n\n" +
			"data: no id\n\n" +
			"id: p3\n\n" +
			"event: complete\ndata: \n\n" +
			"id: p4\nevent: complete\ndata: \n\n" +
			"data: id: x\ndata: event: y\ndata: : z\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, sse.Options{})
			ended := make(chan error, 1)
			ts := serve(t, handler(s, sse.StreamOptions{IDs: tt.ids}, ended, always(list(events...))))
			resp, body := get(t, ts.URL)
			if body != tt.want {
				t.Errorf("got  %q\nwant %q", body, tt.want)
			}
			for name, want := range map[string]string{
				"Content-Type":      "text/event-stream",
				"Cache-Control":     "no-store",
				"X-Accel-Buffering": "no",
				"Connection":        "",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if err := receive(t, ended, "end"); err != nil {
				t.Errorf("Serve: %v", err)
			}
			if got := s.Streams(); got != 0 {
				t.Errorf("%d streams after the end", got)
			}
		})
	}
}

// Last gets the reason for the end of a stream, and the last event comes after all
// others.
func TestProducerEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		events iter.Seq2[sse.Event, error]
		want   error
	}{
		{"error", func(yield func(sse.Event, error) bool) {
			_ = yield(sse.Event{ID: "7", Data: []byte("x")}, nil) && yield(sse.Event{}, broken)
		}, broken},
		{"malformed id", list(sse.Event{ID: "7", Data: []byte("x")}, sse.Event{ID: "a\nb"}), sse.ErrMalformed},
		{"malformed name", list(sse.Event{ID: "7", Data: []byte("x")}, sse.Event{Name: "a\rb"}), sse.ErrMalformed},
		{"carriage return", list(sse.Event{ID: "7", Data: []byte("x")}, sse.Event{Data: []byte("a\rb")}), sse.ErrMalformed},
		{"empty", list(sse.Event{ID: "7", Data: []byte("x")}, sse.Event{}), sse.ErrMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, sse.Options{})
			ended := make(chan error, 1)
			ts := serve(t, handler(s, sse.StreamOptions{Last: lastEvent}, ended, always(tt.events)))
			_, body := get(t, ts.URL)
			err := receive(t, ended, "end")
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if want := "data: x\n\nevent: end\ndata: " + err.Error() + " 7\n\n"; body != want {
				t.Errorf("got %q, want %q", body, want)
			}
		})
	}
}

// lastEvent returns a last event with its reason and position.
func lastEvent(reason error, last string) (sse.Event, bool) {
	return sse.Event{Name: "end", Data: []byte(reason.Error() + " " + last)}, true
}

func TestProducerPanic(t *testing.T) {
	s := newServer(t, sse.Options{})
	ended := make(chan error, 1)
	ts := serve(t, handler(s, sse.StreamOptions{Last: lastEvent, From: "start"}, ended, always(
		func(func(sse.Event, error) bool) { panic("boom") })))
	_, body := get(t, ts.URL)
	if want := "event: end\ndata: sse: panic: boom start\n\n"; body != want {
		t.Errorf("got %q, want %q", body, want)
	}
	var p *sse.PanicError
	if err := receive(t, ended, "end"); !errors.As(err, &p) || len(p.Stack) == 0 {
		t.Errorf("got %v, want a panic with its stack", err)
	}
}

// A client that leaves ends the producer at once, not at the next heartbeat, and Last is not asked.
func TestClientGone(t *testing.T) {
	s := newServer(t, sse.Options{Heartbeat: 2 * patience})
	ended := make(chan error, 1)
	options := sse.StreamOptions{Last: func(reason error, _ string) (sse.Event, bool) {
		t.Errorf("Last(%v) for a client that is gone", reason)
		return sse.Event{}, false
	}}
	ts := serve(t, handler(s, options, ended, func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] {
		return then(ctx, sse.Event{Data: []byte("x")})
	}))
	conn, resp := dial(t, ts, 0)
	if _, err := io.ReadFull(resp.Body, make([]byte, len("data: x\n\n"))); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := receive(t, ended, "end"); !errors.Is(err, sse.ErrClientGone) {
		t.Errorf("got %v, want %v", err, sse.ErrClientGone)
	}
}

// A context with a cause of its own gives the client that reason.
func TestContextCause(t *testing.T) {
	s := newServer(t, sse.Options{})
	revoked := errors.New("revoked")
	ts := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		st, err := s.Open(ctx, sse.StreamOptions{Last: lastEvent})
		if err != nil {
			t.Error(err)
			return
		}
		if err := st.Serve(w, r, func(yield func(sse.Event, error) bool) {
			_ = yield(sse.Event{ID: "1", Data: []byte("x")}, nil)
			cancel(revoked)
			<-st.Context().Done()
		}); err != revoked {
			t.Errorf("got %v, want %v", err, revoked)
		}
	}))
	if _, body := get(t, ts.URL); body != "data: x\n\nevent: end\ndata: revoked 1\n\n" {
		t.Errorf("got %q", body)
	}
}

// An event at the bound passes, one byte more ends the stream.
func TestMaxEventBytes(t *testing.T) {
	const limit = 1000
	fits := limit - len("id: 1\n") - len("data: \n\n")
	for _, tt := range []struct {
		name string
		size int
		want error
	}{{"at the bound", fits, nil}, {"past it", fits + 1, sse.ErrEventTooLarge}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, sse.Options{MaxEventBytes: limit})
			ended := make(chan error, 1)
			ts := serve(t, handler(s, sse.StreamOptions{IDs: true}, ended, always(
				list(sse.Event{ID: "1", Data: []byte(strings.Repeat("x", tt.size))}))))
			_, body := get(t, ts.URL)
			if err := receive(t, ended, "end"); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if want := map[bool]int{true: limit, false: 0}[tt.want == nil]; len(body) != want {
				t.Errorf("%d bytes came, want %d", len(body), want)
			}
		})
	}
}

func TestServeOnce(t *testing.T) {
	s := newServer(t, sse.Options{})
	st, err := s.Open(t.Context(), sse.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	st.Close()
	if got := s.Streams(); got != 0 {
		t.Errorf("%d streams after Close", got)
	}
	if st.Context().Err() == nil {
		t.Error("the context of a closed stream goes on")
	}
	ts := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := st.Serve(w, r, list()); !errors.Is(err, sse.ErrUsed) {
			t.Errorf("got %v, want %v", err, sse.ErrUsed)
		}
	}))
	get(t, ts.URL)
}

// plain is a response writer that hides the wrapped one.
type plain struct{ http.ResponseWriter }

func TestUnsupportedWriter(t *testing.T) {
	s := newServer(t, sse.Options{})
	inner := handler(s, sse.StreamOptions{}, nil, always(list()))
	ts := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(plain{w}, r)
	}))
	resp, _ := get(t, ts.URL)
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %s: a refusal is still an ordinary answer", resp.Status)
	}
}

// The HTTP server's own timeouts are for ordinary answers, and the write timeout
// is not for a stream that idles, which HTTP/2 would end on a deadline left
// standing.
func TestOutlivesTimeouts(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[http2], func(t *testing.T) {
			const short = 200 * time.Millisecond
			s := newServer(t, sse.Options{WriteTimeout: short})
			h := handler(s, sse.StreamOptions{}, nil, func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] {
				return func(yield func(sse.Event, error) bool) {
					if !yield(sse.Event{Data: []byte("early")}, nil) {
						return
					}
					select {
					case <-ctx.Done():
					case <-time.After(2 * short):
						yield(sse.Event{Data: []byte("late")}, nil)
					}
				}
			})
			ts := serve(t, h, func(ts *httptest.Server) {
				ts.EnableHTTP2 = http2
				ts.Config.WriteTimeout, ts.Config.ReadTimeout = short, short
			})
			body, err := io.ReadAll(open(t, ts, "/").Body)
			if want := "data: early\n\ndata: late\n\n"; err != nil || string(body) != want {
				t.Errorf("got %q and %v, want %q", body, err, want)
			}
		})
	}
}

// Send writes beside the iterator while the stream is served, and at no other time. The client
// resumes after the last event, however it was written.
func TestSend(t *testing.T) {
	s := newServer(t, sse.Options{})
	opened, ended := make(chan *sse.Stream, 1), make(chan error, 1)
	first, stop := make(chan bool), errors.New("enough")
	ts := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st, err := s.Open(r.Context(), sse.StreamOptions{IDs: true, Last: lastEvent})
		if err != nil {
			t.Error(err)
			return
		}
		if err := st.Send(sse.Event{Data: []byte("early")}); err != sse.ErrUsed {
			t.Errorf("before the stream: got %v, want %v", err, sse.ErrUsed)
		}
		serveStream(st, w, r, func(yield func(sse.Event, error) bool) {
			if yield(sse.Event{ID: "1", Data: []byte("first")}, nil) {
				opened <- st
				<-first
				yield(sse.Event{}, stop)
			}
		}, func(err error) { ended <- err })
	}))
	resp := open(t, ts, "/")
	st := receive(t, opened, "stream")
	if err := st.Send(sse.Event{Data: []byte("a\rb")}); !errors.Is(err, sse.ErrMalformed) {
		t.Errorf("a malformed event: got %v", err)
	}
	if err := st.Send(sse.Event{ID: "2", Data: []byte("beside")}); err != nil {
		t.Error(err)
	}
	close(first)
	if err := receive(t, ended, "end"); err != stop {
		t.Errorf("got %v, want %v", err, stop)
	}
	if err := st.Send(sse.Event{Data: []byte("late")}); err != stop {
		t.Errorf("after the end: got %v, want %v", err, stop)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "id: 1\ndata: first\n\nid: 2\ndata: beside\n\nevent: end\ndata: enough 2\n\n" {
		t.Errorf("got %q, %v", body, err)
	}
}

// Events of several goroutines are whole blocks.
func TestSendBesideTheIterator(t *testing.T) {
	const each = 500
	s := newServer(t, sse.Options{})
	ts := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st, err := s.Open(r.Context(), sse.StreamOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		serveStream(st, w, r, func(yield func(sse.Event, error) bool) {
			var beside sync.WaitGroup
			defer beside.Wait()
			for range 3 {
				beside.Go(func() {
					for range each {
						if err := st.Send(sse.Event{Name: "beside", Data: []byte("x")}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for range each {
				yield(sse.Event{Data: []byte("y")}, nil)
			}
		}, func(error) {})
	}))
	_, body := get(t, ts.URL)
	beside, own := strings.Count(body, "event: beside\ndata: x\n\n"), strings.Count(body, "data: y\n\n")
	if beside != 3*each || own != each || len(body) != beside*len("event: beside\ndata: x\n\n")+own*len("data: y\n\n") {
		t.Errorf("%d and %d events in %d bytes", beside, own, len(body))
	}
}
