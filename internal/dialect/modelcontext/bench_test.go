package modelcontext_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"koine/internal/dialect/modelcontext"
)

// BenchmarkCall is a call of a tool over HTTP, without the work of the operation.
func BenchmarkCall(b *testing.B) {
	h := newHandler(b, silent{}, modelcontext.Options{})
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, modelcontext.Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"query":"{ x }"}}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
}
