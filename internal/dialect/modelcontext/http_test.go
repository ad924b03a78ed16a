package modelcontext_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"koine/internal/dialect/modelcontext"
	"koine/internal/operation"
)

// silent executes nothing.
type silent struct{}

func (silent) Execute(context.Context, operation.Request) operation.Result {
	return operation.Result{Data: []byte(`{}`)}
}

// The bound of a request is the bound of its bytes.
func TestBodyBound(t *testing.T) {
	h := modelcontext.NewHandler(silent{}, modelcontext.Options{}, nil)
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"query":"{ x }"}`, `}}`
	for _, row := range []struct{ bytes, status int }{{modelcontext.MaxBodyBytes, 200}, {modelcontext.MaxBodyBytes + 1, 413}} {
		body := head + strings.Repeat(" ", row.bytes-len(head)-len(tail)) + tail
		r := httptest.NewRequest(http.MethodPost, modelcontext.Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != row.status {
			t.Errorf("%d bytes: %d %.200s", row.bytes, w.Code, w.Body)
		}
	}
}
