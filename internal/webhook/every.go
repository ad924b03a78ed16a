package webhook

import (
	"context"
	"time"
)

// RunEvery calls do at the interval every until ctx is done.
func RunEvery(ctx context.Context, every time.Duration, do func(context.Context)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			do(ctx)
		}
	}
}
