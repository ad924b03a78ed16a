package limit

import (
	"context"
	"sync"
	"time"
)

// WithDuration is context.WithTimeout without its timer, which nearly no operation needs: Err
// compares the time, and Done, which few call, starts the timer. stop must be called.
func WithDuration(parent context.Context, d time.Duration) (ctx context.Context, stop func()) {
	c := &timedContext{Context: parent, end: time.Now().Add(d)}
	return c, c.stop
}

// timedContext is a context that ends at a time.
type timedContext struct {
	context.Context // the parent
	end             time.Time

	mu      sync.Mutex // guards the fields below
	stopped bool
	timed   context.Context // has the timer; nil until Done is called
	cancel  context.CancelFunc
}

// Deadline returns the earlier one of the parent's and its own.
func (c *timedContext) Deadline() (time.Time, bool) {
	if at, ok := c.Context.Deadline(); ok && at.Before(c.end) {
		return at, true
	}
	return c.end, true
}

// Done returns a channel that is closed at the end.
func (c *timedContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadline(c.Context, c.end)
		if c.stopped {
			c.cancel()
		}
	}
	return c.timed.Done()
}

// Err returns why the context has ended, nil before.
func (c *timedContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.timed != nil: // so that it agrees with Done
		return c.timed.Err()
	case c.Context.Err() != nil:
		return c.Context.Err()
	case c.stopped:
		return context.Canceled
	case !time.Now().Before(c.end):
		return context.DeadlineExceeded
	}
	return nil
}

func (c *timedContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.cancel != nil {
		c.cancel()
	}
}
