package channels

import (
	"context"
	"time"
)

// waitOrWake waits for d (0: no limit) or for wake (nil: never). It reports false when
// ctx is done.
func waitOrWake(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
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
