package a2a

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"koine/internal/sse"
)

// serveStreamMethod answers a request for a stream: with the stream, or with a refusal
// (refuseStream).
//
// It waits above the stream for as long as that is open (see serve).
func (h *Handler) serveStreamMethod(w http.ResponseWriter, r *http.Request, req *request) {
	a := &asked{method: req.method, began: time.Now(), request: r, leave: func() {}}
	defer func() { a.leave() }()
	err := h.serveAsked(w, a, req)
	h.answered(w, a, err)
}

// asked is a request for a stream, while that is open. It is not on the stack, and it
// does not hold the body.
type asked struct {
	method  string
	id      []byte
	began   time.Time
	request *http.Request // narrowed
	leave   func()
}

func (h *Handler) serveAsked(w http.ResponseWriter, a *asked, req *request) error {
	o, err := h.openingOf(a, req)
	if err != nil {
		return err
	}
	return h.serve(w, a.request, o)
}

// answered answers the request if there was no stream, and takes note of what it came
// to.
func (h *Handler) answered(w http.ResponseWriter, a *asked, err error) {
	var failed *Error
	ctx := a.request.Context()
	if err != nil {
		failed = h.errorOf(ctx, h.table[a.method].family, true, err)
		h.refuseStream(w, a, failed)
	}
	h.observe(ctx, a.method, a.began, failed)
}

// refuseStream answers that there is no stream: with an ordinary JSON-RPC error under the
// HTTP status that belongs to it; or, in base A2A, with a stream of that error alone (A2A
// 1.0, section 9.4.2), because the clients of A2A drop the body of any other status than
// 200. What is about who calls, or how much, keeps its status for what stands between.
func (h *Handler) refuseStream(w http.ResponseWriter, a *asked, e *Error) {
	resp := &response{id: a.id, err: e}
	keeps := slices.Contains(statusesOfStreams, e.status)
	if !h.table[a.method].family.listed || keeps {
		h.write(w, a.request, resp)
		return
	}
	if err := sse.WriteSingle(w, sse.Event{Data: h.append(a.request, nil, resp)}); err != nil {
		h.log.DebugContext(a.request.Context(), "a refusal was not sent", "method", a.method, "error", err) // the client may be gone
	}
}

// statusesOfStreams are those that a refused stream of base A2A has too.
var statusesOfStreams = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests}

func (h *Handler) openingOf(a *asked, req *request) (o *opening, err error) {
	// The id as a part of the body would keep the body for as long as the stream
	// is open.
	a.id = bytes.Clone(req.id)
	if a.request, a.leave, err = h.narrowed(a.request, req); err != nil {
		return nil, err
	}
	m := h.table[req.method]
	if o, err = m.stream(a.request.Context(), callOf(a.request, req)); err != nil {
		return nil, err
	}
	o.of, o.write = m.family, responses(a.id)
	return o, nil
}

// responses writes each result of a stream as a JSON-RPC response to the
// request.
func responses(id []byte) *framing {
	return &framing{
		result: func(value any) ([]byte, error) { return (&response{id: id, result: value}).append(nil) },
		last: func(e *Error) (sse.Event, error) {
			data, err := (&response{id: id, err: e}).append(nil)
			return sse.Event{Data: data}, err
		},
	}
}
