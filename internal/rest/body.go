package rest

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"koine/internal/plainjson"
	"koine/kg"
)

// MaxBodyBytes is the default limit of a request body.
const MaxBodyBytes = 4 << 20

// ReadBody reads a JSON document with one of these media types, or application/json. It
// accepts nothing else because a foreign web page can send forms and plain text without
// a preflight request.
//
// Errors: CodeContentType for another media type; CodeInvalid; CodeLimitExceeded for
// more than most bytes.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64, types ...string) (json.RawMessage, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !slices.Contains(types, kind) {
		return nil, kg.Errorf(kg.CodeContentType, "the content type must be application/json").At("Content-Type")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the body exceeds the limit of %d bytes", most)
	case err != nil:
		return nil, kg.Errorf(kg.CodeInvalid, "the body could not be read")
	case !json.Valid(raw):
		return nil, kg.Errorf(kg.CodeInvalid, "the body is not valid JSON")
	}
	return raw, nil
}

// Decode decodes a JSON document.
//
// Errors: CodeInvalid, with the member that has the wrong type as Field.
func Decode(raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	if field, should, ok := plainjson.Mistyped(err); ok {
		if field == "" {
			return kg.Errorf(kg.CodeInvalid, "the body %s", should)
		}
		return kg.Errorf(kg.CodeInvalid, "%s", should).At(field)
	}
	return kg.Errorf(kg.CodeInvalid, "the body is not valid JSON: %s", err)
}

// Write writes a value as JSON.
func Write(w http.ResponseWriter, status int, value any) {
	body := plainjson.MustEncode(value) // our structs always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// RetryAfter returns the seconds after which a request with this status may be retried,
// 0 for never.
func RetryAfter(status int, wait time.Duration) int {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	return max(1, int((wait+time.Second-1)/time.Second))
}

// WriteError writes an error, with Retry-After in seconds, and with WWW-Authenticate for
// status 401.
func WriteError(w http.ResponseWriter, status, retry int, body any) {
	if retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(retry))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="koine", error="invalid_token"`)
	}
	Write(w, status, body)
}

// LimitParam returns the query parameter limit, from 1 to most; otherwise if it is absent.
//
// Errors: CodeInvalid.
func LimitParam(r *http.Request, otherwise, most int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, kg.Errorf(kg.CodeInvalid, "limit must be between 1 and %d", most).At("limit")
	}
	return n, nil
}
