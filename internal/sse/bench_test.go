package sse_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"koine/internal/sse"
)

// twin is a hand-written loop for one stream: a deadline per event, the block, a flush. It
// has no heartbeats, bounds, last events or shutdown.
func twin(events func(ctx context.Context, r *http.Request) iter.Seq2[sse.Event, error]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		w.Header().Set("Content-Type", "text/event-stream")
		if rc.Flush() != nil {
			return
		}
		var block []byte
		for e, err := range events(r.Context(), r) {
			if err != nil {
				return
			}
			block = append(block[:0], "data: "...)
			block = append(block, e.Data...)
			block = append(block, "\n\n"...)
			if rc.SetWriteDeadline(time.Now().Add(sse.DefaultWriteTimeout)) != nil {
				return
			}
			if _, err := w.Write(block); err != nil || rc.Flush() != nil || rc.SetWriteDeadline(time.Time{}) != nil {
				return
			}
		}
	})
}

// BenchmarkEvent is the cost of an event for each of its subscribers, over
// sockets, the reading side included. "burst" has all events ready; "live" waits
// until each has arrived at all subscribers before the next.
func BenchmarkEvent(b *testing.B) {
	for _, subscribers := range []int{1, 100} {
		for _, live := range []bool{false, true} {
			mode := map[bool]string{false: "burst", true: "live"}[live]
			for _, kind := range []string{"sse", "twin"} {
				b.Run(fmt.Sprintf("%s/subscribers=%d/%s", mode, subscribers, kind), func(b *testing.B) {
					benchmarkEvent(b, subscribers, live, kind == "twin")
				})
			}
		}
	}
}

func benchmarkEvent(b *testing.B, subscribers int, live, byHand bool) {
	data := []byte(strings.Repeat("x", 300))
	blockSize := int64(len("data: \n\n") + len(data))
	j := newJournal("")
	events := func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] {
		return func(yield func(sse.Event, error) bool) {
			for _, err := range j.follow(ctx, 0) {
				if err != nil || !yield(sse.Event{Data: data}, nil) {
					return
				}
			}
		}
	}
	var h http.Handler
	if byHand {
		h = twin(events)
	} else {
		h = handler(newServer(b, sse.Options{WriteTimeout: time.Minute}), sse.StreamOptions{}, nil, events)
	}
	ts := serve(b, h)
	got := make(chan error, subscribers)
	for range subscribers {
		_, resp := dial(b, ts, 0)
		go func() {
			n := int64(b.N)
			if live {
				for range n {
					_, err := io.CopyN(io.Discard, resp.Body, blockSize)
					got <- err
				}
				return
			}
			_, err := io.CopyN(io.Discard, resp.Body, n*blockSize)
			got <- err
		}()
	}
	wait := func() {
		for range subscribers {
			if err := <-got; err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		j.append()
		if live {
			wait()
		}
	}
	if !live {
		wait()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*subscribers), "ns/delivery")
}

// BenchmarkIdleStreams measures the cost of an open stream without events: heap and stacks
// of the whole process per stream, less those of the client's socket, and goroutines. Each
// stream had one event and one heartbeat.
func BenchmarkIdleStreams(b *testing.B) {
	const streams = 2000
	event := sse.Event{Data: []byte(strings.Repeat("x", 300))}
	events := func(ctx context.Context, _ *http.Request) iter.Seq2[sse.Event, error] { return then(ctx, event) }
	for _, kind := range []string{"sse", "twin"} {
		b.Run(kind, func(b *testing.B) {
			for range b.N {
				h, want := twin(events), "data: "
				if kind == "sse" {
					s := newServer(b, sse.Options{Heartbeat: 10 * time.Second, MaxStreams: streams})
					h = handler(s, sse.StreamOptions{Heartbeat: 500 * time.Millisecond}, nil, events)
					want = ": "
				}
				ts := serve(b, h)
				bytesBefore, goroutinesBefore := footprint()
				conns := make([]net.Conn, streams)
				for i := range conns {
					conns[i] = request(b, ts)
				}
				for _, conn := range conns {
					readUntil(b, conn, want)
				}
				bytesAfter, goroutinesAfter := footprint()
				b.ReportMetric(float64(bytesAfter-bytesBefore)/streams, "B/stream")
				b.ReportMetric(float64(goroutinesAfter-goroutinesBefore)/streams, "goroutines/stream")
				for _, conn := range conns {
					conn.Close()
				}
			}
		})
	}
}

// request asks for a stream and reads nothing.
func request(b *testing.B, ts *httptest.Server) net.Conn {
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
	return conn
}

// readUntil reads until a line begins with want, and keeps no buffer.
func readUntil(b *testing.B, conn net.Conn, want string) {
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		if strings.HasPrefix(line, want) {
			return
		}
	}
}

func footprint() (bytes int64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}
