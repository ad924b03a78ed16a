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

// MaxBodyBytes is how much of a body is read where nothing else is said.
const MaxBodyBytes = 4 << 20

// Body reads a JSON document of one of these media types, application/json always. Nothing
// but JSON is read: a foreign web page can send forms and plain text without asking first.
//
// Errors: CodeContentType for another media type; CodeInvalid; CodeLimitExceeded for more
// than most bytes.
func Body(w http.ResponseWriter, r *http.Request, most int64, types ...string) (json.RawMessage, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !slices.Contains(types, kind) {
		return nil, kg.Errorf(kg.CodeContentType, "a body is application/json").At("Content-Type")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, kg.Errorf(kg.CodeLimitExceeded, "the body is larger than the %d bytes that are taken", most)
	case err != nil:
		return nil, kg.Errorf(kg.CodeInvalid, "the body did not arrive")
	case !json.Valid(raw):
		return nil, kg.Errorf(kg.CodeInvalid, "the body is no JSON")
	}
	return raw, nil
}

// Decode reads a JSON document into a value of ours.
//
// Errors: CodeInvalid, with the member that is of another type.
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
	return kg.Errorf(kg.CodeInvalid, "the body is no JSON: %s", err)
}

// Write answers with a value as JSON.
func Write(w http.ResponseWriter, status int, value any) {
	body := plainjson.MustEncode(value) // structs of ours, with JSON that was read or written by us
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// RetryAfter is after how many seconds what is answered with the status may be tried
// again, 0 for never.
func RetryAfter(status int, wait time.Duration) int {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	return max(1, int((wait+time.Second-1)/time.Second))
}

// Refuse answers with an error, after how many seconds it may be tried again, and how one
// is let in where that is what is wrong.
func Refuse(w http.ResponseWriter, status, retry int, body any) {
	if retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(retry))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="koine", error="invalid_token"`)
	}
	Write(w, status, body)
}

// Limit is how many of a list are asked for, from 1 to most; otherwise where nothing is
// said.
//
// Errors: CodeInvalid.
func Limit(r *http.Request, otherwise, most int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, kg.Errorf(kg.CodeInvalid, "is between 1 and %d", most).At("limit")
	}
	return n, nil
}
