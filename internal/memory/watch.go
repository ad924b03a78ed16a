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

// pagesEvery is how often the pages of mapped files are looked at. They may pass their share between
// two looks.
const pagesEvery = 50 * time.Millisecond

// Watch looks at the memory of the process until ctx is done. It calls releasePages for pages of
// mapped files, which the system has in its page cache, when they are beyond their share. When
// the server comes to rest, it calls releaseCaches too, and gives free memory back to the
// system; Go would keep it.
func Watch(ctx context.Context, s Shares, releasePages, releaseCaches func()) {
	clock := time.NewTicker(pagesEvery)
	defer clock.Stop()
	r := rest{before: readAllocated()}
	for n := time.Duration(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		begins := n*pagesEvery%interval == 0 && r.begins(readAllocated())
		if begins || mappedBytes() > s.Mapped {
			releasePages()
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
