package base

import "sync/atomic"

// Counter is an atomic counter.
type Counter struct{ n atomic.Uint64 }

// Add adds n. A nil counter counts nothing.
func (c *Counter) Add(n uint64) {
	if c != nil {
		c.n.Add(n)
	}
}

// Read returns the count.
func (c *Counter) Read() uint64 { return c.n.Load() }
