package httpd

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// response tracks an answer: its status, its size, and its progress. A handler that
// sets deadlines itself, as streams do, controls them alone.
type response struct {
	http.ResponseWriter
	rc        *http.ResponseController
	stall     time.Duration
	lift      bool        // HTTP/2: see liftDeadline
	own       atomic.Bool // the handler sets the deadlines, possibly from another goroutine
	status    int         // 0 until the header is written
	bytes     int64
	stream    bool
	onLeave   func() // releases the place of a request in progress; nil if it has none
	onRefusal func() // called before the header of an answer other than 200; nil for nothing
	flusher   http.Flusher
	began     time.Time
	handed    *handedOver // once the stream has been detached
}

func newResponse(w http.ResponseWriter, r *http.Request, stall time.Duration) *response {
	flusher, _ := w.(http.Flusher)
	return &response{ResponseWriter: w, lift: r.ProtoMajor >= 2, rc: http.NewResponseController(w), stall: stall, flusher: flusher}
}

// Unwrap serves http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader records the status. Informational ones (1xx) come before it.
func (w *response) WriteHeader(status int) {
	if status >= 200 && w.status == 0 {
		w.status = status
		if status != http.StatusOK && w.onRefusal != nil {
			w.releasePlace()
			w.onRefusal()
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			w.stream = true
			w.releasePlace()
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.extendDeadline()
	n, err := w.ResponseWriter.Write(p)
	w.liftDeadline()
	w.bytes += int64(n)
	return n, err
}

// Flush sends the written data.
func (w *response) Flush() {
	if w.flusher != nil {
		w.extendDeadline()
		w.flusher.Flush()
		w.liftDeadline()
	}
}

// FlushError serves http.ResponseController.
func (w *response) FlushError() error {
	w.extendDeadline()
	err := w.rc.Flush()
	w.liftDeadline()
	return err
}

// Hijack serves protocol upgrades: from then on the answer counts as a stream.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.rc.Hijack()
	if err == nil {
		w.own.Store(true)
		w.stream, w.status = true, http.StatusSwitchingProtocols
		w.releasePlace()
	}
	return conn, buffered, err
}

// SetWriteDeadline serves http.ResponseController.
func (w *response) SetWriteDeadline(deadline time.Time) error {
	w.own.Store(true)
	return w.rc.SetWriteDeadline(deadline)
}

// extendDeadline renews the deadline of the next write. If deadlines are not supported, there
// is none.
func (w *response) extendDeadline() {
	if !w.own.Load() {
		_ = w.rc.SetWriteDeadline(time.Now().Add(w.stall))
	}
}

// liftDeadline clears the deadline while the handler works, because in HTTP/2 an expired
// deadline ends the answer.
func (w *response) liftDeadline() {
	if w.lift && !w.own.Load() {
		_ = w.rc.SetWriteDeadline(time.Time{})
	}
}

func (w *response) releasePlace() {
	if w.onLeave != nil {
		w.onLeave()
		w.onLeave = nil
	}
}
