package archive

import (
	"io"
	"sync/atomic"
)

// An AsyncWriter has asyncChunks pieces of asyncChunk bytes, of which one is being filled and one
// being written.
const (
	asyncChunk  = 256 << 10
	asyncChunks = 4
)

// AsyncWriter passes its input to another writer on a goroutine of its own, in order
// and in pieces of asyncChunk: a backup is written beside the reading and hashing of its entries.
// It is for one goroutine, which calls Close in the end.
type AsyncWriter struct {
	to      io.Writer
	filling []byte
	full    chan []byte
	free    chan []byte
	flushed chan struct{} // the answer to a nil in full
	failed  atomic.Pointer[error]
}

// NewAsyncWriter returns a writer to the given one, which nothing else uses between the first Write
// and Flush or Close.
func NewAsyncWriter(to io.Writer) *AsyncWriter {
	w := &AsyncWriter{to: to, full: make(chan []byte), free: make(chan []byte, asyncChunks), flushed: make(chan struct{})}
	for range asyncChunks - 1 {
		w.free <- nil
	}
	go w.writeChunks()
	return w
}

// writeChunks writes until full is closed. After an error it writes no more.
func (w *AsyncWriter) writeChunks() {
	for chunk := range w.full {
		if chunk == nil {
			w.flushed <- struct{}{}
			continue
		}
		if w.failed.Load() == nil {
			if _, err := w.to.Write(chunk); err != nil {
				w.failed.Store(&err)
			}
		}
		w.free <- chunk
	}
	close(w.flushed)
}

// Write copies b. It returns an error of the other writer as soon as that is known.
func (w *AsyncWriter) Write(b []byte) (n int, err error) {
	if failed := w.failed.Load(); failed != nil {
		return 0, *failed
	}
	n = len(b)
	for len(b) > 0 {
		room := min(len(b), asyncChunk-len(w.filling))
		w.filling = append(w.filling, b[:room]...)
		if b = b[room:]; len(w.filling) == asyncChunk {
			w.passOn()
		}
	}
	return n, nil
}

func (w *AsyncWriter) passOn() {
	w.full <- w.filling
	w.filling = (<-w.free)[:0]
}

// Flush waits until all is written, and returns the first error.
func (w *AsyncWriter) Flush() error {
	if len(w.filling) > 0 {
		w.passOn()
	}
	w.full <- nil
	<-w.flushed
	if failed := w.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// Close ends the goroutine, and drops unflushed input.
func (w *AsyncWriter) Close() {
	close(w.full)
	<-w.flushed
}
