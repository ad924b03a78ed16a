package graph

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	// heavyAfter is for how many steps of a scan (a millisecond each, about) a
	// query counts as light.
	heavyAfter = 8
	// heavyTurn is how long a heavy query works before another one may.
	heavyTurn = 20 * time.Millisecond
)

// heavyGate lets so many heavy queries work at a time that one processor is left
// for light ones; the others wait for their turn, first come, first served.
// Without it a light query would wait behind each of them.
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

// pace is that of one query, which may scan in several goroutines: they stand in
// the gate together.
type pace struct {
	gate heavyGate

	mu     sync.Mutex // guards what follows; held while waiting for the turn
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

// close gives the place back. Nothing of the query scans any more.
func (p *pace) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inside {
		p.gate.leave()
		p.inside = false
	}
}
