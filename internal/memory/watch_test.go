package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Pages beyond their share are given back every second, caches when the process comes to rest.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		pages, caches := 0, 0
		go Watch(ctx, Shares{Mapped: -1}, func() { pages++ }, func() { caches++ })
		time.Sleep(3*pagesEvery + pagesEvery/2)
		synctest.Wait()
		if pages != 3 || caches != 0 {
			t.Errorf("pages are given back %d times in three seconds, and caches %d times", pages, caches)
		}
		time.Sleep(restTimes * interval)
		synctest.Wait()
		if caches != 1 {
			t.Errorf("caches are given back %d times at rest", caches)
		}
		stop()
		synctest.Wait()
	})
}
