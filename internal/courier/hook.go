package courier

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"koine/internal/tasks"
	"koine/internal/webhook"
	"koine/kg"
)

// hook is a web hook that letters are carried to.
type hook struct {
	service *Service
	agent   kg.AgentID
	sealed  string
	target  *webhook.Target
	turn    *sync.Mutex // held for each call: the hook before it of the agent has the same
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex  // guards what follows
	queue   []*item     // letters that are to be carried, the oldest first
	seen    kg.Revision // letters of up to here are in the queue, or were
	working bool        // somebody is at them
	dirty   bool        // how far it came is not written down
	failed  int         // calls since the last that did not
	failing time.Time   // since when
	failure string
}

// item is a letter that is to be carried.
type item struct {
	tasks.Notice
	tries int
}

func newHook(s *Service, agent kg.AgentID, from *storedHook, turn *sync.Mutex) *hook {
	h := &hook{service: s, agent: agent, sealed: from.sealed, target: from.target, seen: from.delivered, turn: turn}
	s.tasks.MarkDelivered(agent, from.delivered) // by the server before this one
	h.ctx, h.cancel = context.WithCancel(s.ctx)
	return h
}

// scanMailbox puts into the queue what waits in the mailbox and was not seen. Nobody tells the
// hook of letters meanwhile.
func (h *hook) scanMailbox() error {
	list, at, err := h.service.tasks.Notices(h.ctx, h.agent)
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

// enqueue is called for each letter, in the order of the log. A commit brings one letter at
// the most: each message is sent in its own.
func (h *hook) enqueue(n tasks.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.Since <= h.seen || h.ctx.Err() != nil {
		return
	}
	h.seen = n.Since
	h.queue = append(h.queue, &item{Notice: n})
	if !h.working {
		h.working = true
		h.service.done.Go(h.deliverQueue)
	}
}

// nextLetter is the letter to carry: of those that failed in the fewest rounds of MaxTries the
// oldest, and none before an older one of its task. It is nil where there is none, and
// work ends.
func (h *hook) nextLetter() *item {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 || h.ctx.Err() != nil {
		h.working = false
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

// deliverQueue carries what is in the queue, one after the other.
func (h *hook) deliverQueue() {
	for it := h.nextLetter(); it != nil; it = h.nextLetter() {
		h.turn.Lock()
		called, err := h.deliverLetter(it)
		h.turn.Unlock()
		switch {
		case errors.Is(err, errHookRemoved):
			h.service.dropHook(h)
		case h.ctx.Err() != nil: // it is carried again when it is taken up
		case err == nil:
			h.noteDelivered(it, called)
		default:
			webhook.Backoff(h.ctx, h.service.options.Pause, h.noteFailed(it, called, err))
		}
	}
}

// Why a letter is not carried.
var (
	errHookRemoved  = errors.New("the web hook is not there any more")
	errAgentRefused = errors.New("the agent is not let in")
)

// deliverLetter calls the hook with a letter, if it is still in its mailbox.
func (h *hook) deliverLetter(it *item) (called bool, err error) {
	s := h.service
	release, err := s.sender.Acquire(h.ctx)
	if err != nil {
		return false, err
	}
	defer release()
	letter, err := s.tasks.ReadLetter(h.ctx, it.Notice)
	if err != nil || letter == nil {
		return false, err
	}
	now, err := s.readHook(h.ctx, h.agent)
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
	err = s.sender.Post(h.ctx, h.target, http.Header{"Idempotency-Key": {letter.ID()}}, body)
	if done := telling.Done(context.WithoutCancel(h.ctx), err == nil); done != nil {
		// The letter stays in the mailbox, and its agent may find it there again.
		s.options.Logger.Warn("a letter that was reported on is not acknowledged", "agent", h.agent, "letter", letter.ID(), "error", done)
	}
	return true, err
}

// noteDelivered takes a letter out of the queue.
func (h *hook) noteDelivered(it *item, called bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = slices.DeleteFunc(h.queue, func(other *item) bool { return other == it })
	h.dirty = true
	h.service.tasks.MarkDelivered(h.agent, h.deliveredRevision())
	if called && h.failed > 0 {
		h.service.options.Logger.Info("the web hook of a mailbox works again", "agent", h.agent, "tries", h.failed)
		h.failed, h.failing, h.failure = 0, time.Time{}, ""
	}
}

// noteFailed notes that a letter was not carried, and tells how often that was so since the
// last that was.
func (h *hook) noteFailed(it *item, called bool, err error) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = "an internal error"
	switch {
	case called:
		h.failure = webhook.PublicMessage(err)
	case errors.Is(err, errAgentRefused):
		h.failure = err.Error()
	}
	if called {
		it.tries++
	}
	if h.failed++; h.failed == 1 {
		h.failing = time.Now()
		h.service.options.Logger.Warn("the web hook of a mailbox fails; its letters wait", "agent", h.agent, "error", err)
	}
	return h.failed
}

// deliveredRevision is the revision up to which all letters were carried. The hook is locked.
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
