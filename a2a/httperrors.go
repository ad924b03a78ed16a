package a2a

import "net/http"

// httpAnswer is the HTTP status of a code of base A2A, with its name in google.rpc.Code (A2A
// 1.0, section 5.4), and the reason that the Go client knows for it if A2A has none.
type httpAnswer struct {
	status int
	name   string
	reason string
}

// httpErrors is the table of HTTP+JSON.
var httpErrors = map[int]httpAnswer{
	codeTaskNotFound:    {http.StatusNotFound, "NOT_FOUND", ""},
	codeNotCancelable:   {http.StatusBadRequest, "FAILED_PRECONDITION", ""},
	codeNoPush:          {http.StatusBadRequest, "FAILED_PRECONDITION", ""},
	codeUnsupported:     {http.StatusBadRequest, "FAILED_PRECONDITION", ""},
	codeContentType:     {http.StatusBadRequest, "INVALID_ARGUMENT", ""},
	codeNoExtendedCard:  {http.StatusBadRequest, "FAILED_PRECONDITION", ""},
	codeVersion:         {http.StatusBadRequest, "FAILED_PRECONDITION", ""},
	codeParse:           {http.StatusBadRequest, "INVALID_ARGUMENT", "PARSE_ERROR"},
	codeInvalidRequest:  {http.StatusBadRequest, "INVALID_ARGUMENT", "INVALID_REQUEST"},
	codeInvalidParams:   {http.StatusBadRequest, "INVALID_ARGUMENT", "INVALID_PARAMS"},
	codeMethodNotFound:  {http.StatusNotFound, "UNIMPLEMENTED", "METHOD_NOT_FOUND"},
	codeUnauthenticated: {http.StatusUnauthorized, "UNAUTHENTICATED", "UNAUTHENTICATED"},
	codeUnauthorized:    {http.StatusForbidden, "PERMISSION_DENIED", "UNAUTHORIZED"},
	codeRateLimit:       {http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", ""},
	codeInternal:        {http.StatusInternalServerError, "INTERNAL", "INTERNAL_ERROR"},
}

// httpStatusOf returns the status of an error: its own where it has a more precise one than
// the table, such as 413 or 503.
func httpStatusOf(e *Error) int {
	if e.status > http.StatusBadRequest {
		return e.status
	}
	if a, ok := httpErrors[e.Code]; ok && (e.Code != codeInternal || e.status < http.StatusBadRequest) {
		return a.status
	}
	return http.StatusBadRequest
}

// httpNames are the names of google.rpc.Code where the status says more than the code.
var httpNames = map[int]string{
	http.StatusServiceUnavailable: "UNAVAILABLE", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusUnauthorized: "UNAUTHENTICATED",
}

// httpFailure is the body of an error: a google.rpc.Status (A2A 1.0, section 11.6). In 0.3 it
// has the members of a JSON-RPC error too, which is what the JavaScript client reads; the Go
// client reads error in both.
type httpFailure struct {
	Code    int        `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
	Data    any        `json:"data,omitempty"`
	Error   httpStatus `json:"error"`
}

type httpStatus struct {
	Code    int    `json:"code"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Details []any  `json:"details"`
}

const badRequestType = "type.googleapis.com/google.rpc.BadRequest"

// badRequest is a google.rpc.BadRequest.
type badRequest struct {
	Type       string           `json:"@type"`
	Violations []fieldViolation `json:"fieldViolations"`
}

type fieldViolation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

// appendHTTPError encodes an error for a version.
func appendHTTPError(v version, e *Error) ([]byte, error) {
	e = e.asListed()
	status, row := httpStatusOf(e), httpErrors[e.Code]
	out := httpFailure{Error: httpStatus{Code: status, Status: row.name, Message: e.Message, Details: []any{}}}
	switch name, ok := httpNames[status]; {
	case ok:
		out.Error.Status = name
	case status == http.StatusBadRequest && row.status != status:
		out.Error.Status = "FAILED_PRECONDITION"
	}
	if d, ok := e.Data.(details); ok {
		out.Error.Details = append(out.Error.Details, d.errorInfo())
		if e.Code == codeInvalidParams && d.Field != "" {
			out.Error.Details = append(out.Error.Details, badRequest{badRequestType, []fieldViolation{{d.Field, d.Detail}}})
		}
	}
	if row.reason != "" { // the Go client knows the error by a reason of A2A's domain
		out.Error.Details = append(out.Error.Details, errorInfo{Type: errorInfoType, Reason: row.reason, Domain: coreDomain})
	}
	if v.name == version03.name {
		out.Code, out.Message, out.Data = e.Code, e.Message, e.Data
	}
	return appendJSON(nil, out)
}
