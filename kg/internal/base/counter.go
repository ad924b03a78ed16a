package base

import "sync/atomic"

// Counter counts what happens often and is read seldom.
type Counter struct{ n atomic.Uint64 }

// Add adds n. A nil counter counts nothing.
func (c *Counter) Add(n uint64) {
	if c != nil {
		c.n.Add(n)
	}
}

func (c *Counter) Read() uint64 { return c.n.Load() }
