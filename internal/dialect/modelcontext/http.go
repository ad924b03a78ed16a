package modelcontext

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"koine/internal/caller"
	"koine/internal/operation"
	"koine/internal/sse"
)

// Path is the path of the protocol over HTTP.
const Path = "/mcp"

// MaxBodyBytes bounds a request.
const MaxBodyBytes = 1 << 20

// newestProtocol is the first version of the protocol without sessions.
const newestProtocol = "2026-07-28"

// Executor executes GraphQL operations.
type Executor interface {
	Execute(context.Context, operation.Request) operation.Result
	Subscribe(context.Context, operation.Request) (operation.Subscription, error)
}

// Handler serves the protocol's streamable HTTP for the caller of each request (caller.From).
//
// It keeps no state of clients of the newest protocol, and of others that send no initialize.
// Those that do have a session, which is needed to be notified and to cancel calls; tools
// keep nothing in it. Requests of a session of an earlier process are answered without one,
// so that clients go on after a restart.
type Handler struct {
	executing *executing
	options   Options
	streams   *sse.Server
	sessions  *sessions
	shared    *mcp.Server // of all requests without a session, since to make one costs several times a call

	plain, streaming, stateful http.Handler
}

// NewHandler returns a handler. Close ends its sessions.
func NewHandler(e Executor, streams *sse.Server, o Options) *Handler {
	x := &executing{e}
	o.rows, o.schemas = o.chooseTools(x), mcp.NewSchemaCache()
	h := &Handler{executing: x, options: o, streams: streams, sessions: newSessions(rand.Text()[:8] + "-")}
	h.shared = newServer(h.executing, o, nil, nil)
	serve := func(o mcp.StreamableHTTPOptions) http.Handler {
		o.Logger, o.MaxRequestBodyBytes = h.options.Logger, MaxBodyBytes
		o.DisableLocalhostProtection = true   // package httpd checks Host and Origin
		o.PropagateRequestCancellation = true // nobody reads the answer
		return mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
			if own, ok := r.Context().Value(serverKey{}).(*mcp.Server); ok {
				return own
			}
			return h.shared
		}, &o)
	}
	h.plain = serve(mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	h.streaming = serve(mcp.StreamableHTTPOptions{Stateless: true})
	h.stateful = asCaller(serve(mcp.StreamableHTTPOptions{}))
	return h
}

// Close ends all sessions.
func (h *Handler) Close() { h.sessions.endAll() }

// serverKey is the key of the server of a request's own in its context.
type serverKey struct{}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	if err != nil {
		status := http.StatusBadRequest
		if errors.As(err, new(*http.MaxBytesError)) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, fmt.Sprintf("the request has a body of more than %d bytes, or it did not arrive: %v", MaxBodyBytes, err), status)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	id := r.Header.Get("Mcp-Session-Id")
	switch {
	case r.Header.Get("Mcp-Protocol-Version") >= newestProtocol:
		h.serveStateless(w, r, body)
	case id != "" && (h.sessions.isOwn(id) || r.Method != http.MethodPost):
		h.serveSession(w, r, id)
	case r.Method == http.MethodPost && isInitialize(body):
		h.beginSession(w, r)
	default:
		h.serveStateless(w, r, body)
	}
}

// isInitialize reports whether a request begins a session.
func isInitialize(body []byte) bool {
	var call struct {
		Method string `json:"method"`
	}
	return bytes.Contains(body, []byte(`"initialize"`)) && json.Unmarshal(body, &call) == nil && call.Method == "initialize"
}

// serveStateless answers with a JSON object, or with a stream where a call reports progress
// or listens.
func (h *Handler) serveStateless(w http.ResponseWriter, r *http.Request, body []byte) {
	switch {
	case r.Header.Get("Mcp-Method") == "subscriptions/listen":
		h.serveStream(w, r, func(w http.ResponseWriter, r *http.Request) {
			server := newServer(h.executing, h.options, &watching{life: r.Context(), watcher: h.executing}, nil)
			h.streaming.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, server)))
		})
	case bytes.Contains(body, []byte(`"progressToken"`)):
		h.streaming.ServeHTTP(w, r)
	default:
		h.plain.ServeHTTP(w, r)
	}
}

// serveStream serves a request that lasts: it has a place among the streams, and ends with its
// credential and with the server.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request)) {
	st, err := h.streams.Open(r.Context(), sse.StreamOptions{})
	if err != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer st.Close()
	beats := newBeating(w, h.options.Heartbeat)
	defer beats.stopBeats()
	serve(beats, r.WithContext(st.Context()))
	h.streams.ReportEnd(r.Context(), sse.End{Transport: "mcp", Reason: endReason(st.Context()), Method: r.Header.Get("Mcp-Method")})
}

// executing runs operations for the caller in their context.
type executing struct{ executor Executor }

// newRequest returns a request of the caller in the context.
func (x *executing) newRequest(ctx context.Context, query string, variables map[string]any) (operation.Request, error) {
	by := caller.From(ctx)
	request := operation.Request{Query: query, Principal: by.Principal, Actor: by.Actor, Method: "mcp"}
	if variables == nil {
		return request, nil
	}
	raw, err := json.Marshal(variables)
	if err != nil {
		return request, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return request, d.Decode(&request.Variables)
}

// GraphQL runs an operation and decodes its data.
func (x *executing) GraphQL(ctx context.Context, query string, variables map[string]any, into any) error {
	_, err := x.Hinted(ctx, query, variables, into)
	return err
}

// Hinted runs an operation, decodes its data, and returns its hints.
func (x *executing) Hinted(ctx context.Context, query string, variables map[string]any, into any) (hints []string, err error) {
	request, err := x.newRequest(ctx, query, variables)
	if err != nil {
		return nil, err
	}
	result := x.executor.Execute(ctx, request)
	if len(result.Errors) > 0 {
		e := result.Errors[0]
		text := e.Message
		if code, ok := e.Extensions["code"].(string); ok {
			text += " (" + code + ")"
		}
		if hint, ok := e.Extensions["hint"].(string); ok {
			text += ". " + hint
		}
		return nil, errors.New(text)
	}
	if err := json.Unmarshal(result.Data, into); err != nil {
		return nil, fmt.Errorf("answer is not readable: %w", err)
	}
	for _, h := range result.Hints {
		hints = append(hints, FormatHint(h.Message, h.Nearest))
	}
	return hints, nil
}

// Watch follows a subscription.
func (x *executing) Watch(ctx context.Context, subscription string, variables map[string]any) iter.Seq[error] {
	return func(yield func(error) bool) {
		request, err := x.newRequest(ctx, subscription, variables)
		if err != nil {
			yield(err)
			return
		}
		for {
			s, err := x.executor.Subscribe(ctx, request)
			if err != nil {
				yield(err)
				return
			}
			goOn := yieldChanges(s, yield)
			s.Close()
			if !goOn || ctx.Err() != nil {
				return
			}
		}
	}
}
