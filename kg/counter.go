package kg

import "sync/atomic"

// counter counts what happens often and is read seldom.
type counter struct{ n atomic.Uint64 }

func (c *counter) add()         { c.n.Add(1) }
func (c *counter) read() uint64 { return c.n.Load() }
