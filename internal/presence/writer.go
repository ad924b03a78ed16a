package presence

import (
	"context"
	"sync"
	"time"

	"koine/kg"
)

// Transition is that an agent became something.
type Transition struct {
	Agent kg.AgentID
	Presence
}

// Journal is where transitions are written down. Both are called on goroutines that
// wait for them.
type Journal interface {
	// Write writes transitions of as many agents, all or none. It is called again
	// with what it failed at.
	Write(context.Context, []Transition) error
	// Register makes the record of an agent, and says so (Tracker.Registered).
	Register(context.Context, kg.AgentID) error
}

// writer is the goroutine that writes.
type writer struct {
	wake   chan struct{}
	cancel context.CancelFunc // nil before Start
	done   sync.WaitGroup
}

func (w *writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Start takes what the journal says, and begins to write there, until Close. Who was
// there has as long to come back as a heartbeat holds.
func (t *Tracker) Start(told map[kg.AgentID]Presence, j Journal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.journal = j
	for agent, p := range told {
		e := t.entryFor(agent, now)
		if e == nil {
			continue
		}
		p = newPresence(p.Status, p.Since)
		e.now, e.stored = p, p
		if p.Status != Offline {
			e.heartbeatUntil, e.active = now.Add(t.options.Validity), now
			switch p.Status {
			case Busy:
				e.stated = Busy
			case Idle:
				e.active = p.Since.Add(-t.options.IdleAfter)
			}
		}
		t.refreshEntry(e, now)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.writer.cancel = cancel
	t.writer.done.Go(func() { t.runWriter(ctx, j) })
}

// Close ends the writing, and waits for it. Who is there stays so in the journal:
// see Start. Call it before the store is closed; the tracker may be asked on.
func (t *Tracker) Close() {
	t.mu.Lock()
	cancel := t.writer.cancel
	t.journal = nil
	t.mu.Unlock()
	if cancel != nil {
		cancel()
		t.writer.done.Wait()
	}
}

// runWriter writes down what changes, until the context or the store ends.
func (t *Tracker) runWriter(ctx context.Context, j Journal) {
	var next time.Time // not before is written again
	backoff := t.options.WriteInterval
	failed := false
	for ctx.Err() == nil {
		now := time.Now()
		if now.Before(next) && !sleep(ctx, next.Sub(now)) {
			return
		}
		list, told, wait := t.dueTransitions(time.Now())
		if len(list) == 0 {
			t.waitForWork(ctx, wait)
			continue
		}
		err := j.Write(ctx, told)
		t.noteWritten(list, told, err, time.Now())
		next = time.Now().Add(t.options.WriteInterval)
		switch {
		case err == nil:
			failed, backoff = false, t.options.WriteInterval
		case ctx.Err() != nil || kg.CodeOf(err) == kg.CodeClosed:
			return
		default:
			if !failed { // once, not every minute
				t.options.Logger.Warn("who is there cannot be written down", "agents", len(list), "error", err)
			}
			next = time.Now().Add(backoff)
			failed, backoff = true, min(2*backoff, MaxBackoff)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// waitForWork waits so long, or until there is something to look at earlier. Negative is
// for as long as it takes.
func (t *Tracker) waitForWork(ctx context.Context, d time.Duration) {
	var after <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-ctx.Done():
	case <-t.writer.wake:
	case <-after:
	}
}

// dueTransitions looks at those whose time has come, and gives those that are to be written, and
// as what. If these are none, wait is how long there is nothing to do, negative for
// no end.
func (t *Tracker) dueTransitions(now time.Time) (list []*entry, told []Transition, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(list) < MaxTransitions {
		e, ok := t.upcoming.Min()
		if !ok {
			return list, told, -1
		}
		if now.Before(e.checkAt) {
			return list, told, e.checkAt.Sub(now)
		}
		ripe := !e.pendingSince.IsZero() && t.mustStore(e)
		t.refreshEntry(e, now)
		if ripe && !e.pendingSince.IsZero() {
			e.writing = true
			t.scheduleCheck(e, now)
			list, told = append(list, e), append(told, Transition{e.agent, e.now})
		}
	}
	return list, told, 0
}

// noteWritten notes what was written, or was not.
func (t *Tracker) noteWritten(list []*entry, told []Transition, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range list {
		e.writing = false
		if e.dropped {
			e.dropped = false
		} else if err == nil {
			e.stored, e.written = told[i].Presence, now
		}
		t.refreshEntry(e, now)
	}
}
