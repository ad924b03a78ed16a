package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"koine/cmd/koine/internal/offline"
	"koine/internal/caller"
	"koine/kg"
)

// Only administrators get through; in open mode every caller is one.
func TestAdministrators(t *testing.T) {
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for name, row := range map[string]struct {
		principal kg.Principal
		status    int
	}{
		"an administrator": {kg.Principal{ID: "agent://a", Roles: []string{kg.RoleAdmin}, Method: "key"}, http.StatusNoContent},
		"a reviewer":       {kg.Principal{ID: "agent://a", Roles: []string{kg.RoleReviewer}, Method: "key"}, http.StatusForbidden},
		"nobody":           {kg.Principal{Method: caller.MethodNone}, http.StatusForbidden},
	} {
		for _, path := range []string{offline.CheckPath, offline.BackupPath} {
			r := httptest.NewRequest(http.MethodPost, path, nil)
			r = r.WithContext(caller.With(r.Context(), caller.Caller{Principal: row.principal}))
			w := httptest.NewRecorder()
			requireAdmin(inside).ServeHTTP(w, r)
			if w.Code != row.status || w.Code == http.StatusForbidden && !strings.Contains(w.Body.String(), `"reason":"PERMISSION_DENIED"`) {
				t.Errorf("%s at %s: %d %s, want %d", name, path, w.Code, w.Body, row.status)
			}
		}
	}
}

// The number of concurrent backups is bounded; wrong requests are refused before the first
// byte, and a GET is none.
func TestBackupHandler(t *testing.T) {
	store, err := kg.Open(t.TempDir(), kg.Options{ReserveBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h := backupHandler(store, nil, slog.New(slog.DiscardHandler))
	ask := func(method, query string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, offline.BackupPath+query, nil))
		return w
	}
	began, goOn := make(chan struct{}, maxBackups), make(chan struct{})
	ended := make(chan struct{}, maxBackups)
	for range maxBackups {
		go func() {
			w := &slowWriter{ResponseRecorder: httptest.NewRecorder(), began: began, goOn: goOn}
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, offline.BackupPath, nil))
			ended <- struct{}{}
		}()
	}
	for range maxBackups {
		<-began
	}
	if w := ask(http.MethodPost, ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "OVERLOADED") {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	close(goOn)
	for range maxBackups {
		<-ended
	}
	for query, status := range map[string]int{"": 200, "?since=0": 200, "?since=x": 400, "?since=7": 400, "?since=0&epoch=other&hash=other": 400} {
		if w := ask(http.MethodPost, query); w.Code != status {
			t.Errorf("%q: %d %s, want %d", query, w.Code, w.Body, status)
		}
	}
	if w := ask(http.MethodGet, ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

// slowWriter waits before its first byte.
type slowWriter struct {
	*httptest.ResponseRecorder
	began, goOn chan struct{}
	written     bool
}

func (w *slowWriter) Write(b []byte) (int, error) {
	if !w.written {
		w.written = true
		w.began <- struct{}{}
		<-w.goOn
	}
	return w.ResponseRecorder.Write(b)
}
