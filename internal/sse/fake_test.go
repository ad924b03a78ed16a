package sse_test

import (
	"bytes"
	"net/http"
	"os"
	"sync"
	"time"
)

// fakeWriter is a response writer with deadlines but without a socket, for
// tests under a fake clock. While stalled, a flush blocks until the deadline or
// until the client reads again.
type fakeWriter struct {
	header http.Header

	mu       sync.Mutex
	body     bytes.Buffer
	stalled  chan struct{} // nil: the client reads
	deadline time.Time
	moved    chan struct{} // closed and replaced when the deadline moves
}

func newFakeWriter() *fakeWriter {
	return &fakeWriter{header: http.Header{}, moved: make(chan struct{})}
}

func (w *fakeWriter) Header() http.Header             { return w.header }
func (w *fakeWriter) WriteHeader(int)                 {}
func (w *fakeWriter) SetReadDeadline(time.Time) error { return nil }

func (w *fakeWriter) SetWriteDeadline(deadline time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = deadline
	close(w.moved)
	w.moved = make(chan struct{})
	return nil
}

func (w *fakeWriter) Write(p []byte) (int, error) {
	if err := w.wait(); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.Write(p)
}

func (w *fakeWriter) FlushError() error { return w.wait() }

func (w *fakeWriter) wait() error {
	for {
		w.mu.Lock()
		stalled, deadline, moved := w.stalled, w.deadline, w.moved
		w.mu.Unlock()
		if !deadline.IsZero() && !time.Now().Before(deadline) {
			return os.ErrDeadlineExceeded
		}
		if stalled == nil {
			return nil
		}
		var over <-chan time.Time
		if !deadline.IsZero() {
			over = time.After(time.Until(deadline))
		}
		select {
		case <-stalled:
			return nil
		case <-over:
		case <-moved:
		}
	}
}

// stall makes the client stop reading until the returned function is called.
func (w *fakeWriter) stall() (read func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stalled := make(chan struct{})
	w.stalled = stalled
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stalled = nil
		close(stalled)
	}
}

// take returns the output since the last call.
func (w *fakeWriter) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.body.String()
	w.body.Reset()
	return s
}
