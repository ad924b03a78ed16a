package a2a

import (
	"bytes"
	"net/http"
	"time"

	"koine/internal/sse"
)

// serveStreamMethod answers a request for a stream: with the stream, or with an
// ordinary JSON-RPC error under the HTTP status that belongs to it.
func (h *Handler) serveStreamMethod(w http.ResponseWriter, r *http.Request, req *request) {
	began := time.Now()
	r, leave, err := h.narrowed(r, req)
	defer leave()
	ctx := r.Context()
	// The id as a part of the body would keep the body for as long as the stream
	// is open.
	name, id := req.method, bytes.Clone(req.id)
	var failed *Error
	var o *opening
	if err == nil {
		o, err = h.openingOf(r, req)
	}
	if err == nil {
		err = h.serve(w, r, h.table[name].family, o, responses(id))
	}
	if err != nil {
		failed = h.errorOf(ctx, h.table[name].family, true, err)
		h.write(w, r, &response{id: id, err: failed})
	}
	h.observe(ctx, name, began, failed)
}

func (h *Handler) openingOf(r *http.Request, req *request) (*opening, error) {
	return h.table[req.method].stream(r.Context(), callOf(r, req))
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
