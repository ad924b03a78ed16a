package a2a

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"koine/internal/sse"
)

// serveStreamMethod answers a request for a stream: with the stream, or with a refusal
// (refuseStream). The stream may be open when it returns; until then its frame stays on the
// stack (see serveStream).
func (h *Handler) serveStreamMethod(w http.ResponseWriter, r *http.Request, req *request) {
	a := &streamRequest{method: req.method, began: time.Now(), request: r, leave: func() {}}
	err := h.serveAsked(w, a, req)
	if err == nil {
		return
	}
	defer a.leave()
	ctx := a.request.Context()
	failed := h.errorOf(ctx, h.table[a.method].family, true, err)
	h.refuseStream(w, a, failed)
	h.observeCall(ctx, a.method, a.began, failed)
}

// streamRequest is a request for a stream until that is open. It does not hold the body.
type streamRequest struct {
	method  string
	id      []byte
	began   time.Time
	request *http.Request // narrowed
	leave   func()
}

// serveAsked serves the stream. An error means that there is none.
func (h *Handler) serveAsked(w http.ResponseWriter, a *streamRequest, req *request) error {
	o, err := h.openingOf(a, req)
	if err != nil {
		return err
	}
	return h.serveStream(w, a.request, o, h.recordEnd(a.method, a.began, a.leave))
}

// recordEnd returns the function that records the end of a stream and leaves its request. It
// holds nothing else of the request.
func (h *Handler) recordEnd(method string, began time.Time, leave func()) func(code int) {
	return func(code int) {
		defer leave()
		h.options.Observe(method, code, time.Since(began))
	}
}

// refuseStream answers a request for a stream with an error: an ordinary JSON-RPC error
// under its HTTP status; or, in base A2A, a stream with only that error (A2A 1.0,
// section 9.4.2), because A2A clients drop the body of any status but 200. Errors about
// rights and limits keep their status for proxies.
func (h *Handler) refuseStream(w http.ResponseWriter, a *streamRequest, e *Error) {
	resp := &response{id: a.id, err: e}
	keeps := slices.Contains(statusesOfStreams, e.status)
	if !h.table[a.method].family.listed || keeps {
		h.writeResponse(w, a.request, resp)
		return
	}
	if err := sse.WriteSingle(w, sse.Event{Data: h.appendResponse(a.request, nil, resp)}); err != nil {
		h.log.DebugContext(a.request.Context(), "refusal not sent", "method", a.method, "error", err) // the client may be gone
	}
}

// statusesOfStreams are the statuses that a refused stream of base A2A keeps.
var statusesOfStreams = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests}

func (h *Handler) openingOf(a *streamRequest, req *request) (o *opening, err error) {
	// A subslice of the body would keep the whole body in memory for the lifetime of
	// the stream.
	a.id = bytes.Clone(req.id)
	if a.request, a.leave, err = h.narrowRequest(a.request, req); err != nil {
		return nil, err
	}
	m := h.table[req.method]
	if o, err = m.stream(a.request.Context(), callOf(a.request, req)); err != nil {
		return nil, err
	}
	o.of, o.write, o.transport, o.method = m.family, responseFraming(a.id), "json-rpc", req.method
	return o, nil
}

// responseFraming encodes each result of a stream as a JSON-RPC response to the request.
func responseFraming(id []byte) *framing {
	return &framing{
		result: func(to []byte, value any) ([]byte, error) { return (&response{id: id, result: value}).appendTo(to) },
		last: func(e *Error) (sse.Event, error) {
			data, err := (&response{id: id, err: e}).appendTo(nil)
			return sse.Event{Data: data}, err
		},
	}
}
