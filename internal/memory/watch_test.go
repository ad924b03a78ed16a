package memory

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Pages beyond their share are given back at each look, caches when the process comes to rest.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var pages, caches atomic.Int64
		go Watch(ctx, Shares{Mapped: -1}, func() { pages.Add(1) }, func() { caches.Add(1) })
		time.Sleep(3*pagesEvery + pagesEvery/2)
		synctest.Wait()
		if pages.Load() != 3 || caches.Load() != 0 {
			t.Errorf("pages are given back %d times in three intervals, and caches %d times", pages.Load(), caches.Load())
		}
		time.Sleep(restTimes * interval)
		synctest.Wait()
		if caches.Load() != 1 {
			t.Errorf("caches are given back %d times at rest", caches.Load())
		}
		stop()
		synctest.Wait()
	})
}
