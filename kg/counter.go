package kg

import "sync/atomic"

// counter counts what happens often and is read seldom.
type counter struct{ n atomic.Uint64 }

// add adds n. A nil counter counts nothing.
func (c *counter) add(n uint64) {
	if c != nil {
		c.n.Add(n)
	}
}

func (c *counter) read() uint64 { return c.n.Load() }
