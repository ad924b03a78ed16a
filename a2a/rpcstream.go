package a2a

import (
	"net/http"
	"time"

	"koine/internal/sse"
)

// serveStreamMethod answers a request for a stream: with the stream, or with an
// ordinary JSON-RPC error under the HTTP status that belongs to it.
func (h *Handler) serveStreamMethod(w http.ResponseWriter, r *http.Request, m method, req *request) {
	began := time.Now()
	ctx := r.Context()
	var failed *Error
	if err := h.openStream(w, r, m, req); err != nil {
		failed = h.errorOf(ctx, m.family, true, err)
		h.write(w, r, &response{id: req.id, err: failed})
	}
	h.observe(ctx, req.method, began, failed)
}

// openStream serves the stream with each result as a JSON-RPC response to the
// request.
func (h *Handler) openStream(w http.ResponseWriter, r *http.Request, m method, req *request) (err error) {
	o, err := m.stream(r.Context(), callOf(r, req))
	if err != nil {
		return err
	}
	return h.serve(w, r, o, framing{
		result: func(value any) ([]byte, error) { return (&response{id: req.id, result: value}).append(nil) },
		last: func(e *Error) (sse.Event, error) {
			data, err := (&response{id: req.id, err: e}).append(nil)
			return sse.Event{Data: data}, err
		},
	})
}
