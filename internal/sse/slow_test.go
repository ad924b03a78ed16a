package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/sse"
)

// A block may take as long as the write timeout, and not longer.
func TestWriteTimeout(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stall time.Duration
		want  string
		err   error
	}{
		{"in time", sse.DefaultWriteTimeout - time.Millisecond, "data: x\n\n", nil},
		{"late", sse.DefaultWriteTimeout + time.Millisecond, "data: x\n\nevent: end\ndata: " + sse.ErrSlowConsumer.Error() + " 1\n\n", sse.ErrSlowConsumer},
		{"the last moment", sse.DefaultWriteTimeout + sse.DefaultLastTimeout - time.Millisecond, "data: x\n\nevent: end\ndata: " + sse.ErrSlowConsumer.Error() + " 1\n\n", sse.ErrSlowConsumer},
		{"never", sse.DefaultWriteTimeout + sse.DefaultLastTimeout + time.Millisecond, "", sse.ErrSlowConsumer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, sse.Options{}, sse.StreamOptions{Last: lastEvent}, func(t *testing.T, b *bubble) {
				read := b.writer.stall()
				b.events <- sse.Event{ID: "1", Data: []byte("x")}
				time.Sleep(tt.stall)
				read()
				b.want(t, "after the stall", tt.want)
				if tt.err != nil {
					if err := <-b.ended; err != tt.err {
						t.Errorf("got %v, want %v", err, tt.err)
					}
				}
			})
		})
	}
}

// The timeout is per block: a long life of short stalls is no slow consumer,
// and idling is none either.
func TestWriteTimeoutPerBlock(t *testing.T) {
	inBubble(t, sse.Options{Heartbeat: time.Hour}, sse.StreamOptions{}, func(t *testing.T, b *bubble) {
		for range 5 {
			read := b.writer.stall()
			b.events <- sse.Event{Data: []byte("x")}
			time.Sleep(sse.DefaultWriteTimeout * 9 / 10)
			read()
			b.want(t, "after a stall", "data: x\n\n")
			time.Sleep(sse.DefaultWriteTimeout * 2)
		}
	})
}

// An iterator that has ended does not make a truncated stream a complete one.
func TestSlowAfterIteratorEnd(t *testing.T) {
	inBubble(t, sse.Options{}, sse.StreamOptions{}, func(t *testing.T, b *bubble) {
		defer b.writer.stall()()
		b.events <- sse.Event{Data: []byte("x")}
		close(b.events)
		if err := <-b.ended; err != sse.ErrSlowConsumer {
			t.Errorf("got %v, want %v", err, sse.ErrSlowConsumer)
		}
	})
}

// A client that is gone gets no time at all.
func TestGoneWhileStalled(t *testing.T) {
	inBubble(t, sse.Options{}, sse.StreamOptions{}, func(t *testing.T, b *bubble) {
		defer b.writer.stall()()
		b.events <- sse.Event{Data: []byte("x")}
		synctest.Wait()
		began := time.Now()
		b.cancel()
		if err := <-b.ended; err != sse.ErrClientGone {
			t.Errorf("got %v, want %v", err, sse.ErrClientGone)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

// flood yields numbered events of 16 KiB until ctx ends.
func flood(ctx context.Context) iter.Seq2[sse.Event, error] {
	padding := strings.Repeat("x", 16<<10)
	return func(yield func(sse.Event, error) bool) {
		for n := 1; ctx.Err() == nil; n++ {
			if !yield(sse.Event{ID: strconv.Itoa(n), Data: fmt.Appendf(nil, "%d %s", n, padding)}, nil) {
				return
			}
		}
	}
}

// numbers checks that a flood is gapless from 1 and returns its last number and the
// rest after it.
func numbers(t *testing.T, body string) (last int, rest string) {
	t.Helper()
	for block := range strings.SplitAfterSeq(body, "\n\n") {
		var n int
		if _, err := fmt.Sscanf(block, "data: %d ", &n); err != nil || !strings.HasSuffix(block, "\n\n") {
			return last, rest + body[strings.Index(body, block):]
		}
		if n != last+1 {
			t.Fatalf("%d after %d", n, last)
		}
		last = n
	}
	return last, ""
}

// Over sockets: a client that stalls and then reads gets everything up to its last
// event, which has the position to resume from; other clients are not affected.
func TestSlowConsumer(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1.1", true: "HTTP/2"}[http2], func(t *testing.T) {
			s := newServer(t, sse.Options{WriteTimeout: time.Second, LastTimeout: patience})
			struck := make(chan struct{})
			h := http.NewServeMux()
			h.Handle("/slow", handler(s, sse.StreamOptions{Last: lastEvent}, nil, func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] {
				context.AfterFunc(ctx, func() { close(struck) })
				return flood(ctx)
			}))
			h.Handle("/fast", handler(s, sse.StreamOptions{}, nil, func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] {
				return flood(ctx)
			}))
			ts := serve(t, h, func(ts *httptest.Server) { ts.EnableHTTP2 = http2 })

			fast, slow := open(t, ts, "/fast"), open(t, ts, "/slow")
			var taken atomic.Int64
			stopped := make(chan error, 1)
			go func() {
				for {
					n, err := io.CopyN(io.Discard, fast.Body, 64<<10)
					taken.Add(n)
					if err != nil {
						stopped <- err
						return
					}
				}
			}()
			receive(t, struck, "end of the slow stream")
			body, err := io.ReadAll(slow.Body)
			if err != nil {
				t.Fatalf("the slow client: %v after %d bytes", err, len(body))
			}
			last, rest := numbers(t, string(body))
			if want := fmt.Sprintf("event: end\ndata: %v %d\n\n", sse.ErrSlowConsumer, last); rest != want || last == 0 {
				t.Errorf("after %d: got %.200q, want %q", last, rest, want)
			}
			before := taken.Load()
			eventually(t, func() bool { return taken.Load() > before+8<<20 }, func() string { return "the fast client gets no more" })
			fast.Body.Close()
			<-stopped
		})
	}
}

// open starts to read a stream; the test's end closes it.
func open(t *testing.T, ts *httptest.Server, path string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ts.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := ts.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %s", resp.Status)
	}
	return resp
}

// A client that never reads again is cut off, and the kernel's buffer is not
// allowed to hide it: with ConnContext it holds kilobytes, not megabytes.
func TestStalledForGood(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "TCP", true: "TLS"}[secure], func(t *testing.T) {
			s := newServer(t, sse.Options{WriteTimeout: 100 * time.Millisecond, LastTimeout: 50 * time.Millisecond})
			ended, struck := make(chan error, 1), make(chan struct{})
			yielded := 0
			ts := httptest.NewUnstartedServer(letDetach(handler(s, sse.StreamOptions{Last: lastEvent}, ended, func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] {
				context.AfterFunc(ctx, func() { close(struck) })
				return func(yield func(sse.Event, error) bool) {
					for e := range flood(ctx) {
						yielded += len(e.Data)
						if !yield(e, nil) {
							return
						}
					}
				}
			})))
			ts.Config.ConnContext = sse.ConnContext
			start := map[bool]func(){false: ts.Start, true: ts.StartTLS}[secure]
			start()
			t.Cleanup(ts.Close)
			ts.Client().Transport.(*http.Transport).DialContext = dialSmall
			resp := open(t, ts, "/")
			receive(t, struck, "end of the producer")
			if secure { // else crypto/tls takes five seconds to give up its farewell
				resp.Body.Close()
			}
			if err := receive(t, ended, "end"); !errors.Is(err, sse.ErrSlowConsumer) {
				t.Errorf("got %v, want %v", err, sse.ErrSlowConsumer)
			}
			if limit := 1 << 20; yielded > limit {
				t.Errorf("%d bytes were pulled for a client that reads nothing, want at most %d", yielded, limit)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Error("the truncated stream looks complete")
			}
		})
	}
}
