package main

import (
	"context"
	"sync"
)

// counted is a growing number with waiters.
type counted struct {
	mu    sync.Mutex
	n     int64
	grown chan struct{} // closed when it grows; nil without waiters
}

func (c *counted) Load() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counted) Store(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n = n; c.grown != nil {
		close(c.grown)
		c.grown = nil
	}
}

// reach waits until it is as much, or the context ends.
func (c *counted) reach(ctx context.Context, n int64) {
	for {
		c.mu.Lock()
		there := c.n >= n
		if c.grown == nil {
			c.grown = make(chan struct{})
		}
		grown := c.grown
		c.mu.Unlock()
		if there {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return
		}
	}
}
