package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// runWithHangup runs what looks at its files every so often until stop, and has it look at once
// for each SIGHUP.
func runWithHangup(ctx context.Context, every time.Duration, follow func(ctx context.Context, every time.Duration, now <-chan os.Signal)) (stop func()) {
	now := make(chan os.Signal, 1)
	signal.Notify(now, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { follow(ctx, every, now) })
	return func() {
		signal.Stop(now)
		cancel()
		following.Wait()
	}
}
