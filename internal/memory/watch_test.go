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

// Pages that grow are looked at every pagesEvery, and others every pagesRest.
func TestWatchLooksWhilePagesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var pages, growth, looks atomic.Int64
		mapped := func() int64 { looks.Add(1); return pages.Add(growth.Load()) }
		go watchPages(ctx, Shares{Mapped: 1 << 40}, mapped, func() {}, func() {})
		time.Sleep(10 * pagesRest)
		looks.Store(0)
		time.Sleep(10 * pagesRest)
		synctest.Wait()
		if n := looks.Load(); n < 9 || n > 11 {
			t.Errorf("%d looks in ten times pagesRest", n)
		}
		growth.Store(1)
		time.Sleep(2 * pagesRest)
		looks.Store(0)
		time.Sleep(10 * pagesEvery)
		synctest.Wait()
		if n := looks.Load(); n < 9 || n > 11 {
			t.Errorf("%d looks in ten times pagesEvery at pages that grow", n)
		}
		stop()
		synctest.Wait()
	})
}
