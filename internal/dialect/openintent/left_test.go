package openintent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"koine/internal/dialect/openintent"
)

// A client that leaves before its stream begins leaves no watcher behind.
func TestClientsThatLeaveEarly(t *testing.T) {
	s := start(t, openintent.Options{})
	intent := s.create("/intents", `{"title":"Q1"}`)
	progress := s.create("/intents/"+intent+"/channels", `{"name":"progress"}`)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	before := s.store.Stats().Watchers
	for _, path := range []string{"/intents/" + intent, "/channels/" + progress, "/agents/ann", "/agents/ann?events=messages", "/agents/ann?events=all"} {
		for range 3 {
			u := httptest.NewRequest(http.MethodGet, openintent.Root+"/subscribe"+path, nil).WithContext(gone)
			u.Header.Set("X-Agent-ID", "ann")
			w := httptest.NewRecorder()
			s.Config.Handler.ServeHTTP(w, u)
			if w.Code == http.StatusNotFound {
				t.Errorf("%s: %s", path, w.Body)
			}
		}
		if n := s.store.Stats().Watchers; n != before {
			t.Errorf("%s: %d watchers are left", path, n-before)
			before = n
		}
	}
}
