package scan

import (
	"sync"
	"time"
)

// Bounds of a breaker.
const (
	breakAfter = 5                // failures in a row
	firstPause = time.Second      // of the first pause; each further one is twice as long
	maxPause   = 30 * time.Second // of any pause
)

// breaker stops calls to a hook that fails. After a pause it lets one call through, and
// closes when that succeeds.
type breaker struct {
	clock func() time.Time

	mu       sync.Mutex
	failures int // in a row
	pause    time.Duration
	until    time.Time // end of the pause
	probing  bool      // one call is under way after the pause
}

// allow reports whether a call may be made. succeeded, failed or undecided must follow.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == 0 {
		return true
	}
	if b.probing || b.clock().Before(b.until) {
		return false
	}
	b.probing = true
	return true
}

// succeeded notes a call that succeeded. It reports whether the hook had been away.
func (b *breaker) succeeded() (back bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	back = b.failures >= breakAfter
	b.failures, b.pause, b.probing = 0, 0, false
	return back
}

// failed notes a call that failed. It reports whether it is the first in a row, and
// whether the hook is away from now on.
func (b *breaker) failed() (first, away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if b.failures < breakAfter || b.pause > 0 && !b.probing { // a call from before the pause
		return b.failures == 1, false
	}
	away = b.pause == 0
	b.pause = min(max(2*b.pause, firstPause), maxPause)
	b.until, b.probing = b.clock().Add(b.pause), false
	return false, away
}

// undecided notes a call that was not made, or given up by its caller.
func (b *breaker) undecided() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
}
