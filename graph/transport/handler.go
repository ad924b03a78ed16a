package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/recent"
	"koine/internal/sse"
	"koine/internal/ws"
	"koine/kg"
)

// Handler serves GraphQL for an engine, and the schema as a document: at a path
// that ends with /schema, and to a GET that accepts application/graphql and has
// no operation.
type Handler struct {
	engine    Engine
	positions Positions
	streams   *sse.Server
	options   Options
	sdl       []byte
	etag      string

	schema, answer http.Handler // compressing handlers
	reservations   *reservations
	sockets        *ws.Server
	shared         *recent.Values[sharedResult, sse.Event]
}

// NewHandler returns a handler. Its streams end with the server Deps.Streams.
// The handler itself need not be closed.
func NewHandler(deps Deps, options Options) *Handler {
	sdl := []byte(deps.Engine.SDL())
	sum := sha256.Sum256(sdl)
	h := &Handler{
		engine: deps.Engine, positions: deps.Positions, streams: deps.Streams, options: options.withDefaults(), shared: newSharedEvents(),
		sdl: sdl, etag: `W/"` + hex.EncodeToString(sum[:8]) + `"`,
	}
	compressed := newCompressor(h.options.CompressBytes)
	h.schema, h.answer = compressed(http.HandlerFunc(h.serveSchema)), compressed(http.HandlerFunc(h.serveAnswer))
	h.reservations, h.sockets = newReservations(h), h.newSocketServer()
	return h
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form := negotiateForm(r.Header.Values("Accept"))
	switch {
	case schemaType(r.URL.Path) != "":
		h.schema.ServeHTTP(w, r)
	case isUpgrade(r):
		h.serveSocket(w, r)
	case wantsSchema(r):
		w.Header().Add("Vary", "Accept")
		h.schema.ServeHTTP(w, r)
	case h.serveSingle(w, r, form):
	case form == formNone:
		writeRefusal(w, formJSON, http.StatusNotAcceptable, string(kg.CodeInvalid), "the answer can be application/graphql-response+json, application/json or text/event-stream")
	case form == formEvents:
		if req, kind, ok := h.readRequest(w, r, form); ok {
			h.serveEvents(w, r, req, kind)
		}
	default:
		h.answer.ServeHTTP(w, r)
	}
}

// serveAnswer answers with a single response.
func (h *Handler) serveAnswer(w http.ResponseWriter, r *http.Request) {
	form := negotiateForm(r.Header.Values("Accept"))
	if req, _, ok := h.readRequest(w, r, form); ok {
		result := h.executeOperation(r.Context(), req)
		h.writeResult(w, form, &result)
	}
}

// readRequest decodes the operation of a request, and its type if that matters. It
// answers invalid requests itself.
func (h *Handler) readRequest(w http.ResponseWriter, r *http.Request, form responseForm) (req operation.Request, kind ast.Operation, ok bool) {
	req, e := h.decodeRequest(w, r)
	if e == nil && (req.QueriesOnly || form == formEvents) {
		kind = h.operationKind(&req)
	}
	if req.QueriesOnly && kind == ast.Mutation {
		e = mutationByGet()
	}
	if e != nil {
		e.write(w, form)
		return req, kind, false
	}
	who := caller.From(r.Context())
	req.Principal, req.Actor = who.Principal, who.Actor
	return req, kind, true
}

// schemaMediaType is the type of a schema as a GraphQL document.
const schemaMediaType = "application/graphql"

// schemaType returns the media type of the schema at a path, "" for other
// paths. /schema is plain text for people. The other names have the file
// extensions by which tools such as graphql-codegen distinguish a schema from
// an endpoint.
func schemaType(path string) string {
	switch path = strings.TrimSuffix(path, "/"); {
	case strings.HasSuffix(path, "/schema"):
		return "text/plain; charset=utf-8"
	case strings.HasSuffix(path, "/schema.graphql"), strings.HasSuffix(path, "/schema.graphqls"):
		return schemaMediaType + "; charset=utf-8"
	}
	return ""
}

// wantsSchema reports whether a request to the endpoint asks for the schema: it
// accepts a GraphQL document and has no operation, whose answer would be JSON.
func wantsSchema(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get(TokenHeader) != "" {
		return false
	}
	for _, name := range []string{"query", "documentId", "extensions", "token"} {
		if r.URL.Query().Has(name) {
			return false
		}
	}
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if q, bad := strconv.ParseFloat(params["q"], 64); err == nil && kind == schemaMediaType && (bad != nil || q > 0) {
			return true
		}
	}
	return false
}

func (h *Handler) serveSchema(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeRefusal(w, formJSON, http.StatusMethodNotAllowed, string(kg.CodeInvalid), "the schema is read with GET")
		return
	}
	kind := schemaType(r.URL.Path)
	if kind == "" {
		kind = schemaMediaType + "; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("ETag", h.etag)
	w.Header().Set("Cache-Control", "no-cache")
	if h.isCurrent(r) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(h.sdl) // the client may be gone
}

// isCurrent reports whether the client has the schema already (RFC 9110,
// section 13.1.2).
func (h *Handler) isCurrent(r *http.Request) bool {
	for _, tag := range strings.Split(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(h.etag, "W/") {
			return true
		}
	}
	return false
}

// statusOf returns the HTTP status of a result (GraphQL over HTTP, section
// 6.4). Under application/json a GraphQL response always has status 200,
// because clients of that media type drop the body of any other status. An
// overload without any data is 429 in both forms, and an update that is larger
// than a commit may be is 413.
func statusOf(form responseForm, result *operation.Result) int {
	if isOverload(result) && gaveNothing(result.Data) {
		return http.StatusTooManyRequests
	}
	if len(result.Errors) > 0 && result.Errors[0].Extensions["limit"] == kg.LimitCommitBytes && gaveNothing(result.Data) {
		return http.StatusRequestEntityTooLarge
	}
	if result.Data != nil || len(result.Errors) == 0 {
		return http.StatusOK
	}
	code, _ := result.Errors[0].Extensions["code"].(string)
	switch {
	case form == formJSON:
		return http.StatusOK
	case code == string(kg.CodeInternal):
		return http.StatusInternalServerError
	case code == string(kg.CodeTimeout):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// gaveNothing reports whether every field of an answer is null.
func gaveNothing(data json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if len(data) > 0 && json.Unmarshal(data, &fields) != nil {
		return false
	}
	for _, value := range fields {
		if string(value) != "null" {
			return false
		}
	}
	return true
}
