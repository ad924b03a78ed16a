package channels

import (
	"context"
	"time"
)

// waitOrWake waits so long, 0 for ever, or until something comes through wake; nil is nothing.
// It is false when it is time to end.
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
