package webhook

import (
	"context"
	"time"
)

// RunEvery does something every so often, until the context ends: those who call addresses
// write down how far they came in rounds.
func RunEvery(ctx context.Context, every time.Duration, do func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}
