package kgtest

import (
	"sync"
	"time"
)

// Clock is a clock for tests that only moves when told to. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// noon is the initial time of a Clock.
var noon = time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC)

// NewClock returns a Clock at noon.
func NewClock() *Clock { return &Clock{now: noon} }

// Now returns the time; use it as kg.Options.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Move moves the clock by d, which may be negative.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
