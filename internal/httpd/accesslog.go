package httpd

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"koine/internal/caller"
)

// answer describes a request in the log and the metrics. It does not refer to the request,
// which may have ended before its stream.
type answer struct {
	ctx                       context.Context
	id, method, path, pattern string
	status                    int
	bytes                     int64
	stream                    bool
}

func answerOf(w *response, r *http.Request) answer {
	a := answer{ctx: r.Context(), id: w.Header().Get("X-Request-ID"), method: r.Method, path: r.URL.Path, pattern: r.Pattern,
		status: w.status, bytes: w.bytes, stream: w.stream}
	if a.status == 0 {
		a.status = http.StatusOK // net/http's default for a handler that wrote nothing
	}
	return a
}

// logAnswer counts and logs a request that has ended.
func (s *Server) logAnswer(a answer, began time.Time) {
	took := time.Since(began)
	s.metrics.countRequest(a, took)
	level, left := slog.LevelDebug, int64(0)
	switch {
	case a.status == http.StatusServiceUnavailable:
		level, left = s.unavailable.nextLevel(time.Now())
	case a.status >= 500:
		level = slog.LevelWarn
	}
	if !s.log.Enabled(a.ctx, level) {
		return
	}
	c := caller.From(a.ctx)
	attrs := []slog.Attr{slog.String("request", a.id), slog.String("agent", string(c.Principal.ID))}
	if c.Actor != "" {
		attrs = append(attrs, slog.String("actor", string(c.Actor)))
	}
	if left > 0 {
		attrs = append(attrs, slog.Int64("unavailableBefore", left))
	}
	s.log.LogAttrs(a.ctx, level, "request", append(attrs, slog.String("method", a.method), slog.String("path", a.path), slog.Int("status", a.status),
		slog.Int64("bytes", a.bytes), slog.Duration("took", took))...)
}

// UnavailableEvery is the interval of warnings about answers with status 503, so that
// overload and readiness probes do not fill the log. The answers in between are logged
// at debug level and counted in the next warning.
const UnavailableEvery = 10 * time.Second

// unavailable counts answers with status 503. It is safe for concurrent use.
type unavailable struct {
	next atomic.Int64 // time of the next warning, in Unix nanoseconds
	left atomic.Int64 // answers since the last one
}

// nextLevel returns the log level of one more answer, and the number of earlier ones
// without a warning.
func (u *unavailable) nextLevel(now time.Time) (level slog.Level, left int64) {
	next := u.next.Load()
	if now.UnixNano() < next || !u.next.CompareAndSwap(next, now.Add(UnavailableEvery).UnixNano()) {
		u.left.Add(1)
		return slog.LevelDebug, 0
	}
	return slog.LevelWarn, u.left.Swap(0)
}

// requestIDs assigns ids to requests: the client's own, or a prefix unique to this
// process with a number.
type requestIDs struct {
	run  string
	last *atomic.Uint64
}

const maxRequestID = 64

func newRequestIDs() requestIDs {
	return requestIDs{run: strings.ToLower(rand.Text()[:8]), last: new(atomic.Uint64)}
}

func (ids requestIDs) idOf(r *http.Request) string {
	if id := r.Header.Get("X-Request-ID"); id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, notInID) {
		return id
	}
	return ids.run + "-" + strconv.FormatUint(ids.last.Add(1), 10)
}

func notInID(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}
