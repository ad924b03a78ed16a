package httpd_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"koine/internal/httpd"
)

// A route with delayed refusals waits before any answer but 200, without a place among the
// requests in progress; its good answers and other routes do not wait.
func TestRefusalsAreDelayed(t *testing.T) {
	const delay = 300 * time.Millisecond
	s := newServer(httpd.Options{MaxRequests: 4})
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("no") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "yes")
	})
	s.Handle("GET /stream", httpd.Detailed, answer)
	s.DelayRefusals("GET /stream", delay)
	s.Handle("GET /other", httpd.Detailed, answer)
	f := run(t, s)
	for path, waits := range map[string]bool{"/stream": false, "/stream?no": true, "/other?no": false} {
		began := time.Now()
		do(t, f, "GET", path, "")
		if took := time.Since(began); (took >= delay) != waits {
			t.Errorf("%s took %v", path, took)
		}
	}
}
