package agentapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A client that leaves before its stream begins leaves no watcher behind.
func TestClientsThatLeaveEarly(t *testing.T) {
	s := start(t)
	task := s.sendTo("ann", `{"message":[{"type":"text","content":"x"}]}`)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	before := s.store.Stats().Watchers
	for _, row := range [][3]string{
		{http.MethodGet, "/tasks/" + task, ""},
		{http.MethodPost, "/agents/bot/messages", `{"stream":true,"message":[{"type":"text","content":"x"}]}`},
	} {
		for range 3 {
			r := httptest.NewRequest(row[0], row[1], strings.NewReader(row[2])).WithContext(gone)
			r.Header = http.Header{"X-Agent-Id": {"ann"}, "Accept": {"text/event-stream"}, "Content-Type": {"application/json"}}
			w := httptest.NewRecorder()
			s.Config.Handler.ServeHTTP(w, r)
			if w.Code == http.StatusNotFound || w.Code == http.StatusBadRequest {
				t.Errorf("%s: %s", row, w.Body)
			}
		}
		if n := s.store.Stats().Watchers; n != before {
			t.Errorf("%s: %d watchers are left", row, n-before)
			before = n
		}
	}
}
