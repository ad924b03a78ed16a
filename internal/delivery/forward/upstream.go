package forward

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"koine/internal/delivery"
	"koine/internal/tasks"
	"koine/kg"
)

// upstream forwards the letters of an agent.
type upstream struct {
	service *Service
	agent   kg.AgentID
	sealed  string
	setting *Setting
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup // turns

	mu      sync.Mutex       // guards the following
	lines   []*delivery.Line // each makes one call at a time
	queue   []*item          // letters that are not settled, oldest first
	seen    kg.Revision      // letters up to this revision were queued
	timer   *time.Timer      // wakes the lines when the next letter is due
	unary   bool             // the upstream does not stream
	failing time.Time        // time of the first of the failures since the last answer
	failure string
}

// item is a letter that the upstream has not settled.
type item struct {
	tasks.Notice
	due     time.Time // when to call next
	tries   int       // consecutive failures
	polls   int       // consecutive answers without news
	said    string    // the last snapshot of the status that was reported; "" if unknown
	running bool
	// canceled means that a cancellation arrived; interrupt ends the turn, and is nil until
	// the upstream has named its task.
	canceled  bool
	interrupt context.CancelFunc
}

func newUpstream(s *Service, agent kg.AgentID, from *storedSetting) *upstream {
	u := &upstream{service: s, agent: agent, sealed: from.sealed, setting: from.setting, unary: from.setting.Unary}
	u.ctx, u.cancel = context.WithCancel(s.job.Context())
	for range s.options.MaxCallsPerAgent {
		line := s.job.NewLine()
		u.lines = append(u.lines, &line)
	}
	return u
}

// stop ends the turns. They may still complete.
func (u *upstream) stop() {
	u.mu.Lock() // no turn starts afterwards
	defer u.mu.Unlock()
	u.cancel()
	if u.timer != nil {
		u.timer.Stop()
	}
}

// scanMailbox queues the letters in the mailbox that were not seen yet. enqueue must not be called
// concurrently.
func (u *upstream) scanMailbox() error {
	list, at, err := u.service.tasks.Notices(u.ctx, u.agent)
	if err != nil {
		return err
	}
	for _, n := range list {
		u.enqueue(n)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen = max(u.seen, at)
	return nil
}

// enqueue queues a letter. It is called in log order. A commit has at most one letter.
func (u *upstream) enqueue(n tasks.Notice) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n.Since <= u.seen || u.ctx.Err() != nil {
		return
	}
	u.seen = n.Since
	u.queue = append(u.queue, &item{Notice: n})
	if n.Number == 0 { // nobody wants the answers to the task's other letters
		for _, it := range u.queue {
			if it.Task == n.Task && it.Number != 0 {
				it.canceled = true
				if it.interrupt != nil {
					it.interrupt()
				}
			}
		}
	}
	u.startTurns()
}

// startTurns starts the lines that have nothing to do. The caller holds u.mu.
func (u *upstream) startTurns() {
	for _, line := range u.lines {
		if u.nextReady(time.Now()) == nil {
			return
		}
		line.Wake(&u.mu, u.nextTurn)
	}
}

// nextReady returns the oldest letter that is due and behind no other of its task; nil if there
// is none. Then it sets the timer for the next. The caller holds u.mu.
func (u *upstream) nextReady(now time.Time) *item {
	behind := map[tasks.TaskID]bool{}
	var first time.Time
	for _, it := range u.queue {
		if !behind[it.Task] && !it.running {
			if !it.due.After(now) {
				return it
			}
			if first.IsZero() || it.due.Before(first) {
				first = it.due
			}
		}
		behind[it.Task] = true
	}
	if !first.IsZero() {
		u.wakeAt(first.Sub(now))
	}
	return nil
}

// wakeAt wakes the lines after a wait. The caller holds u.mu.
func (u *upstream) wakeAt(wait time.Duration) {
	if u.timer != nil {
		u.timer.Stop()
	}
	u.timer = time.AfterFunc(wait, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.ctx.Err() == nil {
			u.startTurns()
		}
	})
}

// nextTurn returns the next turn, nil if no letter is due. The caller holds u.mu.
func (u *upstream) nextTurn() func() {
	if u.ctx.Err() != nil {
		return nil
	}
	it := u.nextReady(time.Now())
	if it == nil {
		return nil
	}
	it.running = true
	u.running.Add(1)
	return func() {
		defer u.running.Done()
		u.finishTurn(it, u.takeTurn(it))
	}
}

// outcome is the result of a turn.
type outcome struct {
	settled bool
	again   time.Duration // before the next turn, if the letter is not settled
	failed  error         // why the upstream gave no answer; nil if it gave one
}

// finishTurn removes a letter that is settled from the queue, or puts off its next turn.
func (u *upstream) finishTurn(it *item, out outcome) {
	u.mu.Lock()
	defer u.mu.Unlock()
	it.running, it.interrupt = false, nil
	if out.settled {
		u.queue = slices.DeleteFunc(u.queue, func(other *item) bool { return other == it })
	}
	it.due = time.Now().Add(out.again)
	if u.ctx.Err() == nil {
		u.startTurns()
	}
}

// noteFailed records that the upstream does not answer.
func (u *upstream) noteFailed(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failure = publicText(err)
	if u.failing.IsZero() {
		u.failing = time.Now()
		u.service.options.Logger.Warn("upstream of an agent does not answer; its letters wait", "agent", u.agent, "error", err)
	}
}

// noteAnswered records that the upstream answers.
func (u *upstream) noteAnswered(it *item) {
	u.mu.Lock()
	defer u.mu.Unlock()
	it.tries = 0
	if !u.failing.IsZero() {
		u.service.options.Logger.Info("upstream of an agent answers again", "agent", u.agent)
		u.failing, u.failure = time.Time{}, ""
	}
}

// nameTask makes the turn of a letter interruptible: the upstream has named its task, so
// that a cancellation can be forwarded. It reports whether one arrived already.
func (u *upstream) nameTask(it *item, interrupt context.CancelFunc) (canceled bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	it.interrupt = interrupt
	return it.canceled
}

// addState adds the part of the state that is not stored.
func (u *upstream) addState(s *State) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.Waiting, s.FailingSince, s.Failure = len(u.queue), u.failing, u.failure
	for _, it := range u.queue {
		if it.running {
			s.Active++
		}
	}
}

// publicText returns the text of an error for callers: it does not distinguish a private
// address from one that does not respond.
func publicText(err error) string {
	if errors.Is(err, ErrNoAnswer) {
		return ErrNoAnswer.Error()
	}
	return errAway.Error()
}

var errAway = errors.New("agent cannot be reached")
