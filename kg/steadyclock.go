package kg

import (
	"log/slog"
	"sync"
	"time"
)

// Bounds of what the history option believes of a clock.
const (
	// ClockTolerance is how far a clock may go ahead of the time that passed, from
	// one look to the next, and be believed at once; beside it a thousandth of that
	// time.
	ClockTolerance = time.Minute
	// MaxClockSettle is how long a clock that went further ahead must go on in step
	// before it is believed; the length of the history, where that is shorter.
	MaxClockSettle = time.Hour
)

// steadyClock tells a time that is not ahead of the true one, so that what is
// taken away for its age is that old. The clock of the system may jump; the time
// that the process has been up does not. When the clock has gone ahead of that, or
// is ahead of the newest commit when the store is opened, the time from before
// goes on, until the clock has gone in step for a while: an operator or a time
// server has had that long to set it right. A clock that goes back is believed.
type steadyClock struct {
	clock  func() time.Time
	uptime func() time.Duration
	settle time.Duration
	log    *slog.Logger

	mu sync.Mutex
	// What it was when the process began: as is believed, and as the clock said
	// when it was last looked at, first so at since.
	believed time.Time
	said     time.Time
	since    time.Duration
	looked   time.Duration
}

// newSteadyClock begins with the newest commit.
func newSteadyClock(o *Options, newest *head) *steadyClock {
	c := &steadyClock{clock: o.Clock, uptime: o.Uptime, settle: min(o.History, MaxClockSettle), log: o.Logger}
	up := c.uptime()
	c.said = c.clock().Round(0).Add(-up) // Round: by the clock on the wall alone
	c.since, c.looked = up, up
	c.believed = newest.time.Add(-up)
	if ahead := c.said.Sub(c.believed); newest.revision == 0 || ahead <= ClockTolerance {
		c.believed = c.said
	} else {
		c.log.Warn("the clock is ahead of the newest commit: what is old is told by the time of that, until the clock has gone on in step",
			"ahead", ahead.Round(time.Second), "for", c.settle)
	}
	return c
}

// now is a time to go by, and for how long it is not yet what the clock says.
func (c *steadyClock) now() (t time.Time, waits time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := c.uptime()
	said := c.clock().Round(0).Add(-up)
	if jump := said.Sub(c.said); jump.Abs() > ClockTolerance+(up-c.looked)/1000 {
		c.since = up
		if jump > 0 {
			c.log.Warn("the clock went ahead of the time that passed: what is old is told without that, until the clock has gone on in step",
				"ahead", jump.Round(time.Second), "for", c.settle)
		}
	}
	c.said, c.looked = said, up
	waits = c.settle - (up - c.since)
	if waits <= 0 || said.Sub(c.believed) <= ClockTolerance {
		c.believed, waits = said, 0
	}
	return c.believed.Add(up), waits
}
