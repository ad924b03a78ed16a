package httpd

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"koine/internal/caller"
	"koine/internal/sse"
)

// handedOver is a request with a stream that outlives its handler. The later of the two ends the
// request. It refers neither to the request nor to the answer, so that net/http can let go of both.
type handedOver struct {
	running atomic.Int32 // of the handler and the stream; the later of the two calls end
	end     func()       // set when the handler returns
	bytes   int64        // of the body; set when the stream ends
	failure error        // the same: a panic at its end
}

// Detach serves sse.Detacher.
func (w *response) Detach() (conn net.Conn, ended func(bytes int64, failure error), err error) {
	conn, _, err = w.rc.Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.own.Store(true)
	h := new(handedOver)
	h.running.Store(2)
	w.handed = h
	return conn, func(bytes int64, failure error) {
		h.bytes, h.failure = bytes, failure
		h.endHalf()
	}, nil
}

func (h *handedOver) endHalf() {
	if h.running.Add(-1) == 0 {
		h.end()
	}
}

// endRequest calls end, which ends the credential, when the handler has returned; or when its
// stream has ended, and then logs and counts the request.
func (s *Server) endRequest(w *response, r *http.Request, end func()) {
	h := w.handed
	if h == nil {
		end()
		return
	}
	a, began := answerOf(w, r), w.began
	h.end = func() {
		end()
		if h.failure != nil {
			s.log.ErrorContext(a.ctx, "the end of a stream panicked", "request", caller.From(a.ctx).RequestID, "path", a.path, "error", h.failure, "stack", stackOf(h.failure))
		}
		a.bytes += h.bytes
		s.logAnswer(a, began)
	}
	h.endHalf()
}

// stackOf returns where a stream panicked.
func stackOf(failure error) string {
	if p := (*sse.PanicError)(nil); errors.As(failure, &p) {
		return string(p.Stack)
	}
	return ""
}
