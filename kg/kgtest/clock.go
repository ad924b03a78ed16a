package kgtest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until it is told to move.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// noon is when a Clock begins.
var noon = time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC)

// NewClock stands at some noon.
func NewClock() *Clock { return &Clock{now: noon} }

// Now is the time; it goes into kg.Options.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Move moves the clock, back too.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
