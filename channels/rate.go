package channels

import (
	"sync"
	"time"

	"koine/kg"
)

// pace is a bound for who or what has the name; 0 is none.
type pace struct {
	of   string
	most int
}

// rates remember when messages came, for those who are bounded: not more than so
// many in any minute. A restart forgets.
type rates struct {
	most int // names that are remembered

	mu   sync.Mutex
	last map[string][]int64 // in milliseconds since the epoch, the oldest first
}

// take counts one more at a time for all of these, or refuses it for all.
func (r *rates) take(now time.Time, paces ...pace) error {
	at := now.UnixMilli()
	begin := at - time.Minute.Milliseconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paces {
		if p.most == 0 {
			continue
		}
		times, known := r.last[p.of]
		for len(times) > 0 && times[0] <= begin {
			times = times[1:]
		}
		if known {
			r.last[p.of] = times
		}
		if most := min(p.most, MaxPerMinute); len(times) >= most {
			return errTooFast(time.Duration(times[len(times)-most]-begin) * time.Millisecond)
		}
		if !known && len(r.last) >= r.most && !r.forget(begin) {
			return errTooFast(time.Minute)
		}
	}
	for _, p := range paces {
		if p.most > 0 {
			r.last[p.of] = append(r.last[p.of], at)
		}
	}
	return nil
}

// forget makes place; it tells whether there is any.
func (r *rates) forget(begin int64) bool {
	for of, times := range r.last {
		if len(times) == 0 || times[len(times)-1] <= begin {
			delete(r.last, of)
		}
	}
	return len(r.last) < r.most
}

func errTooFast(wait time.Duration) *kg.Error {
	e := kg.Errorf(kg.CodeRateLimited, "too many messages in a minute")
	e.RetryAfter, e.Limit = wait, "messagesPerMinute"
	return e
}

// counts are how many of something are open, for those who are bounded.
type counts struct {
	mu   sync.Mutex
	open map[string]int
}

// take counts one more for all of these, or refuses it for all.
func (c *counts) take(paces ...pace) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range paces {
		if p.most > 0 && c.open[p.of] >= p.most {
			e := errTooMuch("", "%d streams are open, as many as may be", p.most)
			e.Limit = "streams"
			return nil, e
		}
	}
	for _, p := range paces {
		c.open[p.of]++
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range paces {
			if c.open[p.of]--; c.open[p.of] == 0 {
				delete(c.open, p.of)
			}
		}
	}), nil
}
