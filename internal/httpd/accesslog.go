package httpd

import (
	"log/slog"
	"net/http"
	"time"

	"koine/internal/caller"
)

// finish counts and logs a request that has ended.
func (s *Server) finish(w *response, r *http.Request, began time.Time) {
	took := time.Since(began)
	status := w.status
	if status == 0 {
		status = http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	s.metrics.request(r, status, took, w.stream)
	level := slog.LevelDebug
	if status >= 500 {
		level = slog.LevelWarn
	}
	ctx := r.Context()
	if !s.log.Enabled(ctx, level) {
		return
	}
	c := caller.From(ctx)
	attrs := []slog.Attr{slog.String("request", w.Header().Get("X-Request-ID")), slog.String("agent", string(c.Principal.ID))}
	if c.Actor != "" {
		attrs = append(attrs, slog.String("actor", string(c.Actor)))
	}
	s.log.LogAttrs(ctx, level, "request", append(attrs, slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", status),
		slog.Int64("bytes", w.bytes), slog.Duration("took", took))...)
}
