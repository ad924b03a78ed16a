package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/sse"
	"koine/kg"
)

// HandlerOptions of a Handler. The zero value works.
type HandlerOptions struct {
	// MaxBodyBytes bounds a request's body; 0 means DefaultMaxBodyBytes.
	MaxBodyBytes int64
	// UpToDateEvery is how often a subscription is told the position scanned to
	// while nothing matches; 0 means DefaultUpToDateEvery.
	UpToDateEvery time.Duration
}

// Defaults and bounds of a Handler.
const (
	DefaultMaxBodyBytes  = 4 << 20
	DefaultUpToDateEvery = 15 * time.Second
	// MaxBodyDepth bounds the nesting of objects and lists in a body.
	MaxBodyDepth = 64
)

// Handler speaks GraphQL over HTTP for an engine: POST and GET, event streams
// (graphql-sse, distinct connections mode), and the schema as a document at a
// path that ends with /schema.
type Handler struct {
	engine  *Engine
	streams *sse.Server
	options HandlerOptions
	sdl     []byte
	etag    string
}

// NewHandler makes a handler. The streams' server ends the subscriptions when
// it is shut down; the handler has nothing to be closed.
func NewHandler(engine *Engine, streams *sse.Server, options HandlerOptions) *Handler {
	if options.MaxBodyBytes <= 0 {
		options.MaxBodyBytes = DefaultMaxBodyBytes
	}
	if options.UpToDateEvery <= 0 {
		options.UpToDateEvery = DefaultUpToDateEvery
	}
	sdl := []byte(engine.SDL())
	sum := sha256.Sum256(sdl)
	return &Handler{engine: engine, streams: streams, options: options, sdl: sdl, etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/schema") {
		h.serveSchema(w, r)
		return
	}
	form := negotiate(r.Header.Values("Accept"))
	if form == formNone {
		refuse(w, formJSON, http.StatusNotAcceptable, string(kg.CodeInvalid), "the answer can be application/graphql-response+json, application/json or text/event-stream")
		return
	}
	req, e := h.decode(w, r)
	if e != nil {
		e.write(w, form)
		return
	}
	who := caller.From(r.Context())
	req.Principal, req.Actor = who.Principal, who.Actor
	var kind ast.Operation
	if req.QueriesOnly || form == formEvents {
		kind = h.engine.kindOf(&req)
	}
	if req.QueriesOnly && kind == ast.Mutation {
		e := &httpError{status: http.StatusMethodNotAllowed, code: kg.CodePermissionDenied, allow: "POST", message: "a mutation needs a POST request"}
		e.write(w, form)
		return
	}
	if form == formEvents {
		h.serveEvents(w, r, req, kind)
		return
	}
	result := h.engine.Execute(r.Context(), req)
	h.writeResult(w, form, result)
}

func (h *Handler) serveSchema(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, formJSON, http.StatusMethodNotAllowed, string(kg.CodeInvalid), "the schema is read with GET")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("ETag", h.etag)
	w.Header().Set("Cache-Control", "no-cache")
	if r.Header.Get("If-None-Match") == h.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(h.sdl) // a client that went away needs no answer
}

// statusOf is the HTTP status of a result (GraphQL over HTTP, section 6.4).
// Under application/json, whose readers drop the body of any other status, an
// answer in GraphQL's own terms is always 200.
func statusOf(form responseForm, result *operation.Result) int {
	if result.Data != nil || len(result.Errors) == 0 {
		return http.StatusOK
	}
	code, _ := result.Errors[0].Extensions["code"].(string)
	switch {
	case code == string(kg.CodeOverloaded):
		return http.StatusTooManyRequests
	case form == formJSON:
		return http.StatusOK
	case code == string(kg.CodeInternal):
		return http.StatusInternalServerError
	case code == string(kg.CodeTimeout):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}
