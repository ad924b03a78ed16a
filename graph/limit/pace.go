package limit

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	// heavyAfter is the number of scan steps (about a millisecond each) after
	// which a query counts as heavy.
	heavyAfter = 8
	// heavyTurn is how long a heavy query works before another one gets its
	// turn.
	heavyTurn = 20 * time.Millisecond
)

// Gate limits the heavy queries that work at a time so that one processor
// is left for light ones. The others wait in order of arrival. Without it a
// light query would wait behind each of them.
type Gate chan struct{}

// NewGate returns a gate for the processors of this process.
func NewGate() Gate {
	return make(Gate, max(1, runtime.GOMAXPROCS(0)-1))
}

func (g Gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g Gate) leave() { <-g }

// Pace is the pace of one query. The query may scan in several goroutines,
// which pass the gate together.
type Pace struct {
	Gate Gate

	mu     sync.Mutex // guards the fields below; held while waiting for a turn
	steps  int
	inside bool
	since  time.Time
}

// Step is the query's kg.Pace.
func (p *Pace) Step(ctx context.Context) error {
	runtime.Gosched()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.steps++; p.steps <= heavyAfter {
		return nil
	}
	if p.inside {
		if time.Since(p.since) < heavyTurn {
			return nil
		}
		p.Gate.leave()
		p.inside = false
	}
	if err := p.Gate.enter(ctx); err != nil {
		return err
	}
	p.inside, p.since = true, time.Now()
	return nil
}

// Close gives the turn back. The query must not scan any more.
func (p *Pace) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inside {
		p.Gate.leave()
		p.inside = false
	}
}
