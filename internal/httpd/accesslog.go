package httpd

import (
	"log/slog"
	"net/http"
	"sync/atomic"
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
	level, left := slog.LevelDebug, int64(0)
	switch {
	case status == http.StatusServiceUnavailable:
		level, left = s.unavailable.level(time.Now())
	case status >= 500:
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
	if left > 0 {
		attrs = append(attrs, slog.Int64("unavailableBefore", left))
	}
	s.log.LogAttrs(ctx, level, "request", append(attrs, slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", status),
		slog.Int64("bytes", w.bytes), slog.Duration("took", took))...)
}

// UnavailableEvery is how often the log has a warning of an answer 503: who asks too
// much, or asks whether the server is ready, must not fill the log. The others are
// told at the level of all requests, and counted in the next warning.
const UnavailableEvery = 10 * time.Second

// unavailable are the answers 503. It is safe for concurrent use.
type unavailable struct {
	next atomic.Int64 // when there may be a warning again, in Unix nanoseconds
	left atomic.Int64 // answers since the last one
}

// level is that of one more answer, and how many before it had no warning.
func (u *unavailable) level(now time.Time) (level slog.Level, left int64) {
	next := u.next.Load()
	if now.UnixNano() < next || !u.next.CompareAndSwap(next, now.Add(UnavailableEvery).UnixNano()) {
		u.left.Add(1)
		return slog.LevelDebug, 0
	}
	return slog.LevelWarn, u.left.Swap(0)
}
