package presence

import (
	"context"
	"time"

	"koine/internal/backoff"
	"koine/internal/jobs"
	"koine/kg"
)

// Transition is a change of an agent's presence.
type Transition struct {
	Agent kg.AgentID
	Presence
}

// Journal stores transitions. Its methods may block.
type Journal interface {
	// Write stores transitions of distinct agents, all or none. Failed transitions are
	// passed again.
	Write(context.Context, []Transition) error
	// Register creates the record of an agent and calls Tracker.SetRegistered.
	Register(context.Context, kg.AgentID) error
}

// writer is the job that stores changes.
type writer struct {
	wake chan struct{}
	jobs *jobs.Group
}

func (w *writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Start takes over the stored states and starts storing changes, until Close. Agents
// that were present have the validity of one heartbeat to return.
func (t *Tracker) Start(stored map[kg.AgentID]Presence, j Journal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.journal = j
	for agent, p := range stored {
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
	t.writer.jobs.Start("write presence", func(ctx context.Context) error { t.runWriter(ctx, j); return nil })
}

// Close stops storing changes and waits for the writer. Present agents stay present in
// the journal; see Start. Call it before closing the store. The tracker still answers
// Get.
func (t *Tracker) Close() {
	t.mu.Lock()
	t.journal = nil
	t.mu.Unlock()
	t.writer.jobs.Stop()
}

// runWriter stores changes until ctx is done or the store is closed.
func (t *Tracker) runWriter(ctx context.Context, j Journal) {
	var next time.Time // earliest time of the next commit
	pause := t.options.WriteInterval
	failed := false
	for ctx.Err() == nil {
		if backoff.Sleep(ctx, time.Until(next)) != nil {
			return
		}
		list, transitions, wait := t.dueTransitions(time.Now())
		if len(list) == 0 {
			t.waitForWork(ctx, wait)
			continue
		}
		err := j.Write(ctx, transitions)
		t.noteWritten(list, transitions, err, time.Now())
		next = time.Now().Add(t.options.WriteInterval)
		switch {
		case err == nil:
			failed, pause = false, t.options.WriteInterval
		case ctx.Err() != nil || kg.CodeOf(err) == kg.CodeClosed:
			return
		default:
			if !failed { // log once per outage
				t.options.Logger.Warn("cannot store the presence of agents", "agents", len(list), "error", err)
			}
			next = time.Now().Add(pause)
			failed, pause = true, min(2*pause, MaxBackoff)
		}
	}
}

// waitForWork waits for d (negative: no limit) or for an earlier check.
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

// dueTransitions refreshes the entries that are due and returns those to store with
// their transitions. If there are none, wait is the time until the next check, negative
// if none is scheduled.
func (t *Tracker) dueTransitions(now time.Time) (list []*entry, transitions []Transition, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(list) < MaxTransitions {
		e, ok := t.upcoming.Min()
		if !ok {
			return list, transitions, -1
		}
		if now.Before(e.checkAt) {
			return list, transitions, e.checkAt.Sub(now)
		}
		due := !e.pendingSince.IsZero() && t.mustStore(e) && !now.Before(t.storeAt(e))
		t.refreshEntry(e, now)
		if due && !e.pendingSince.IsZero() {
			e.writing = true
			t.scheduleCheck(e, now)
			list, transitions = append(list, e), append(transitions, Transition{e.agent, e.now})
		}
	}
	return list, transitions, 0
}

// noteWritten records the result of a write.
func (t *Tracker) noteWritten(list []*entry, transitions []Transition, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range list {
		e.writing = false
		if e.dropped {
			e.dropped = false
		} else if err == nil {
			e.stored, e.written = transitions[i].Presence, now
		}
		t.refreshEntry(e, now)
	}
}
