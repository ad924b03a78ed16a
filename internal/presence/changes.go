package presence

import (
	"context"
	"iter"
	"sync"

	"koine/internal/jobs"
	"koine/kg"
)

// changeQueue holds the changes that a reader has not read yet, the latest of each agent,
// in the order in which the agents first changed.
type changeQueue struct {
	wake chan struct{}

	mu      sync.Mutex // guards the following
	order   []kg.AgentID
	latest  map[kg.AgentID]Presence
	dropped int // agents dropped since the last read
}

// Changes yields the changes of states from now on, until the context is done. It neither
// starts a goroutine nor delays the tracker. For a slow reader the changes of an agent
// coalesce into the latest one; beyond MaxPendingChanges agents that of the agent that
// waits the longest is dropped, and dropped counts them before the next change. Call it once,
// and range over the result once: the reader is registered until the loop ends.
//
// Errors: CodeLimitExceeded for MaxListeners readers.
func (t *Tracker) Changes(ctx context.Context) (iter.Seq2[Transition, int], error) {
	q := &changeQueue{wake: make(chan struct{}, 1), latest: map[kg.AgentID]Presence{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.listeners) >= MaxListeners {
		return nil, kg.Errorf(kg.CodeLimitExceeded, "changes of presence have %d readers, which is the limit", len(t.listeners))
	}
	t.listeners[q] = true
	end := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.listeners, q)
	}
	stop := context.AfterFunc(ctx, end)
	return func(yield func(Transition, int) bool) {
		defer stop()
		defer end()
		for ctx.Err() == nil {
			tr, dropped, found := q.pop()
			switch {
			case found:
				if !yield(tr, dropped) {
					return
				}
			default:
				select {
				case <-ctx.Done():
				case <-q.wake:
				}
			}
		}
	}, nil
}

// pop removes the change that waits the longest.
func (q *changeQueue) pop() (tr Transition, dropped int, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return tr, 0, false
	}
	tr = Transition{q.order[0], q.latest[q.order[0]]}
	delete(q.latest, tr.Agent)
	if q.order = q.order[1:]; len(q.order) == 0 {
		q.order = nil
	}
	dropped, q.dropped = q.dropped, 0
	return tr, dropped, true
}

func (q *changeQueue) push(tr Transition) {
	q.mu.Lock()
	if _, waits := q.latest[tr.Agent]; !waits {
		if len(q.order) == MaxPendingChanges {
			delete(q.latest, q.order[0])
			q.order = append(q.order[:0], q.order[1:]...)
			q.dropped++
		}
		q.order = append(q.order, tr.Agent)
	}
	q.latest[tr.Agent] = tr.Presence
	q.mu.Unlock()
	jobs.Wake(q.wake)
}

// tellChange tells the listeners of the present state of an entry.
func (t *Tracker) tellChange(e *entry) {
	for q := range t.listeners {
		q.push(Transition{e.agent, e.now})
	}
}
