// Package backoff computes the delay before a retry, for clients of servers that may be
// unreachable or overloaded.
package backoff

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Waits bounds the delays: the first is about Min, and none is longer than Max.
type Waits struct{ Min, Max time.Duration }

// After returns the delay after attempt n, counted from 0. It doubles with each attempt,
// and half of it is random, so that clients that were rejected together do not retry
// together. A server's hint extends it, up to Max.
func (w Waits) After(n int, hint time.Duration) time.Duration {
	wait := w.Min
	for ; n > 0 && wait < w.Max; n-- {
		wait *= 2
	}
	wait = min(wait, w.Max)
	return max(wait/2+rand.N(wait/2+1), min(hint, w.Max))
}

// Sleep waits for the given time. It returns the error of ctx if that is done first.
func Sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxHint is the largest hint that is accepted.
const maxHint = time.Hour

// Hint returns the server's Retry-After in seconds as a duration, 0 if it is missing or
// unreasonable.
func Hint(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > int(maxHint/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
