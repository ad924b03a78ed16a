package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"koine/internal/caller"
)

// response is one JSON-RPC response object (JSON-RPC 2.0, section 5).
type response struct {
	id     []byte
	result any // json.RawMessage is written unchanged
	err    *Error
}

// appendTo appends the response object. After an error the appended data is unusable.
func (resp *response) appendTo(to []byte) ([]byte, error) {
	to = append(to, `{"jsonrpc":"2.0","id":`...)
	to = append(to, resp.id...)
	var err error
	if resp.err != nil {
		to, err = appendJSON(append(to, `,"error":`...), resp.err)
	} else {
		to, err = appendJSON(append(to, `,"result":`...), resp.result)
	}
	return append(to, '}'), err
}

// appendResponse appends the response object; one that cannot be encoded becomes an internal
// error.
func (h *Handler) appendResponse(r *http.Request, to []byte, resp *response) []byte {
	begin := len(to)
	out, err := resp.appendTo(to)
	if err == nil {
		return out
	}
	ctx := r.Context()
	h.log.ErrorContext(ctx, "answer not encoded", "request", caller.From(ctx).RequestID, "error", err)
	return fmt.Appendf(out[:begin], `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"Internal error","data":null}}`, resp.id, codeInternal)
}

// writeResponse writes one response with its HTTP status.
func (h *Handler) writeResponse(w http.ResponseWriter, r *http.Request, resp *response) {
	status := http.StatusOK
	if e := resp.err; e != nil {
		if e.status != 0 {
			status = e.status
		}
		if status != http.StatusOK {
			setRetryAfter(w.Header(), e.retryAfter)
		}
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="koine", error="invalid_token"`)
		}
	}
	writeJSON(w, status, h.appendResponse(r, nil, resp))
}

// setRetryAfter rounds up, because a client that retries too early is refused again.
func setRetryAfter(header http.Header, after time.Duration) {
	if after > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeBody(w, "application/json", status, body)
}

func writeBody(w http.ResponseWriter, mediaType string, status int, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// appendJSON appends v as JSON without escapes for HTML. Raw JSON is trusted and
// written unchanged.
func appendJSON(to []byte, v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return append(to, raw...), nil
	}
	buf := bytes.NewBuffer(to)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return to, err
	}
	out := buf.Bytes()
	return out[:len(out)-1], nil // without the line's end
}
