package a2a

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"koine/channels"
	"koine/channels/message"
	"koine/internal/caller"
	"koine/internal/delivery/push"
	"koine/internal/names"
	"koine/internal/sse"
	"koine/internal/tasks"
	"koine/kg"
)

// Handler serves JSON-RPC 2.0 requests. It is safe for concurrent use.
type Handler struct {
	store    *kg.Store
	querier  Querier
	channels *channels.Service // nil without any
	tasks    *tasks.Service    // nil without any
	push     *push.Service     // nil without any
	agent    kg.AgentID        // recipient of messages
	streams  *sse.Server
	prefixes *kg.Prefixes
	names    *names.Judge
	options  Options
	log      *slog.Logger
	table    map[string]method
	encoder  *message.Encoder // of events of channels
	events   sharedEvents     // of the graph
}

// NewHandler returns the handler of the JSON-RPC endpoint.
func NewHandler(deps Deps, options Options) *Handler {
	options = options.withDefaults()
	h := &Handler{
		store: deps.Store, querier: deps.Querier, channels: deps.Channels, tasks: deps.Tasks, push: deps.Push, agent: kg.System, streams: deps.Streams, prefixes: deps.Prefixes, names: deps.Names,
		options: options, log: options.Logger, encoder: message.NewEncoder(encodeEvent),
	}
	if h.names == nil {
		h.names = names.NewJudge(h.store, names.Strict)
	}
	h.table = h.methodTable()
	return h
}

// ServeHTTP serves a POST (docs/reference/json-rpc.md): 200 for every answer of a unary method, and 204
// for notifications.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A stream is served from this frame, not from the one that read the request: all
	// frames below it stay in memory for the lifetime of the stream.
	if req := h.serveRequest(w, r); req != nil {
		h.serveStreamMethod(w, r, req)
	}
}

// serveRequest serves all requests but one for a stream, which it returns.
func (h *Handler) serveRequest(w http.ResponseWriter, r *http.Request) (stream *request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "JSON-RPC requests are sent with POST.", http.StatusMethodNotAllowed)
		return nil
	}
	began := time.Now()
	body, refusal := readBody(w, r, h.options.MaxBodyBytes)
	var requests []request
	var batch bool
	if refusal == nil {
		requests, batch, refusal = decodeBody(body, h.options.MaxDepth, h.options.MaxBatch)
	}
	h.setActiveExtensions(w, r, requests...)
	switch {
	case refusal != nil:
		h.observeCall(r.Context(), unknownMethod, began, refusal)
		h.writeResponse(w, r, &response{id: nullID, err: refusal})
	case batch:
		h.serveBatch(w, r, requests)
	case h.isStream(&requests[0]):
		return &requests[0]
	default:
		h.serveUnary(w, r, &requests[0])
	}
	return nil
}

func (h *Handler) isStream(req *request) bool {
	return h.table[req.method].stream != nil && req.err == nil && !req.isNotification()
}

func (h *Handler) serveUnary(w http.ResponseWriter, r *http.Request, req *request) {
	resp := h.answerRequest(r, req)
	if req.isNotification() {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h.writeResponse(w, r, resp)
}

// serveBatch executes the requests in order. Each answer is independent; none has an
// HTTP status of its own.
func (h *Handler) serveBatch(w http.ResponseWriter, r *http.Request, requests []request) {
	out := []byte{'['}
	for i := range requests {
		if i > 0 && requests[i].err == nil {
			if err := h.options.Admit(r.Context()); err != nil {
				requests[i].err = h.errorOf(r.Context(), h.table[requests[i].method].family, false, err)
			}
		}
		resp := h.answerRequest(r, &requests[i])
		if requests[i].isNotification() {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = h.appendResponse(r, out, resp)
	}
	if len(out) == 1 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	writeJSON(w, http.StatusOK, append(out, ']'))
}

// unknownMethod stands for an unknown method in metrics.
const unknownMethod = "unknown"

// answerRequest executes one request and answers it without a stream.
func (h *Handler) answerRequest(r *http.Request, req *request) *response {
	began := time.Now()
	resp := &response{id: req.id, err: req.err}
	m, known := h.table[req.method]
	name := req.method
	switch {
	case !known:
		name = unknownMethod
		if resp.err == nil {
			resp.err = h.methodNotFound(req.method)
		}
	case resp.err != nil:
	case m.stream != nil:
		resp.err = invalidRequest(reasonInvalidRequest, req.method+" answers with a stream, which cannot be part of a batch", "Send the request alone.")
	default:
		resp.result, resp.err = h.callUnary(r, m, req)
	}
	h.observeCall(r.Context(), name, began, resp.err)
	return resp
}

func (h *Handler) callUnary(r *http.Request, m method, req *request) (any, *Error) {
	r, leave, err := h.narrowRequest(r, req)
	defer leave()
	var result any
	if err == nil {
		ctx, end := h.options.Span(r.Context(), req.method)
		result, err = callRecovered(func() (any, error) { return m.unary(ctx, callOf(r, req)) })
		end(err)
	}
	if err != nil {
		return nil, h.errorOf(r.Context(), m.family, false, err)
	}
	return result, nil
}

// callRecovered turns a panic in do into an error.
func callRecovered[T any](do func() (T, error)) (result T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return do()
}

func callOf(r *http.Request, req *request) *call {
	c := &call{caller: caller.From(r.Context()), method: req.method, params: req.params, header: r.Header, http: r}
	if r.URL.RawQuery != "" {
		c.query = r.URL.Query()
	}
	return c
}

// observeCall counts a call that has ended, and logs the cause of an internal error.
func (h *Handler) observeCall(ctx context.Context, method string, began time.Time, e *Error) {
	code := 0
	if e != nil {
		code = e.Code
	}
	if e != nil && e.hidden {
		h.log.ErrorContext(ctx, "call failed", "method", method, "request", caller.From(ctx).RequestID, "error", e.cause)
	}
	h.options.Observe(method, code, time.Since(began))
}
