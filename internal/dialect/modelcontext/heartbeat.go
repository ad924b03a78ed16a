package modelcontext

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"koine/internal/sse"
)

// beating is the response of an event stream. It writes a comment after an interval of
// silence, so that proxies keep the connection and a dead one is noticed.
type beating struct {
	http.ResponseWriter
	interval time.Duration

	mu    sync.Mutex
	timer *time.Timer // nil before the first byte, and after stop
	done  bool
}

func newBeating(w http.ResponseWriter, interval time.Duration) *beating {
	return &beating{ResponseWriter: w, interval: cmp.Or(interval, sse.DefaultHeartbeat)}
}

// Unwrap serves http.ResponseController.
func (b *beating) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Write writes whole events, as the SDK does.
func (b *beating) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.ResponseWriter.Write(p)
	b.restartTimer()
	return n, err
}

// WriteHeader begins the stream.
func (b *beating) WriteHeader(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ResponseWriter.WriteHeader(status)
	if status == http.StatusOK {
		b.restartTimer()
	}
}

// FlushError serves http.ResponseController.
func (b *beating) FlushError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return http.NewResponseController(b.ResponseWriter).Flush()
}

func (b *beating) restartTimer() {
	switch {
	case b.done:
	case b.timer == nil:
		b.timer = time.AfterFunc(b.interval, b.writeBeat)
	default:
		b.timer.Reset(b.interval)
	}
}

func (b *beating) writeBeat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return
	}
	_, err := b.ResponseWriter.Write([]byte(": \n\n"))
	if err == nil && http.NewResponseController(b.ResponseWriter).Flush() == nil {
		b.restartTimer()
	}
}

// stopBeats ends the comments. It is called before the handler returns.
func (b *beating) stopBeats() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done = true; b.timer != nil {
		b.timer.Stop()
	}
}
