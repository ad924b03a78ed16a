package jobs

import (
	"context"
	"time"
)

// Wake wakes a job that waits for c, which has room for one element. It does not block.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wait waits for d (0: no limit) or for wake (nil: never). It reports false when ctx is
// done.
func Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-over:
	case <-wake:
	}
	return true
}
