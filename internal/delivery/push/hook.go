package push

import (
	"sync"

	"koine/internal/delivery"
	"koine/internal/tasks"
	"koine/kg"
)

// hook delivers the events of a task for one configuration.
type hook struct {
	service *Service
	config  *Config
	task    *tasks.Task // the task of the configuration
	version string      // value of propSet
	behind  bool        // the task had changed after delivered when the hook was loaded
	line    delivery.Line

	mu         sync.Mutex    // guards the following
	delivered  kg.Position   // position of the last delivery
	pending    []kg.Revision // commits to deliver, oldest first
	overflowed bool          // commits were dropped: deliver the present task first
	done       bool          // the end of the task was delivered
	dirty      bool          // delivered is not stored yet
}

func newHook(s *Service, c *Config, t *tasks.Task, set string) *hook {
	return &hook{service: s, config: c, task: t, version: set, line: s.job.NewLine()}
}

// enqueue queues a commit that changes the task. It is called in log order.
func (h *hook) enqueue(r kg.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if (kg.Position{Revision: r, Index: kg.EndOfCommit}).Compare(h.delivered) <= 0 || len(h.pending) > 0 && r <= h.pending[len(h.pending)-1] {
		return
	}
	if len(h.pending) == MaxPending {
		h.service.logLost(h, "too many commits wait for the web hook: delivering the present task instead", "revision", h.pending[0])
		h.pending, h.overflowed = h.pending[:0], true
	}
	h.pending = append(h.pending, r)
	h.line.Wake(&h.mu, h.nextDelivery)
}

// nextDelivery returns the delivery of the next commit, nil if there is none. The caller holds
// h.mu.
func (h *hook) nextDelivery() func() {
	if len(h.pending) == 0 {
		return nil
	}
	r, deliver := h.pending[0], h.deliverCommit
	if h.overflowed {
		h.overflowed, deliver = false, h.deliverState
	}
	return func() {
		err := deliver(r)
		if h.line.Context().Err() != nil {
			return // not delivered: repeated when the hook is loaded again
		}
		if err != nil {
			h.service.logLost(h, "cannot deliver a commit", "revision", r, "error", err)
		}
		h.mu.Lock()
		done := h.done
		h.mu.Unlock()
		h.advanceTo(kg.Position{Revision: r, Index: kg.EndOfCommit}, done)
	}
}

// advanceTo advances the position of the hook. It never moves backwards.
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

// deliverCommit delivers the events of a commit, starting at the position of the hook.
func (h *hook) deliverCommit(r kg.Revision) error {
	s := h.service
	c, err := s.store.Commit(h.line.Context(), kg.SystemPrincipal(), r)
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
			continue // the creator's own messages are not delivered
		}
		if whole && i < len(events)-1 {
			continue // the last one includes all
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

// deliverEvent delivers one event. The error is not that of the hook.
func (h *hook) deliverEvent(e *tasks.Event, whole bool) (err error) {
	t := h.task
	if whole {
		if t, err = h.service.tasks.Get(h.line.Context(), systemCaller(), t.ID, tasks.ReadFitting); err != nil {
			return err
		}
	}
	return h.deliver(t, e, e.Position.Revision)
}

// deliverState delivers the present task in place of the events since a commit.
func (h *hook) deliverState(kg.Revision) error {
	t, err := h.service.tasks.Get(h.line.Context(), systemCaller(), h.task.ID, tasks.ReadFitting)
	if err != nil {
		return err
	}
	if err := h.deliver(t, nil, t.Revision); err != nil {
		return err
	}
	h.advanceTo(kg.Position{Revision: t.Revision, Index: kg.EndOfCommit}, t.Status.State.Ended())
	return nil
}

// deliver delivers a task, or an event of it, or gives up. The error is not that of the
// hook.
func (h *hook) deliver(t *tasks.Task, e *tasks.Event, r kg.Revision) error {
	body, err := h.service.options.Body(h.config.Form, t, e)
	if err != nil {
		return err
	}
	if err := h.sendWithRetry(body); err != nil && h.line.Context().Err() == nil {
		h.service.logLost(h, "giving up on a push notification", "revision", r, "error", err)
	}
	return h.line.Context().Err()
}

// logLost logs a failed delivery without the URL and the credentials of the hook.
func (s *Service) logLost(h *hook, message string, more ...any) {
	s.options.Logger.Warn(message, append([]any{"task", h.config.Task}, more...)...)
}
