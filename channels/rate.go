package channels

import (
	"sync"
	"time"

	"koine/channels/channel"
	"koine/channels/internal/check"
	"koine/kg"
)

// rateLimit is a limit for a key; 0 means no limit.
type rateLimit struct {
	key   string
	limit int
}

// rateWindows counts events per key in a sliding window of one minute. It is kept in
// memory only.
type rateWindows struct {
	most int // maximum number of keys

	mu   sync.Mutex
	last map[string][]int64 // in milliseconds since the epoch, oldest first
}

// reserveAll counts one event for all limits, or fails without counting it for any.
func (r *rateWindows) reserveAll(now time.Time, paces ...rateLimit) error {
	at := now.UnixMilli()
	begin := at - time.Minute.Milliseconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paces {
		if p.limit == 0 {
			continue
		}
		times, known := r.last[p.key]
		for len(times) > 0 && times[0] <= begin {
			times = times[1:]
		}
		if known {
			r.last[p.key] = times
		}
		if most := min(p.limit, channel.MaxPerMinute); len(times) >= most {
			return errTooFast(time.Duration(times[len(times)-most]-begin) * time.Millisecond)
		}
		if !known && len(r.last) >= r.most && !r.evictIdle(begin) {
			return errTooFast(time.Minute)
		}
	}
	for _, p := range paces {
		if p.limit > 0 {
			r.last[p.key] = append(r.last[p.key], at)
		}
	}
	return nil
}

// evictIdle removes keys without events in the window. It reports whether there is room
// for another key.
func (r *rateWindows) evictIdle(begin int64) bool {
	for of, times := range r.last {
		if len(times) == 0 || times[len(times)-1] <= begin {
			delete(r.last, of)
		}
	}
	return len(r.last) < r.most
}

func errTooFast(wait time.Duration) *kg.Error {
	e := kg.Errorf(kg.CodeRateLimited, "message rate limit exceeded: retry later")
	e.RetryAfter, e.Limit = wait, "messagesPerMinute"
	return e
}

// openCounts counts open streams per key.
type openCounts struct {
	mu   sync.Mutex
	open map[string]int
}

// acquireAll counts one more stream for all limits, or fails without counting it for
// any.
func (c *openCounts) acquireAll(paces ...rateLimit) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range paces {
		if p.limit > 0 && c.open[p.key] >= p.limit {
			e := check.TooMuch("", "%d streams are open, which is the limit", p.limit)
			e.Limit = "streams"
			return nil, e
		}
	}
	for _, p := range paces {
		c.open[p.key]++
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range paces {
			if c.open[p.key]--; c.open[p.key] == 0 {
				delete(c.open, p.key)
			}
		}
	}), nil
}
