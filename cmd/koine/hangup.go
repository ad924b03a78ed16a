package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// runWithHangup runs follow in a goroutine until stop is called. follow polls its files at
// the interval every, and at once after a SIGHUP, which it receives through now.
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
