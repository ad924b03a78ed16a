package transport

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/internal/throttle"
	"koine/kg"
)

// TokenHeader carries the token of a reserved stream. The search parameter
// "token" is equivalent.
const TokenHeader = "X-GraphQL-Event-Stream-Token"

func tokenOf(r *http.Request) string {
	if token := r.Header.Get(TokenHeader); token != "" {
		return token
	}
	return r.URL.Query().Get("token")
}

// serveSingle answers requests of graphql-sse's single connection mode and
// reports whether the request is one: PUT reserves a stream, GET opens it,
// other requests with its token run operations on it, DELETE stops an
// operation.
func (h *Handler) serveSingle(w http.ResponseWriter, r *http.Request, form responseForm) bool {
	token := tokenOf(r)
	switch {
	case r.Method == http.MethodPut:
		h.serveReserve(w, r, token)
		return true
	case r.Method == http.MethodDelete:
	case token == "" || r.Method != http.MethodGet && r.Method != http.MethodPost:
		return false
	}
	reserved, e := h.findReservation(r, token)
	switch {
	case e != nil:
		e.write(w, formJSON)
	case r.Method == http.MethodDelete:
		h.serveStop(w, r, reserved)
	case r.Method == http.MethodGet && form == formEvents && !r.URL.Query().Has("query"):
		h.openReserved(w, r, reserved)
	default:
		h.serveOperation(w, r, reserved)
	}
	return true
}

// serveReserve answers with the token of a new reservation.
func (h *Handler) serveReserve(w http.ResponseWriter, r *http.Request, token string) {
	if token != "" && h.reservations.get(token) != nil {
		conflictError("a stream with this token exists already").write(w, formJSON)
		return
	}
	if !acceptsText(r.Header.Values("Accept")) {
		writeRefusal(w, formJSON, http.StatusNotAcceptable, string(kg.CodeInvalid), "the token is text/plain: accept it")
		return
	}
	reserved, err := h.reservations.addReservation(r.Context())
	if err != nil {
		refuseStream(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(reserved.token)) // the reservation expires if the client is gone
}

// findReservation returns the reservation of a request.
func (h *Handler) findReservation(r *http.Request, token string) (*reservation, *httpError) {
	if r.Method == http.MethodGet {
		if e := refuseCrossSite(r); e != nil {
			return nil, e
		}
	}
	reserved := h.reservations.get(token)
	switch {
	case reserved == nil:
		return nil, noStream()
	case !reserved.isOf(caller.From(r.Context())):
		return nil, &httpError{status: http.StatusUnauthorized, code: kg.CodePermissionDenied, message: "the stream belongs to another caller"}
	}
	return reserved, nil
}

// openReserved answers with the stream of a reservation.
func (h *Handler) openReserved(w http.ResponseWriter, r *http.Request, reserved *reservation) {
	if !h.reservations.open(reserved) {
		conflictError("the stream is open already").write(w, formJSON)
		return
	}
	if err := reserved.serveStream(w, r); err != nil {
		h.reportEnd(r.Context(), err, sse.End{Transport: transportEvents})
		refuseStream(w, err)
	}
}

// serveOperation begins an operation whose results go to the stream. Earlier errors
// are answered directly.
func (h *Handler) serveOperation(w http.ResponseWriter, r *http.Request, reserved *reservation) {
	body := &countedBody{ReadCloser: r.Body}
	r.Body = body
	req, e := h.decodeRequest(w, r)
	if e != nil {
		e.write(w, formResponse)
		return
	}
	// The operation holds its request after this answer.
	received, started := h.options.Intake.Receive(throttle.OwnerOf(reserved.owner)), false
	defer func() {
		if !started {
			received.Release()
		}
	}()
	if err := received.Grow(body.bytes + int64(len(r.URL.RawQuery))); err != nil {
		h.writeResult(w, formResponse, &operation.Result{Errors: h.engine.Present(err)})
		return
	}
	req.Principal, req.Actor = reserved.owner.Principal, reserved.owner.Actor
	kind := h.operationKind(&req)
	if req.QueriesOnly && kind == ast.Mutation {
		mutationByGet().write(w, formResponse)
		return
	}
	op, e := startReserved(reserved, &req)
	if e != nil {
		e.write(w, formResponse)
		return
	}
	f, refused := h.beginShared(caller.With(op.ctx, reserved.owner), req, kind)
	switch {
	case refused != nil:
		reserved.operations.endOperation(op)
		h.writeResult(w, formResponse, refused)
	default:
		f.transport = transportEvents
		started = true
		go func() {
			defer received.Release()
			reserved.playFeed(op, f)
		}()
		w.WriteHeader(http.StatusAccepted)
	}
}

// countedBody counts the bytes that are read of a body.
type countedBody struct {
	io.ReadCloser
	bytes int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	return n, err
}

// startReserved registers an operation on the stream.
func startReserved(reserved *reservation, req *operation.Request) (*running, *httpError) {
	id, _ := req.Extensions["operationId"].(string)
	if id == "" || len(id) > MaxOperationID {
		return nil, badRequest("extensions.operationId must be a non-empty string of at most 256 bytes")
	}
	op, err := reserved.operations.startOperation(reserved.ctx, id)
	switch {
	case errors.Is(err, errDuplicate):
		return nil, conflictError("an operation with this id runs already")
	case errors.Is(err, errTooMany):
		return nil, &httpError{status: http.StatusTooManyRequests, errs: gqlerror.List{tooManyOperations()}}
	case err != nil:
		return nil, noStream()
	}
	return op, nil
}

// serveStop ends an operation, if it still runs.
func (h *Handler) serveStop(w http.ResponseWriter, r *http.Request, reserved *reservation) {
	id := r.URL.Query().Get("operationId")
	if id == "" {
		badRequest("the parameter operationId is missing").write(w, formJSON)
		return
	}
	reserved.operations.stopOperation(id)
	w.WriteHeader(http.StatusOK)
}

func noStream() *httpError {
	return &httpError{status: http.StatusNotFound, code: kg.CodeNotFound, message: "no stream has this token"}
}

func conflictError(message string) *httpError {
	return &httpError{status: http.StatusConflict, code: kg.CodeInvalid, message: message}
}

// acceptsText reports whether the Accept headers allow plain text.
func acceptsText(accept []string) bool {
	all := strings.Join(accept, ",")
	return strings.TrimSpace(all) == "" || strings.Contains(all, "*/*") || strings.Contains(all, "text/*") || strings.Contains(all, "text/plain")
}
