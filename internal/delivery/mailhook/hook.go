package mailhook

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"koine/internal/delivery"
	"koine/internal/tasks"
	"koine/kg"
)

// hook delivers letters to a web hook.
type hook struct {
	service *Service
	agent   kg.AgentID
	sealed  string
	target  *delivery.Target
	turn    *sync.Mutex // held during a call; shared with the previous hook of the agent
	line    delivery.Line

	mu      sync.Mutex  // guards the following
	queue   []*item     // letters to deliver, oldest first
	seen    kg.Revision // letters up to this revision were queued
	dirty   bool        // the progress is not stored yet
	failed  int         // consecutive failed calls
	failing time.Time   // time of the first of them
	failure string
}

// item is a letter to deliver.
type item struct {
	tasks.Notice
	tries int
}

func newHook(s *Service, agent kg.AgentID, from *storedHook, turn *sync.Mutex) *hook {
	h := &hook{service: s, agent: agent, sealed: from.sealed, target: from.target, seen: from.delivered, turn: turn, line: s.job.NewLine()}
	s.tasks.MarkDelivered(agent, from.delivered) // delivered by the previous server
	return h
}

// scanMailbox queues the letters in the mailbox that were not seen yet. enqueue must
// not be called concurrently.
func (h *hook) scanMailbox() error {
	list, at, err := h.service.tasks.Notices(h.line.Context(), h.agent)
	if err != nil {
		return err
	}
	for _, n := range list {
		h.enqueue(n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = max(h.seen, at)
	return nil
}

// enqueue queues a letter. It is called in log order. A commit has at most one letter,
// because each message is sent in a commit of its own.
func (h *hook) enqueue(n tasks.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.Since <= h.seen || h.line.Context().Err() != nil {
		return
	}
	h.seen = n.Since
	h.queue = append(h.queue, &item{Notice: n})
	h.line.Wake(&h.mu, h.nextDelivery)
}

// nextDelivery returns the delivery of the next letter, nil if there is none. The caller holds
// h.mu.
func (h *hook) nextDelivery() func() {
	it := h.nextLetter()
	if it == nil {
		return nil
	}
	return func() {
		h.turn.Lock()
		called, err := h.deliverLetter(it)
		h.turn.Unlock()
		switch {
		case errors.Is(err, errHookRemoved):
			h.service.dropHook(h)
		case h.line.Context().Err() != nil: // delivered again when the hook is loaded
		case err == nil:
			h.noteDelivered(it, called)
		default:
			delivery.Backoff(h.line.Context(), h.service.options.Pause, h.noteFailed(it, called, err))
		}
	}
}

// nextLetter returns the letter to deliver: the oldest of those with the fewest
// complete rounds of MaxTries failures, but none before an older letter of its task. It
// is nil if there is none.
func (h *hook) nextLetter() *item {
	if len(h.queue) == 0 {
		return nil
	}
	best, behind := h.queue[0], map[tasks.TaskID]bool{}
	for _, it := range h.queue {
		if !behind[it.Task] && it.tries/MaxTries < best.tries/MaxTries {
			best = it
		}
		if best.tries < MaxTries {
			break
		}
		behind[it.Task] = true
	}
	return best
}

// Reasons for not delivering a letter.
var (
	errHookRemoved  = errors.New("web hook was removed")
	errAgentRefused = errors.New("agent is suspended")
)

// deliverLetter calls the hook with a letter if it is still in the mailbox.
func (h *hook) deliverLetter(it *item) (called bool, err error) {
	s := h.service
	release, err := s.sender.Acquire(h.line.Context(), h.agent)
	if err != nil {
		return false, err
	}
	defer release()
	letter, err := s.tasks.ReadLetter(h.line.Context(), it.Notice)
	if err != nil || letter == nil {
		return false, err
	}
	now, err := s.readHook(h.line.Context(), h.agent)
	switch {
	case err != nil:
		return false, err
	case now == nil || now.sealed != h.sealed:
		return false, errHookRemoved
	case !s.options.MayDeliver(h.agent):
		return false, errAgentRefused
	}
	body, err := s.options.Body(letter)
	if err != nil {
		return false, err
	}
	telling := s.tasks.StartDelivery(h.agent, it.Notice)
	err = s.sender.Post(h.line.Context(), h.target, http.Header{"Idempotency-Key": {letter.ID()}}, body)
	if done := telling.Done(context.WithoutCancel(h.line.Context()), err == nil); done != nil {
		// The letter stays in the mailbox, where its agent may see it again.
		s.options.Logger.Warn("cannot acknowledge a delivered letter", "agent", h.agent, "letter", letter.ID(), "error", done)
	}
	return true, err
}

// noteDelivered removes a letter from the queue.
func (h *hook) noteDelivered(it *item, called bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = slices.DeleteFunc(h.queue, func(other *item) bool { return other == it })
	h.dirty = true
	h.service.tasks.MarkDelivered(h.agent, h.deliveredRevision())
	if called && h.failed > 0 {
		h.service.options.Logger.Info("web hook of a mailbox works again", "agent", h.agent, "tries", h.failed)
		h.failed, h.failing, h.failure = 0, time.Time{}, ""
	}
}

// noteFailed records a failed delivery and returns the number of consecutive failures.
func (h *hook) noteFailed(it *item, called bool, err error) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = "an internal error"
	switch {
	case called:
		h.failure = delivery.PublicMessage(err)
	case errors.Is(err, errAgentRefused):
		h.failure = err.Error()
	}
	if called {
		it.tries++
	}
	if h.failed++; h.failed == 1 {
		h.failing = time.Now()
		h.service.options.Logger.Warn("web hook of a mailbox fails; its letters wait", "agent", h.agent, "error", err)
	}
	return h.failed
}

// deliveredRevision returns the revision up to which all letters were delivered. The
// caller holds h.mu.
func (h *hook) deliveredRevision() kg.Revision {
	if len(h.queue) == 0 {
		return h.seen
	}
	return h.queue[0].Since - 1
}

func (h *hook) currentState(set time.Time) *State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &State{Origin: h.target.Origin(), Scheme: h.target.Scheme, Set: set, Pending: len(h.queue), FailingSince: h.failing, Failure: h.failure}
}
