// Package jobs runs background work. A service starts its jobs in a Group and keeps no other
// goroutines, so that stopping the group ends all of them, and nothing runs unnoticed.
package jobs

import (
	"context"
	"log/slog"
	"sync"
)

// Group is a set of jobs with one owner, who starts and stops them. Its methods may be called concurrently.
type Group struct {
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // held to start a job, so that none starts once Stop waits
	stopped bool
	running sync.WaitGroup
}

// NewGroup returns a group without jobs. It logs to log, or nowhere if log is nil.
func NewGroup(log *slog.Logger) *Group {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &Group{log: log}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Context is done when the group is stopped.
func (g *Group) Context() context.Context { return g.ctx }

// Start runs a job, which ends when its context is done. An error that it returns before that is logged and
// ends this job alone. A stopped group starts nothing.
func (g *Group) Start(name string, run func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	g.running.Go(func() {
		if err := run(g.ctx); err != nil && g.ctx.Err() == nil {
			g.log.Error("a background job has ended", "job", name, "error", err)
		}
	})
}

// Stop ends all jobs and waits for them.
func (g *Group) Stop() {
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	g.cancel()
	g.running.Wait()
}
