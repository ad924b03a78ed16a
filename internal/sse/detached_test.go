package sse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/internal/sse"
)

// detaching makes the servers of the tests let their streams detach, as that of httpd does.
var detaching atomic.Bool

// detachable is an answer that can be detached.
type detachable struct {
	http.ResponseWriter
	detached atomic.Bool
	finished chan<- finish
}

// finish is the report to the owner of a request at the end of its stream.
type finish struct {
	bytes   int64
	failure error
}

func (d *detachable) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *detachable) Detach() (net.Conn, func(int64, error), error) {
	conn, _, err := http.NewResponseController(d.ResponseWriter).Hijack()
	d.detached.Store(err == nil)
	return conn, func(bytes int64, failure error) {
		if d.finished != nil {
			d.finished <- finish{bytes, failure}
		}
	}, err
}

func letDetach(h http.Handler) http.Handler {
	if !detaching.Load() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&detachable{ResponseWriter: w}, r) })
}

// A stream that is detached keeps all promises of one that is not.
func TestDetached(t *testing.T) {
	detaching.Store(true)
	defer detaching.Store(false)
	for name, test := range map[string]func(*testing.T){
		"TestMaxStreams": TestMaxStreams, "TestShutdown": TestShutdown, "TestBlocks": TestBlocks, "TestProducerEnds": TestProducerEnds,
		"TestProducerPanic": TestProducerPanic, "TestClientGone": TestClientGone, "TestMaxEventBytes": TestMaxEventBytes,
		"TestOutlivesTimeouts": TestOutlivesTimeouts, "TestSlowConsumer": TestSlowConsumer, "TestStalledForGood": TestStalledForGood,
		"TestResumeAcrossRestart": TestResumeAcrossRestart, "TestLargestEvent": TestLargestEvent, "TestSwarm": TestSwarm,
		"TestSend": TestSend, "TestSendBesideTheIterator": TestSendBesideTheIterator,
	} {
		t.Run(name, test)
	}
}

// serveOneDetached serves streams of the events and tells how their handlers and they end.
func serveOneDetached(t *testing.T, s *sse.Server, options sse.StreamOptions, events func(context.Context) iter.Seq2[sse.Event, error], ended func(error)) (url string, returned <-chan bool, finished <-chan finish) {
	back, done := make(chan bool, 1), make(chan finish, 1)
	ts := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st, err := s.Open(r.Context(), options)
		if err != nil {
			t.Error(err)
			return
		}
		d := &detachable{ResponseWriter: w, finished: done}
		if err := st.ServeDetached(d, r, events(st.Context()), ended); err != nil {
			t.Error(err)
		}
		back <- d.detached.Load()
	}))
	return ts.URL, back, done
}

// The handler returns while the stream is open. The client is told that the connection ends
// with it, and which Shutdown ends and waits for.
func TestDetachedOutlivesItsHandler(t *testing.T) {
	s := newServer(t, sse.Options{})
	var tell sync.WaitGroup
	tell.Add(1)
	url, returned, finished := serveOneDetached(t, s, sse.StreamOptions{Last: lastEvent}, func(ctx context.Context) iter.Seq2[sse.Event, error] {
		return func(yield func(sse.Event, error) bool) {
			tell.Wait()
			then(ctx, sse.Event{ID: "1", Data: []byte("x")})(yield)
		}
	}, func(error) {})
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if !receive(t, returned, "end of the handler") {
		t.Error("the stream was not detached")
	}
	if !resp.Close {
		t.Error("the client is not told that the connection ends with the stream")
	}
	tell.Done()
	block := "data: x\n\n"
	if _, err := io.ReadFull(resp.Body, make([]byte, len(block))); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case f := <-finished:
		last := fmt.Sprintf("event: end\ndata: %v 1\n\n", sse.ErrShutdown)
		if want := int64(len(block + last)); f.bytes != want || f.failure != nil {
			t.Errorf("the request ended with %d bytes, %v, want %d", f.bytes, f.failure, want)
		}
		if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != last {
			t.Errorf("got %q, %v, want %q", rest, err, last)
		}
	default:
		t.Error("Shutdown did not wait for the stream")
	}
}

// What ends the request for a cause of its own ends a stream that has left it, from each of the
// contexts around it, and also if it came before the stream was detached.
func TestDetachedEndsWithItsRequest(t *testing.T) {
	revoked := errors.New("revoked")
	for _, c := range []struct {
		name string
		end  func(outer, inner context.CancelCauseFunc)
	}{
		{"outer", func(outer, _ context.CancelCauseFunc) { outer(revoked) }},
		{"inner", func(_, inner context.CancelCauseFunc) { inner(revoked) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, sse.Options{})
			ended, back := make(chan error, 1), make(chan bool, 1)
			var outer, inner context.CancelCauseFunc
			ts := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var ctx context.Context
				ctx, outer = sse.WithEnd(r.Context())
				ctx, inner = sse.WithEnd(ctx)
				st, err := s.Open(ctx, sse.StreamOptions{Last: lastEvent})
				if err != nil {
					t.Error(err)
					return
				}
				if err := st.ServeDetached(&detachable{ResponseWriter: w}, r, then(st.Context()), func(err error) { ended <- err }); err != nil {
					t.Error(err)
				}
				back <- true
			}))
			resp := open(t, ts, "/")
			receive(t, back, "end of the handler")
			c.end(outer, inner)
			if err := receive(t, ended, "end"); err != revoked {
				t.Errorf("got %v, want %v", err, revoked)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "event: end\ndata: revoked \n\n" {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
}

// A panic in the work that the handler left to the stream's end reaches the owner of the request, and
// the place is given back.
func TestDetachedEndPanics(t *testing.T) {
	s := newServer(t, sse.Options{})
	url, _, finished := serveOneDetached(t, s, sse.StreamOptions{}, func(context.Context) iter.Seq2[sse.Event, error] {
		return list(sse.Event{Data: []byte("x")})
	}, func(error) { panic("boom") })
	if _, body := get(t, url); body != "data: x\n\n" {
		t.Errorf("got %q", body)
	}
	var p *sse.PanicError
	if f := receive(t, finished, "end of the request"); !errors.As(f.failure, &p) || p.Value != "boom" {
		t.Errorf("got %v, want the panic", f.failure)
	}
	if n := s.Streams(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// A client may send on a little, and is ended when it sends much.
func TestDetachedDiscards(t *testing.T) {
	s := newServer(t, sse.Options{})
	ended, more := make(chan error, 1), make(chan sse.Event)
	url, returned, _ := serveOneDetached(t, s, sse.StreamOptions{}, func(ctx context.Context) iter.Seq2[sse.Event, error] {
		return func(yield func(sse.Event, error) bool) {
			for {
				select {
				case e := <-more:
					if !yield(e, nil) {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}
	}, func(err error) { ended <- err })
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
	receive(t, returned, "end of the handler")
	if _, err := conn.Write(make([]byte, sse.MaxDiscardedBytes-64)); err != nil {
		t.Fatal(err)
	}
	more <- sse.Event{Data: []byte("still here")}
	for got := make([]byte, 0, 4096); !bytes.Contains(got, []byte("still here\n\n\r\n")); {
		n, err := conn.Read(got[len(got):cap(got)])
		if err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		got = got[:len(got)+n]
	}
	if len(ended) > 0 {
		t.Fatalf("the stream ended: %v", <-ended)
	}
	if _, err := conn.Write(make([]byte, 128)); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ended, "end"); err != sse.ErrClientGone {
		t.Errorf("got %v, want %v", err, sse.ErrClientGone)
	}
}

// Requests that cannot be detached are served until their end: HTTP/1.0 and HEAD have no chunks.
func TestNotDetached(t *testing.T) {
	for _, c := range []struct{ request, body string }{
		{"GET / HTTP/1.0\r\n\r\n", "data: x\n\n"},
		{"HEAD / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", ""},
	} {
		t.Run(c.request, func(t *testing.T) {
			s := newServer(t, sse.Options{})
			url, returned, _ := serveOneDetached(t, s, sse.StreamOptions{}, func(context.Context) iter.Seq2[sse.Event, error] {
				return list(sse.Event{Data: []byte("x")})
			}, func(error) {})
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, c.request)
			answer, err := io.ReadAll(conn)
			if err != nil {
				t.Fatal(err)
			}
			if _, body, ok := strings.Cut(string(answer), "\r\n\r\n"); !ok || body != c.body {
				t.Errorf("got %q, want the body %q", answer, c.body)
			}
			if receive(t, returned, "end of the handler") {
				t.Error("the stream was detached")
			}
		})
	}
}
