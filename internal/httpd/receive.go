package httpd

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"koine/internal/throttle"
	"koine/kg"
)

// MaxBufferedBytes is how much of a body is received before its request counts as
// under way: one byte more than any handler takes, so that it can tell.
const MaxBufferedBytes = 8<<20 + 1

// usualFiles is how many files a server is taken to have open where that cannot be
// told.
const usualFiles = 64

// connectionsFor is how many connections there may be, with so many files that can
// still be opened: a quarter of them, and a few, stay for the store.
func connectionsFor(files int) int {
	return min(max((files-16)*3/4, MinConnections), DefaultMaxConnections)
}

// receive reads the body of a request, so that a place among the requests under
// way is held for work only and not for a body that trickles in. The bytes count
// for the owner until the received message is released. A body that is larger than
// the handler takes is left to the handler.
func (s *Server) receive(r *http.Request, owner throttle.Owner) (*throttle.Received, *refusal) {
	from, ok := r.Body.(*body)
	if !ok {
		return nil, nil
	}
	if !s.receiving.Acquire(owner, 1) {
		return nil, overloaded
	}
	defer s.receiving.Release(owner, 1)
	received := s.intake.Receive(owner)
	from.pace = s.intake
	buffer, err := received.ReadAll(from, MaxBufferedBytes, r.ContentLength, nil)
	from.pace = throttle.Intake{}
	switch {
	case err == nil:
	case kg.CodeOf(err) == kg.CodeOverloaded:
		received.Release()
		return nil, limited(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		received.Release()
		return nil, tooSlow
	default:
		from.broken = err // for the handler, which says it in its own way
	}
	r.Body = &receivedBody{buffer, from}
	return received, nil
}

// receivedBody is a body of which the beginning, or all, has been received.
type receivedBody struct {
	buffer []byte
	*body
}

func (b *receivedBody) Read(p []byte) (int, error) {
	if len(b.buffer) > 0 {
		n := copy(p, b.buffer)
		b.buffer = b.buffer[n:]
		return n, nil
	}
	b.buffer = nil // it may be large
	return b.body.Read(p)
}

// body is a request's body that must make progress.
type body struct {
	io.ReadCloser
	rc       *http.ResponseController
	stall    time.Duration
	lift     bool // the deadline after each read: in HTTP/2 one that passes later ends the body
	began    time.Time
	received int64
	pace     throttle.Intake // how fast it has to come
	broken   error           // what a read has ended with
}

func newBody(r *http.Request, w http.ResponseWriter, stall time.Duration) *body {
	b := &body{ReadCloser: r.Body, rc: http.NewResponseController(w), stall: stall, lift: r.ProtoMajor >= 2, began: time.Now()}
	if !b.lift {
		// Where nobody reads the body, net/http does before it answers.
		_ = b.rc.SetReadDeadline(b.began.Add(stall))
	}
	return b
}

// Read sets a deadline for each read, and lifts it at the end of the body: the
// connection is then read for the sign that the client goes away. After any other
// error it stays, for net/http reads on before it ends the connection.
func (b *body) Read(p []byte) (int, error) {
	if b.broken != nil {
		return 0, b.broken
	}
	deadline := time.Now().Add(b.stall)
	if pace := b.pace.Deadline(b.began, b.received); !pace.IsZero() && pace.Before(deadline) {
		deadline = pace
	}
	_ = b.rc.SetReadDeadline(deadline)
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	if err == io.EOF || b.lift {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}
