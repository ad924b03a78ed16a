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

// MaxBufferedBytes is the part of a body that is received before its request counts as
// in progress: one byte above every handler's limit, so that the handler notices the
// excess.
const MaxBufferedBytes = 8<<20 + 1

// usualFiles is the assumed number of open files if it is unknown.
const usualFiles = 64

// connectionsFor returns the limit of connections for a number of free files: a quarter
// of them, and a few, stay reserved for the store.
func connectionsFor(files int) int {
	return min(max((files-16)*3/4, MinConnections), DefaultMaxConnections)
}

// receiveBody reads the body of a request first, so that a slow body does not hold a place
// among the requests in progress. The bytes count for the owner until the returned
// value is released. A body above the handler's limit is left to the handler.
func (s *Server) receiveBody(r *http.Request, owner throttle.Owner) (*throttle.Received, *refusal) {
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
		return nil, limitRefusal(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		received.Release()
		return nil, tooSlow
	default:
		from.broken = err // the handler reports it in its own format
	}
	r.Body = &receivedBody{buffer, from}
	return received, nil
}

// receivedBody is a body that has been received partly or completely.
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
	b.buffer = nil // free it
	return b.body.Read(p)
}

// body is a request body that must make progress.
type body struct {
	io.ReadCloser
	rc       *http.ResponseController
	stall    time.Duration
	lift     bool // clear the deadline after each read: in HTTP/2 an expired one ends the body
	began    time.Time
	received int64
	pace     throttle.Intake // the minimal rate
	broken   error           // the error of a failed read
}

func newBody(r *http.Request, w http.ResponseWriter, stall time.Duration) *body {
	b := &body{ReadCloser: r.Body, rc: http.NewResponseController(w), stall: stall, lift: r.ProtoMajor >= 2, began: time.Now()}
	if !b.lift {
		// net/http reads an unread body before it answers.
		_ = b.rc.SetReadDeadline(b.began.Add(stall))
	}
	return b
}

// Read sets a deadline for each read, and clears it at the end of the body, because
// net/http then reads the connection to detect that the client leaves. After any other
// error it stays, because net/http reads on before it ends the connection.
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
