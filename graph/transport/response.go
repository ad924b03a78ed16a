package transport

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"koine/internal/operation"
	"koine/kg"
)

// appendResponse writes a result as a GraphQL response, with its revision and
// the position after it in the extensions.
func (h *Handler) appendResponse(b []byte, result *operation.Result) []byte {
	b = append(b, '{')
	if len(result.Errors) > 0 {
		b = append(appendErrors(append(b, `"errors":`...), result.Errors), ',')
	}
	if result.Data != nil {
		b = append(append(append(b, `"data":`...), result.Data...), ',')
	}
	b = append(b, `"extensions":{`...)
	if at := result.Position; at != (kg.Position{}) {
		b = strconv.AppendUint(append(b, `"revision":`...), uint64(at.Revision), 10)
		b = append(append(b, `,"position":"`...), h.positionToken(at)...) // tokens need no escapes
		b = append(b, '"')
		b = appendExtension(b, "truncated", result.Cuts)
		b = appendExtension(b, "hints", result.Hints)
	}
	return append(b, "}}"...)
}

// appendExtension adds a list to the extensions unless it is empty.
func appendExtension[T any](b []byte, name string, list []T) []byte {
	if len(list) == 0 {
		return b
	}
	text, err := json.Marshal(list)
	if err != nil {
		return b // cannot happen: the lists hold texts and numbers
	}
	return append(append(append(append(b, `,"`...), name...), `":`...), text...)
}

func appendErrors(b []byte, errs gqlerror.List) []byte {
	text, err := json.Marshal(errs)
	if err != nil { // an extension cannot be encoded
		return append(b, `[{"message":"internal error"}]`...)
	}
	return append(b, text...)
}

// withPosition returns the errors that ended an operation, the first with the
// position from which to resume, for protocols that send nothing else.
func (h *Handler) withPosition(result *operation.Result) gqlerror.List {
	if result.Position == (kg.Position{}) {
		return result.Errors
	}
	errs := slices.Clone(result.Errors)
	first := *errs[0]
	first.Extensions = maps.Clone(first.Extensions)
	if first.Extensions == nil {
		first.Extensions = map[string]any{}
	}
	first.Extensions["position"] = h.positionToken(result.Position)
	errs[0] = &first
	return errs
}

func (h *Handler) writeResult(w http.ResponseWriter, form responseForm, result *operation.Result) {
	if len(result.Errors) > 0 {
		if ms, ok := result.Errors[0].Extensions["retryAfterMs"].(int64); ok {
			w.Header().Set("Retry-After", strconv.FormatInt((ms+999)/1000, 10))
		}
	}
	writeBody(w, form, statusOf(form, result), h.appendResponse(make([]byte, 0, len(result.Data)+256), result))
}

// writeRefusal answers a request without a valid operation.
func writeRefusal(w http.ResponseWriter, form responseForm, status int, code, message string) {
	b := appendErrors([]byte(`{"errors":`), gqlerror.List{{Message: message, Extensions: map[string]any{"code": code}}})
	writeBody(w, form, status, append(b, '}'))
}

func writeBody(w http.ResponseWriter, form responseForm, status int, b []byte) {
	if form != formResponse {
		form = formJSON
	}
	w.Header().Set("Content-Type", formTypes[form])
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Add("Vary", "Accept")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may be gone
}

// tooManyOperations reports that a connection has reached its limit of
// operations.
func tooManyOperations() *gqlerror.Error {
	return &gqlerror.Error{Message: "too many operations run on this connection", Extensions: map[string]any{
		"code": string(kg.CodeLimitExceeded), "limit": "operations",
		"hint": "Complete some of them, or open another connection.",
	}}
}
