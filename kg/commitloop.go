package kg

import (
	"errors"
	"runtime"
	"time"

	"koine/kg/internal/wal"
)

// commitLoop is the one writer: it executes groups, appends them to the log and
// shows them to readers, in this order. Where it pays (tempo), the next group is
// executed on top of one that is on its way to the log.
func (s *Store) commitLoop() {
	defer s.stopped.Done()
	idle := time.NewTimer(flushIdle)
	defer idle.Stop()
	for {
		select {
		case u := <-s.queue:
			if s.tempo.gathers(s.options.gatherFrom) {
				runtime.Gosched() // who was answered just now asks again, in this group
			}
			s.commit(s.collect(u))
			idle.Reset(flushIdle)
		case err := <-s.appended:
			s.landAhead(err)
			idle.Reset(flushIdle)
		case fn := <-s.exclusive:
			s.awaitAppend()
			s.settle()
			fn()
			s.recently.forget(s.head.Load().revision)
			idle.Reset(flushIdle)
		case fn := <-s.between:
			s.awaitAppend()
			fn()
			idle.Reset(flushIdle)
		case err := <-s.flushed:
			s.endFlush(err)
			idle.Reset(s.flushAfter())
		case <-idle.C:
			s.flushIfAny()
			s.indexLoad()
			if s.layers.stuck || s.unindexed.Load() != nil {
				idle.Reset(flushRetry)
			}
		case <-s.stop:
			s.awaitAppend()
			for len(s.queue) > 0 {
				u := <-s.queue
				u.err = errClosed()
				close(u.done)
			}
			s.settle()
			return
		}
	}
}

// collect takes what is queued as one group.
func (s *Store) collect(u *update) []*update {
	updates := []*update{u}
	for len(updates) < s.options.GroupCommits {
		select {
		case u := <-s.queue:
			updates = append(updates, u)
		default:
			return updates
		}
	}
	return updates
}

// commit takes updates through execute, append and apply, in as many groups as
// they need, and answers them, but perhaps for the last group: that one is ahead.
func (s *Store) commit(updates []*update) {
	for len(updates) > 0 {
		if s.ahead != nil && s.ahead.system {
			s.awaitAppend() // what it says holds for the next group
		}
		g := s.newGroup()
		if err := s.writable(); err != nil {
			g.refusal = err
			g.freesOnly = s.mayUseReserve()
		}
		g.make(updates)
		g.snapshot.close()
		s.send(g)
		updates = updates[len(g.updates):]
	}
}

// send hands an executed group to the log, and does not wait for it where there is
// enough to execute meanwhile. A group is answered after the one ahead of it, on top
// of which it was executed, even if it has nothing for the log.
func (s *Store) send(g *group) {
	ahead, next := s.ahead, len(s.queue)
	if ahead != nil {
		next += len(ahead.updates) // whose callers are about to be answered, and ask for more
		if err := <-s.appended; err != nil {
			s.landAhead(err)
			failAll(g.updates, s.refusal()) // nothing was written of it
			s.answer(g)
			return
		}
		s.ahead = nil
	}
	if s.tempo.overlaps(next, s.options.overlapFrom) {
		s.ahead = g
		go func() { s.appended <- g.append() }() // the committer waits for it before it ends
	}
	if ahead != nil {
		s.land(ahead, nil) // while the log is at work
	}
	if s.ahead == nil {
		s.land(g, g.append())
	}
}

// awaitAppend waits until no group is ahead.
func (s *Store) awaitAppend() {
	if s.ahead != nil {
		s.landAhead(<-s.appended)
	}
}

func (s *Store) landAhead(err error) {
	g := s.ahead
	s.ahead = nil
	s.land(g, err)
}

// land shows a group to readers whose append has ended, and answers it.
func (s *Store) land(g *group, err error) {
	s.tempo.appended(g.took)
	switch {
	case err != nil:
		s.writeFailed(g, err)
	case len(g.commits) > 0:
		s.apply(g)
		g.applied = time.Now()
	}
	s.answer(g)
}

// answer tells the callers of a group how their updates ended.
func (s *Store) answer(g *group) {
	s.measure(g)
	for _, u := range g.updates {
		close(u.done)
	}
	s.tailer.tell()
	s.flushIfFull()
}

// measure takes note of what a group is answered with.
func (s *Store) measure(g *group) {
	if len(g.commits) == 0 {
		return
	}
	s.measures.group.size(len(g.commits))
	now := time.Now()
	for _, u := range g.updates {
		if u.err == nil && u.receipt.Committed && !u.receipt.Replayed {
			s.measures.commit.took(now.Sub(u.since))
		}
	}
}

// writeFailed makes the store read-only and leaves the callers of the group in
// no doubt that there is doubt.
func (s *Store) writeFailed(g *group, err error) {
	if errors.Is(err, wal.ErrNoSpace) {
		s.noRoom(g, err)
		return
	}
	s.refuse(errReadOnly(writeFailure, err))
	for _, u := range g.updates {
		if u.err == nil {
			u.receipt = Receipt{}
			u.err = &Error{Code: CodeOutcomeUnknown, Message: "the store failed while it wrote: the update may or may not be there afterwards",
				Hint: "ask again with the same idempotency key", Err: err}
		}
	}
}

const writeFailure = "the store failed while it wrote and takes no updates until it is reopened"

// errReadOnly keeps the cause out of the message, which goes to whoever asks: it names
// files.
func errReadOnly(message string, cause error) *Error {
	return &Error{Code: CodeReadOnly, Message: message, Err: cause}
}

// failAll refuses updates of which nothing was written.
func failAll(updates []*update, err error) {
	for _, u := range updates {
		u.receipt, u.err = Receipt{}, err
	}
}
