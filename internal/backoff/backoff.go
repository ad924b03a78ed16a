// Package backoff says how long to wait before something is tried again: for all that
// calls a server which may be away or busy.
package backoff

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Waits bounds the waits: the first is about Min, and none is longer than Max.
type Waits struct{ Min, Max time.Duration }

// After is the wait behind the nth attempt in vain, from 0. It doubles each time, and
// half of it is random, so that those who were turned away together do not come back
// together. A hint of the server's makes it longer, up to Max.
func (w Waits) After(n int, hint time.Duration) time.Duration {
	wait := w.Min
	for ; n > 0 && wait < w.Max; n-- {
		wait *= 2
	}
	wait = min(wait, w.Max)
	return max(wait/2+rand.N(wait/2+1), min(hint, w.Max))
}

// Sleep waits. It gives the context's error if that ends first.
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

// maxHint is the longest that a server is believed.
const maxHint = time.Hour

// Hint is what the server says of when to come back: "Retry-After" in seconds. It is 0
// if it says nothing, or nothing that can be believed.
func Hint(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > int(maxHint/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
