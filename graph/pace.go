package graph

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

// heavyGate limits the heavy queries that work at a time so that one processor
// is left for light ones. The others wait in order of arrival. Without it a
// light query would wait behind each of them.
type heavyGate chan struct{}

func newHeavyGate() heavyGate {
	return make(heavyGate, max(1, runtime.GOMAXPROCS(0)-1))
}

func (g heavyGate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g heavyGate) leave() { <-g }

// pace is the pace of one query. The query may scan in several goroutines,
// which pass the gate together.
type pace struct {
	gate heavyGate

	mu     sync.Mutex // guards the fields below; held while waiting for a turn
	steps  int
	inside bool
	since  time.Time
}

// step is the query's kg.Pace.
func (p *pace) step(ctx context.Context) error {
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
		p.gate.leave()
		p.inside = false
	}
	if err := p.gate.enter(ctx); err != nil {
		return err
	}
	p.inside, p.since = true, time.Now()
	return nil
}

// close gives the turn back. The query must not scan any more.
func (p *pace) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inside {
		p.gate.leave()
		p.inside = false
	}
}
