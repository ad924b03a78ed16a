package httpd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"koine/internal/caller"
	"koine/kg"
)

// Form is the format in which the protocol of a route writes errors.
type Form uint8

// The forms.
const (
	// Plain: {"error": {"message": …, "data": {…}}}.
	Plain Form = iota
	// JSONRPC: a response object with a null id.
	JSONRPC
	// GraphQL: {"errors": [{"message": …, "extensions": {…}}]}.
	GraphQL
	// A2AHTTP: a google.rpc.Status in error, beside the code and message of JSON-RPC, which
	// clients of A2A 0.3 read.
	A2AHTTP
	// Coded: {"error": {"code": "…", "message": …, "details": {…}}}, with koine's codes.
	Coded
	// Named is Coded with the codes of the REST protocol of agents and tasks.
	Named
	// Framed: {"type": "error", "code": "…", "message": …}, with the codes of AgentChat.
	Framed
	// Detailed: {"detail": …, "message": …, "code": "…"}, with koine's codes.
	Detailed
)

// refusal is an error answer of the server in place of a handler.
type refusal struct {
	status  int
	rpc     int // code in JSON-RPC
	reason  string
	message string
	hint    string
	retry   int // Retry-After in seconds; 0 for none
	// challenge is WWW-Authenticate, "" for none (RFC 6750, section 3).
	challenge string
}

// The JSON-RPC error codes of refusals.
const (
	rpcInvalidRequest   = -32600
	rpcInternal         = -32603
	rpcPermissionDenied = -31102
	rpcRateLimit        = -31105
)

var (
	foreignHost = &refusal{status: http.StatusForbidden, rpc: rpcPermissionDenied, reason: "HOST_FORBIDDEN",
		message: "the server accepts loopback host names and addresses only",
		hint:    "Use http://127.0.0.1 or http://localhost; --insecure disables the check."}
	foreignOrigin = &refusal{status: http.StatusForbidden, rpc: rpcPermissionDenied, reason: "ORIGIN_FORBIDDEN",
		message: "the origin is not allowed to use the server"}
	overloaded = &refusal{status: http.StatusTooManyRequests, rpc: rpcRateLimit, reason: string(kg.CodeOverloaded),
		message: "too many requests are in progress", hint: "Try again later.", retry: 1}
	tooManyConnections = &refusal{status: http.StatusTooManyRequests, rpc: rpcRateLimit, reason: string(kg.CodeOverloaded),
		message: "the caller has too many open connections", hint: "Reuse connections, and close unused ones.", retry: 1}
	tooSlow = &refusal{status: http.StatusRequestTimeout, rpc: rpcInvalidRequest, reason: string(kg.CodeTimeout),
		message: "the body did not arrive in time", hint: "Send at least 16 KiB per second, or a smaller body."}
	noCredential = &refusal{status: http.StatusUnauthorized, rpc: rpcPermissionDenied, reason: string(kg.CodeUnauthenticated),
		message: "authentication required", challenge: challenge,
		hint: "Send an API key or a token as Authorization: Bearer …, or a key as X-API-Key."}
	sourceForbidden = &refusal{status: http.StatusForbidden, rpc: rpcPermissionDenied, reason: string(kg.CodeSourceForbidden),
		message: "you may not act for the agent in X-Agent-ID", hint: "Omit the header to act for yourself."}
	notAdmin = &refusal{status: http.StatusForbidden, rpc: rpcPermissionDenied, reason: string(kg.CodePermissionDenied),
		message: "the path requires the role of an administrator"}
	broken = &refusal{status: http.StatusInternalServerError, rpc: rpcInternal, reason: string(kg.CodeInternal),
		message: "Internal error", hint: "The server's log has the details under the request id."}
)

func invalidAgent(err error) *refusal {
	return &refusal{status: http.StatusBadRequest, rpc: rpcInvalidRequest, reason: string(kg.CodeInvalid),
		message: "X-Agent-ID: " + kg.AsError(err).Message}
}

const challenge = `Bearer realm="koine"`

// badCredential is the refusal of a malformed credential.
func badCredential(message string) *refusal {
	f := *noCredential
	f.message, f.challenge = message, challenge+`, error="invalid_request"`
	return &f
}

// notAdmitted is the refusal of an invalid credential or a suspended agent.
func notAdmitted(err error) *refusal {
	switch e := kg.AsError(err); e.Code {
	case kg.CodeUnauthenticated:
		f := *noCredential
		f.message, f.hint, f.challenge = e.Message, e.Hint, challenge+`, error="invalid_token"`
		return &f
	case kg.CodePermissionDenied:
		f := *notAdmin
		f.message = e.Message
		return &f
	}
	return broken
}

type (
	refusalData struct {
		Reason       string `json:"reason"`
		Domain       string `json:"domain"`
		Hint         string `json:"hint,omitempty"`
		RetryAfterMs int    `json:"retryAfterMs,omitempty"`
	}
	refusalError struct {
		Code    int         `json:"code,omitempty"`
		Message string      `json:"message"`
		Data    refusalData `json:"data"`
	}
	namedError struct {
		Code    string       `json:"code"`
		Message string       `json:"message"`
		Details namedDetails `json:"details,omitzero"`
	}
	namedDetails struct {
		Reason       string `json:"reason,omitempty"`
		Hint         string `json:"hint,omitempty"`
		RetryAfterMs int    `json:"retryAfterMs,omitempty"`
	}
	namedFailure struct {
		Error namedError `json:"error"`
	}
	framedError struct {
		Type         string `json:"type"`
		Code         string `json:"code"`
		Message      string `json:"message"`
		RetryAfterMs int    `json:"retry_after_ms,omitempty"`
	}
	detailedError struct {
		Detail  string `json:"detail"`
		Message string `json:"message"`
		Code    string `json:"code"`
	}
	a2aFailure struct {
		Code    int      `json:"code"`
		Message string   `json:"message"`
		Error   a2aError `json:"error"`
	}
	a2aError struct {
		Code    int         `json:"code"`
		Status  string      `json:"status"`
		Message string      `json:"message"`
		Details []a2aDetail `json:"details"`
	}
	a2aDetail struct {
		Type     string            `json:"@type"`
		Reason   string            `json:"reason"`
		Domain   string            `json:"domain"`
		Metadata map[string]string `json:"metadata,omitempty"`
	}
	graphQLError struct {
		Message    string            `json:"message"`
		Extensions graphQLExtensions `json:"extensions"`
	}
	graphQLExtensions struct {
		Code         string `json:"code"`
		Hint         string `json:"hint,omitempty"`
		RetryAfterMs int    `json:"retryAfterMs,omitempty"`
	}
)

// bodyIn returns the refusal in the format.
func (f *refusal) bodyIn(form Form) any {
	data := refusalData{f.reason, "koine", f.hint, f.retry * 1000}
	switch form {
	case JSONRPC:
		return struct {
			Version string       `json:"jsonrpc"`
			ID      any          `json:"id"`
			Error   refusalError `json:"error"`
		}{"2.0", nil, refusalError{f.rpc, f.message, data}}
	case GraphQL:
		return struct {
			Errors []graphQLError `json:"errors"`
		}{[]graphQLError{{f.message, graphQLExtensions{f.reason, f.hint, f.retry * 1000}}}}
	case A2AHTTP:
		const info = "type.googleapis.com/google.rpc.ErrorInfo"
		details := []a2aDetail{{info, f.reason, "koine", f.a2aMetadata()}}
		if reason := f.a2aReason(); reason != "" {
			details = append(details, a2aDetail{info, reason, "a2a-protocol.org", nil})
		}
		return a2aFailure{f.rpc, f.message, a2aError{f.status, f.rpcName(), f.message, details}}
	case Coded:
		return namedFailure{namedError{f.reason, f.message, namedDetails{"", f.hint, f.retry * 1000}}}
	case Named:
		return namedFailure{namedError{f.codeName(), f.message, namedDetails{f.reason, f.hint, f.retry * 1000}}}
	case Framed:
		return framedError{"error", f.frameCode(), f.message, f.retry * 1000}
	case Detailed:
		text := f.message
		if f.status == http.StatusUnauthorized {
			text = "Invalid or missing API key" // the words that clients of OpenIntent know
		}
		return detailedError{text, text, f.reason}
	}
	return struct {
		Error refusalError `json:"error"`
	}{refusalError{0, f.message, data}}
}

// rpcName returns the refusal's name in google.rpc.Code.
func (f *refusal) rpcName() string {
	switch f.status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusInternalServerError:
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// a2aReason returns the reason by which the Go client of A2A knows a refusal of the caller, ""
// for another refusal.
func (f *refusal) a2aReason() string {
	switch f.status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "UNAUTHORIZED"
	}
	return ""
}

// a2aMetadata returns the details of the refusal, which are texts there.
func (f *refusal) a2aMetadata() map[string]string {
	out := map[string]string{}
	if f.hint != "" {
		out["hint"] = f.hint
	}
	if f.retry > 0 {
		out["retryAfterMs"] = strconv.Itoa(f.retry * 1000)
	}
	return out
}

// codeName returns the refusal's code in the REST protocol of agents and tasks.
func (f *refusal) codeName() string {
	switch f.status {
	case http.StatusUnauthorized:
		return "AUTHENTICATION_ERROR"
	case http.StatusForbidden:
		return "AUTHORIZATION_ERROR"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusInternalServerError:
		return "INTERNAL_SERVER_ERROR"
	case http.StatusTooManyRequests:
		return "RATE_LIMITED"
	}
	return "INVALID_REQUEST"
}

// frameCode returns the refusal's code in AgentChat.
func (f *refusal) frameCode() string {
	switch f.status {
	case http.StatusUnauthorized:
		return "UNAUTHORIZED"
	case http.StatusForbidden:
		return "FORBIDDEN"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusInternalServerError:
		return "INTERNAL"
	case http.StatusTooManyRequests:
		return "RATE_LIMITED"
	}
	return "INVALID"
}

// writeRefusal answers in the format of the request's route.
func (s *Server) writeRefusal(w http.ResponseWriter, r *http.Request, by caller.Caller, f *refusal) {
	s.noteRefusal(r.Context(), by, f)
	_, pattern := s.mux.Handler(r)
	if f.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retry))
	}
	if f.challenge != "" {
		w.Header().Set("WWW-Authenticate", f.challenge+s.resourceMetadata(r))
	}
	writeJSON(w, f.status, f.bodyIn(s.routeOf(pattern).form))
}

// resourceMetadata returns the parameter of a challenge that names the metadata (RFC 9728,
// section 5.1), "" for a path without.
func (s *Server) resourceMetadata(r *http.Request) string {
	if s.options.ResourceMetadata == nil {
		return ""
	}
	if url := s.options.ResourceMetadata(r); url != "" {
		return fmt.Sprintf(", resource_metadata=%q", url)
	}
	return ""
}

// noteRefusal counts a refusal and adds it to the audit trail.
func (s *Server) noteRefusal(ctx context.Context, by caller.Caller, f *refusal) {
	s.metrics.refused.WithLabelValues(f.reason).Inc()
	s.options.Trail.RecordDenied(caller.With(ctx, by), kg.Code(f.reason))
}

func (s *Server) notFound(w http.ResponseWriter, _ *http.Request) {
	f := &refusal{status: http.StatusNotFound, reason: string(kg.CodeNotFound), message: "the path does not exist",
		hint: "The agent card is at /.well-known/agent-card.json."}
	writeJSON(w, f.status, f.bodyIn(s.routeOf("/").form))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // a plain struct of ours always encodes
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}
