package sse_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/sse"
)

// bubble runs one stream under a fake clock. The test sends events, and the
// stream ends with the test.
type bubble struct {
	writer *fakeWriter
	events chan sse.Event
	ended  chan error
	stream *sse.Stream
	server *sse.Server
	cancel context.CancelFunc
}

func inBubble(t *testing.T, options sse.Options, stream sse.StreamOptions, test func(t *testing.T, b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &bubble{
			writer: newFakeWriter(),
			events: make(chan sse.Event),
			ended:  make(chan error, 1),
			server: sse.New(options),
			cancel: cancel,
		}
		var err error
		if b.stream, err = b.server.Open(ctx, stream); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
		go func() { b.ended <- b.stream.Serve(b.writer, r, b.pull()) }()
		synctest.Wait()
		test(t, b)
		cancel()
		if err := b.server.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

func (b *bubble) pull() iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		for {
			select {
			case e, ok := <-b.events:
				if !ok || !yield(e, nil) {
					return
				}
			case <-b.stream.Context().Done():
				return
			}
		}
	}
}

// want compares the output since the last call.
func (b *bubble) want(t *testing.T, when, want string) {
	t.Helper()
	synctest.Wait()
	if got := b.writer.take(); got != want {
		t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

// tick is the coarseness of the ticker under the default heartbeat.
const tick = 250 * time.Millisecond

func TestHeartbeatComment(t *testing.T) {
	inBubble(t, sse.Options{}, sse.StreamOptions{}, func(t *testing.T, b *bubble) {
		time.Sleep(sse.DefaultHeartbeat - time.Millisecond)
		b.want(t, "before the interval", "")
		time.Sleep(tick)
		b.want(t, "after the interval", ": \n\n")
		time.Sleep(sse.DefaultHeartbeat + tick)
		b.want(t, "after two", ": \n\n")
		b.events <- sse.Event{Data: []byte("x")}
		b.want(t, "an event", "data: x\n\n")
		time.Sleep(sse.DefaultHeartbeat - time.Millisecond)
		b.want(t, "an event is activity", "")
		time.Sleep(tick)
		b.want(t, "later", ": \n\n")
	})
}

func TestHeartbeatInterval(t *testing.T) {
	inBubble(t, sse.Options{}, sse.StreamOptions{Heartbeat: time.Second}, func(t *testing.T, b *bubble) {
		time.Sleep(time.Second - time.Millisecond)
		b.want(t, "before", "")
		time.Sleep(tick)
		b.want(t, "after", ": \n\n")
	})
}

// With ids a heartbeat has the position scanned to (UpToDate), and a later end resumes
// from there.
func TestHeartbeatPosition(t *testing.T) {
	var scanned, asked atomic.Value
	scanned.Store("")
	options := sse.StreamOptions{
		IDs:  true,
		From: "p0",
		Position: func(last string) string {
			asked.Store(last)
			return scanned.Load().(string)
		},
		Last: lastEvent,
	}
	inBubble(t, sse.Options{}, options, func(t *testing.T, b *bubble) {
		time.Sleep(sse.DefaultHeartbeat + tick)
		b.want(t, "nothing scanned", ": \n\n")
		if got := asked.Load(); got != "p0" {
			t.Errorf("asked from %q, want p0", got)
		}
		scanned.Store("p4")
		time.Sleep(sse.DefaultHeartbeat + tick)
		b.want(t, "scanned", "id: p4\n\n")
		b.events <- sse.Event{ID: "p5", Data: []byte("x")}
		scanned.Store("p9")
		time.Sleep(sse.DefaultHeartbeat + tick)
		b.want(t, "behind an event", "id: p5\ndata: x\n\nid: p9\n\n")
		if got := asked.Load(); got != "p5" {
			t.Errorf("asked from %q, want p5", got)
		}
		if err := b.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		b.want(t, "shutdown", "event: end\ndata: "+sse.ErrShutdown.Error()+" p9\n\n")
	})
}

// Without ids the position is not asked for.
func TestHeartbeatPositionNotAsked(t *testing.T) {
	options := sse.StreamOptions{Position: func(string) string {
		t.Error("asked")
		return "p"
	}}
	inBubble(t, sse.Options{}, options, func(t *testing.T, b *bubble) {
		time.Sleep(sse.DefaultHeartbeat + tick)
		b.want(t, "heartbeat", ": \n\n")
	})
}

// A callback that fails ends its stream, not the process.
func TestHeartbeatPositionFails(t *testing.T) {
	for name, position := range map[string]func(string) string{
		"panic":     func(string) string { panic("boom") },
		"malformed": func(string) string { return "a\nb" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, sse.Options{}, sse.StreamOptions{IDs: true, Position: position}, func(t *testing.T, b *bubble) {
				time.Sleep(sse.DefaultHeartbeat + tick)
				err := <-b.ended
				var p *sse.PanicError
				if !errors.As(err, &p) && !errors.Is(err, sse.ErrMalformed) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A position that the iterator yields is sent as an id-only block at once, and
// counts as activity.
func TestYieldedPosition(t *testing.T) {
	inBubble(t, sse.Options{}, sse.StreamOptions{IDs: true}, func(t *testing.T, b *bubble) {
		b.events <- sse.Event{ID: "p1"}
		b.want(t, "position", "id: p1\n\n")
	})
}

// A stalled stream gets no heartbeats.
func TestNoHeartbeatWhileStalled(t *testing.T) {
	options := sse.Options{Heartbeat: time.Second, WriteTimeout: time.Minute}
	inBubble(t, options, sse.StreamOptions{}, func(t *testing.T, b *bubble) {
		read := b.writer.stall()
		b.events <- sse.Event{Data: []byte("x")}
		time.Sleep(30 * time.Second)
		read()
		b.want(t, "after the stall", "data: x\n\n")
	})
}

// The iterator is not pulled while an event waits for the client, however small it is.
func TestPulledOneByOne(t *testing.T) {
	inBubble(t, sse.Options{}, sse.StreamOptions{}, func(t *testing.T, b *bubble) {
		read := b.writer.stall()
		b.events <- sse.Event{Data: []byte("x")}
		synctest.Wait()
		select {
		case b.events <- sse.Event{Data: []byte("y")}:
			t.Error("a second event was pulled")
		default:
		}
		read()
		b.want(t, "after the stall", "data: x\n\n")
		b.events <- sse.Event{Data: []byte("z")}
		b.want(t, "later", "data: z\n\n")
	})
}

// A client that does not take a heartbeat is a slow one. Its stream ends although the
// producer has nothing to tell.
func TestStalledHeartbeat(t *testing.T) {
	const short = 50 * time.Millisecond
	s := newServer(t, sse.Options{Heartbeat: short, WriteTimeout: short, LastTimeout: short})
	st, err := s.Open(t.Context(), sse.StreamOptions{Last: lastEvent})
	if err != nil {
		t.Fatal(err)
	}
	w := newFakeWriter()
	ended := make(chan error, 1)
	go func() {
		ended <- st.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), then(st.Context(), sse.Event{Data: []byte("x")}))
	}()
	eventually(t, func() bool { return strings.HasPrefix(w.take(), "data: x\n\n") }, func() string { return "no event" })
	defer w.stall()()
	if err := receive(t, ended, "end"); err != sse.ErrSlowConsumer {
		t.Errorf("got %v, want %v", err, sse.ErrSlowConsumer)
	}
	for block := range strings.SplitAfterSeq(w.take(), "\n\n") { // those before the stall
		if block != ": \n\n" && block != "" {
			t.Errorf("got %q", block)
		}
	}
}
