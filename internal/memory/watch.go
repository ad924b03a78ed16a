package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A server is at rest when it allocates less than restAmount in each of restTimes intervals.
const (
	interval   = 5 * time.Second
	restTimes  = 3
	restAmount = 4 << 20
)

// Pages of mapped files are looked at after pagesEvery while they grow, and at most after
// pagesRest. Under publishing they grow by 250 MiB a second, since the system maps the pages
// around each one that is read; giving them back takes less than 1 % of the time.
const (
	pagesEvery = 50 * time.Millisecond
	pagesRest  = time.Second
)

// Watch looks at the memory of the process until ctx is done. It calls releasePages for pages of
// mapped files, which the system has in its page cache, when they are beyond their share. When
// the server comes to rest, it calls releaseCaches too, and gives free memory back to the
// system; Go would keep it.
func Watch(ctx context.Context, s Shares, releasePages, releaseCaches func()) {
	watchPages(ctx, s, mappedBytes, releasePages, releaseCaches)
}

// watchPages is Watch with the amount of mapped pages by mapped.
func watchPages(ctx context.Context, s Shares, mapped func() int64, releasePages, releaseCaches func()) {
	r := rest{before: readAllocated()}
	looked := time.Now()
	for before, wait := int64(0), pagesEvery; ; {
		clock := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			clock.Stop()
			return
		case <-clock.C:
		}
		pages := mapped()
		if wait = min(2*wait, pagesRest); pages > before {
			wait = pagesEvery
		}
		before = pages
		begins := false
		if now := time.Now(); now.Sub(looked) >= interval {
			looked, begins = now, r.begins(readAllocated())
		}
		if begins || pages > s.Mapped {
			releasePages()
			before = 0 // pages that come back are growth
		}
		if begins {
			releaseCaches()
			debug.FreeOSMemory()
			r.before = readAllocated() // releasing is no work
		}
	}
}

// ReleaseBeyond calls release if more than limit bytes of mapped files, the program's own among
// them, are in memory. A program that reads much more than it has memory for calls it often.
func ReleaseBeyond(limit int64, release func()) {
	if mappedBytes() > limit {
		release()
	}
}

// readAllocated returns the bytes that were allocated since the process began, whatever became
// of them.
func readAllocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// rest recognizes that a process has come to rest.
type rest struct {
	before  int64 // allocated at the last look
	quiet   int   // intervals without work
	cleared bool  // in this time of rest
}

// begins reports, by the bytes that were allocated so far, whether a time of rest has begun.
func (r *rest) begins(allocated int64) bool {
	worked := allocated-r.before >= restAmount
	r.before = allocated
	if worked {
		r.quiet, r.cleared = 0, false
		return false
	}
	r.quiet++
	if r.quiet < restTimes || r.cleared {
		return false
	}
	r.cleared = true
	return true
}
