package push

import (
	"context"
	"sync"

	"koine/internal/tasks"
	"koine/kg"
)

// hook is a configuration that is told.
type hook struct {
	service *Service
	config  *Config
	task    *tasks.Task // whose it is
	version string
	behind  bool // when it was loaded, the task had changed behind at
	ctx     context.Context
	cancel  context.CancelFunc

	mu         sync.Mutex    // guards what follows
	delivered  kg.Position   // up to where it was told
	pending    []kg.Revision // commits to tell of, the oldest first
	overflowed bool          // there were too many, and what they are about is to be told as it is
	working    bool          // somebody is at them
	done       bool          // the task has ended, and it was told
	dirty      bool          // at is not written down
}

func newHook(s *Service, c *Config, t *tasks.Task, set string) *hook {
	h := &hook{service: s, config: c, task: t, version: set}
	h.ctx, h.cancel = context.WithCancel(s.ctx)
	return h
}

// enqueue is called for each commit that changes the task, in order.
func (h *hook) enqueue(r kg.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if (kg.Position{Revision: r, Index: kg.EndOfCommit}).Compare(h.delivered) <= 0 || len(h.pending) > 0 && r <= h.pending[len(h.pending)-1] {
		return
	}
	if len(h.pending) == MaxPending {
		h.service.logLost(h, "too much waits for the web hook: it is told the task as it is", "revision", h.pending[0])
		h.pending, h.overflowed = h.pending[:0], true
	}
	h.pending = append(h.pending, r)
	if !h.working {
		h.working = true
		h.service.done.Go(h.deliverPending)
	}
}

// nextDelivery is what tells of the next commit; nil where there is none, and work ends.
func (h *hook) nextDelivery() (r kg.Revision, tell func(kg.Revision) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(h.pending) == 0 || h.ctx.Err() != nil:
		h.working = false
		return 0, nil
	case h.overflowed:
		h.overflowed = false
		return h.pending[0], h.deliverState
	}
	return h.pending[0], h.deliverCommit
}

// advanceTo moves the hook on; where it is already, it stays.
func (h *hook) advanceTo(at kg.Position, done bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.Compare(h.delivered) > 0 {
		h.delivered = at
	}
	h.done, h.dirty = h.done || done, true
	if at.Index == kg.EndOfCommit {
		for len(h.pending) > 0 && h.pending[0] <= at.Revision {
			h.pending = h.pending[1:]
		}
	}
}

// deliverPending tells of what waits, one after the other.
func (h *hook) deliverPending() {
	for {
		r, tell := h.nextDelivery()
		if tell == nil {
			return
		}
		err := tell(r)
		if h.ctx.Err() != nil {
			continue // it is not told: it is sent again when it is taken up
		}
		if err != nil {
			h.service.logLost(h, "a commit cannot be told of", "revision", r, "error", err)
		}
		h.mu.Lock()
		done := h.done
		h.mu.Unlock()
		h.advanceTo(kg.Position{Revision: r, Index: kg.EndOfCommit}, done)
	}
}

// deliverCommit tells of what happened in a commit, from where the hook stands.
func (h *hook) deliverCommit(r kg.Revision) error {
	s := h.service
	c, err := s.store.Commit(h.ctx, kg.SystemPrincipal(), r)
	if kg.CodeOf(err) == kg.CodeRevisionGone {
		return h.deliverState(r)
	}
	if err != nil {
		return err
	}
	events, err := tasks.EventsIn(c, h.task)
	if err != nil {
		return err
	}
	whole := s.options.WantsFullTask(h.config.Form)
	for i := range events {
		e := &events[i]
		if e.Message != nil || e.Position.Compare(h.deliveredPosition()) <= 0 {
			continue // what its creator said, its creator knows
		}
		if whole && i < len(events)-1 {
			continue // the last one shows it all
		}
		if err := h.deliverEvent(e, whole); err != nil {
			return err
		}
		h.advanceTo(e.Position, e.Last())
	}
	return nil
}

func (h *hook) deliveredPosition() kg.Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.delivered
}

// deliverEvent sends one event. An error is not the hook's.
func (h *hook) deliverEvent(e *tasks.Event, whole bool) (err error) {
	t := h.task
	if whole {
		if t, err = h.service.tasks.Get(h.ctx, systemCaller(), t.ID, tasks.ReadAll); err != nil {
			return err
		}
	}
	return h.deliver(t, e, e.Position.Revision)
}

// deliverState tells how the task is, in place of what happened to it since a commit.
func (h *hook) deliverState(kg.Revision) error {
	t, err := h.service.tasks.Get(h.ctx, systemCaller(), h.task.ID, tasks.ReadAll)
	if err != nil {
		return err
	}
	if err := h.deliver(t, nil, t.Revision); err != nil {
		return err
	}
	h.advanceTo(kg.Position{Revision: t.Revision, Index: kg.EndOfCommit}, t.Status.State.Ended())
	return nil
}

// deliver sends a task, or an event of it, or gives it up. An error is not the hook's.
func (h *hook) deliver(t *tasks.Task, e *tasks.Event, r kg.Revision) error {
	body, err := h.service.options.Body(h.config.Form, t, e)
	if err != nil {
		return err
	}
	if err := h.sendWithRetry(body); err != nil && h.ctx.Err() == nil {
		h.service.logLost(h, "a push notification is given up", "revision", r, "error", err)
	}
	return h.ctx.Err()
}

// logLost logs what is not told, without the hook's address and secrets.
func (s *Service) logLost(h *hook, what string, more ...any) {
	s.options.Logger.Warn(what, append([]any{"task", h.config.Task}, more...)...)
}
