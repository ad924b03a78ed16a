package kg

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/wal"
)

// update is one caller's update on its way through the committer.
type update struct {
	ctx      context.Context
	meta     Meta
	fn       func(*Tx) error
	queuedAt time.Time
	taken    atomic.Bool
	// patient updates wait in the queue without QueueTime: those of a load, which has at most
	// two in the queue.
	patient bool
	// freesSpace is set for an update that frees disk space: it may use the reserve.
	freesSpace bool

	// judged is the judgement made on the caller's goroutine, nil without a Verifier.
	judged *judgedUpdate
	// held is the update that fn stores for review, nil for an ordinary update.
	held *HeldUpdate
	// overtakenBy is the hash of the dependency that changed, if err is errOvertaken; 0 if
	// unknown.
	overtakenBy uint64

	receipt Receipt
	err     error
	group   *group // set when a group takes the update
	done    chan struct{}
}

// judgedUpdate is a verdict with its inputs.
type judgedUpdate struct {
	verdict      Verdict
	revision     Revision
	rulesVersion uint64 // Governor.RulesVersion
	changes      []Change
	time         Term        // the trial's time
	held         *HeldUpdate // the update as the Holder stores it, if it is to be held
	depends      []uint64    // hashes of the dependencies beyond the changes' subjects; sorted for a replacement of a graph
	own          []Term      // Verdict.Own
}

// Update runs fn and commits its changes: all of them, or none if fn fails or the update is
// refused. It returns when the commit is durable and visible to readers. Errors of fn are
// returned unchanged. fn may run more than once, also on another goroutine, and must not call
// Store.Update.
//
// CodeOutcomeUnknown means that the store failed while writing: after reopening, the commit
// may or may not be there. Retry with the same idempotency key.
func (s *Store) Update(ctx context.Context, m Meta, fn func(*Tx) error) (receipt Receipt, err error) {
	if s.options.Span != nil {
		var end func(error)
		ctx, end = s.options.Span(ctx, "kg update")
		defer func() { end(err) }()
	}
	return s.runUpdate(ctx, m, fn)
}

func (s *Store) runUpdate(ctx context.Context, m Meta, fn func(*Tx) error) (Receipt, error) {
	if err := m.normalise(); err != nil {
		return Receipt{}, err
	}
	if ctx.Err() != nil {
		return Receipt{}, errUpdateCancelled(ctx)
	}
	if err := s.checkAdmission(ctx, m); err != nil {
		return Receipt{}, err
	}
	again := s.newRejudging()
	defer again.endTurn()
	for {
		u := &update{ctx: ctx, meta: m, fn: fn, done: make(chan struct{})}
		receipt, err := s.tryUpdate(u)
		if err != errOvertaken {
			return receipt, err
		}
		if err := again.waitTurn(ctx, u.overtakenBy); err != nil {
			return Receipt{}, err
		}
	}
}

// tryUpdate judges an update if needed, and commits it. It returns errOvertaken if the update
// must be judged again.
func (s *Store) tryUpdate(u *update) (Receipt, error) {
	if u.meta.DryRun || s.needsJudgement() {
		receipt, j, err := s.judgeUpdate(u)
		switch {
		case err == nil && !u.meta.DryRun && !receipt.Replayed && s.shouldHold(u, j.verdict):
			u.holdUpdate(s.options.Holder, j.held)
		case err != nil || u.meta.DryRun || receipt.Replayed || j.verdict.Outcome != Accepted:
			receipt.DryRun = u.meta.DryRun
			return receipt, err
		default:
			u.judged = j
		}
	}
	return s.submitUpdate(u)
}

// submitUpdate queues an update for the committer and waits for its result.
func (s *Store) submitUpdate(u *update) (Receipt, error) {
	ctx := u.ctx
	if err := s.enqueueUpdate(u); err != nil {
		return Receipt{}, err
	}
	select {
	case <-u.done:
	case <-ctx.Done():
		if u.taken.CompareAndSwap(false, true) {
			return Receipt{}, errUpdateCancelled(ctx)
		}
		<-u.done // in progress: its result follows soon
	}
	if s.options.Stages != nil && u.receipt.Committed && !u.receipt.Replayed {
		s.options.Stages(ctx, u.group.stagesFrom(u.queuedAt))
	}
	return u.receipt, u.err
}

// checkAdmission calls Governor.Admit.
func (s *Store) checkAdmission(ctx context.Context, m Meta) error {
	if err := m.Principal.CheckWrite(); err != nil {
		return err
	}
	return s.options.Admit(ctx, m)
}

// admitRead calls Governor.AdmitRead: may the principal begin to read, or to follow changes?
func (s *Store) admitRead(ctx context.Context, p Principal, follow bool) error {
	if err := p.CheckRead(); err != nil {
		return err
	}
	if p.Trusted() {
		return nil
	}
	p.Normalise()
	return s.options.AdmitRead(ctx, p, follow)
}

// enqueueUpdate queues an update for the committer. It fails with CodeOverloaded if the queue
// is full, and with CodeClosed.
func (s *Store) enqueueUpdate(u *update) error {
	if e := s.refusedFor(); e != nil {
		return e
	}
	u.queuedAt = time.Now()
	s.door.RLock()
	defer s.door.RUnlock()
	if s.closed {
		return base.ErrClosed()
	}
	select {
	case s.queue <- u:
		return nil
	default:
		return errOverloaded()
	}
}

func errUpdateCancelled(ctx context.Context) *Error {
	return Errorf(CodeTimeout, "the update was cancelled: %w", ctx.Err())
}

func errOverloaded() *Error {
	e := Errorf(CodeOverloaded, "too many updates are waiting")
	e.RetryAfter = time.Second
	e.Hint = "retry later; several statements in one update cost little more than one"
	return e
}

// commitLoop is the only writer: it executes groups of updates, appends them to the log and
// makes them visible, in this order. If it pays (pacing), it executes the next group on top of
// one that is being appended.
func (s *Store) commitLoop(context.Context) error {
	idle := time.NewTimer(flushIdle)
	defer idle.Stop()
	for {
		select {
		case u := <-s.queue:
			if s.pacing.shouldGather(s.options.gatherFrom) {
				runtime.Gosched() // callers that were just answered can queue their next update into this group
			}
			s.commitUpdates(s.collectGroup(u))
			idle.Reset(flushIdle)
		case err := <-s.appended:
			s.finishAhead(err)
			idle.Reset(flushIdle)
		case fn := <-s.exclusive:
			s.awaitAppend()
			s.flushAll()
			fn()
			s.recentChanges.forgetUpTo(s.head.Load().revision)
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
			s.retryLoadIndex()
			if s.layers.stuck || s.unindexed.Load() != nil {
				idle.Reset(flushRetry)
			}
		case <-s.stop:
			s.awaitAppend()
			for len(s.queue) > 0 {
				u := <-s.queue
				u.err = base.ErrClosed()
				close(u.done)
			}
			s.flushAll()
			return nil
		}
	}
}

// collectGroup takes the queued updates, up to a full group.
func (s *Store) collectGroup(u *update) []*update {
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

// commitUpdates executes, appends and applies updates, in as many groups as they need, and
// answers them. The last group may stay ahead, still being appended.
func (s *Store) commitUpdates(updates []*update) {
	for len(updates) > 0 {
		if s.ahead != nil && s.ahead.system {
			s.awaitAppend() // the system graphs it changed apply to the next group
		}
		g := s.newGroup()
		if err := s.checkWritable(); err != nil {
			g.refusal = err
			g.freesOnly = s.mayUseReserve()
		}
		g.executeAll(updates)
		g.snapshot.Close()
		s.startAppend(g)
		updates = updates[len(g.updates):]
	}
}

// startAppend starts the append of an executed group. It does not wait for the log if there is
// enough to execute meanwhile. A group is answered after the group ahead, on top of which it
// was executed, even if it has no log entries.
func (s *Store) startAppend(g *group) {
	ahead, next := s.ahead, len(s.queue)
	if ahead != nil {
		next += len(ahead.updates) // their callers are about to be answered and may queue more
		if err := <-s.appended; err != nil {
			s.finishAhead(err)
			lost := s.notAppended(err)
			if lost == nil {
				lost = s.refused.Load()
			}
			s.discardGroup(g, lost, err) // it was executed on top of lost updates
			s.answerCallers(g)
			return
		}
		s.ahead = nil
	}
	if s.pacing.shouldOverlap(next, s.options.overlapFrom) {
		s.ahead = g
		go func() { s.appended <- g.appendToLog() }() // the committer receives the result before it ends
	}
	if ahead != nil {
		s.finishAppend(ahead, nil) // while the log works
	}
	if s.ahead == nil {
		s.finishAppend(g, g.appendToLog())
	}
}

// awaitAppend waits until no group is ahead.
func (s *Store) awaitAppend() {
	if s.ahead != nil {
		s.finishAhead(<-s.appended)
	}
}

func (s *Store) finishAhead(err error) {
	g := s.ahead
	s.ahead = nil
	s.finishAppend(g, err)
}

// finishAppend makes an appended group visible and answers its updates, or fails them with
// err.
func (s *Store) finishAppend(g *group, err error) {
	s.pacing.noteAppended(g.appendTime)
	switch {
	case err != nil:
		s.writeFailed(g, err)
	case len(g.commits) > 0:
		if s.options.beforeApply != nil {
			s.options.beforeApply(g.w.Overlay)
		}
		h := g.newHead()
		h.hash = g.hash
		s.apply(applied{head: h, commits: g.commits, system: g.system, overlay: g.w.Overlay})
		s.scratch.reclaimKeyList(g.w.Overlay)
		g.applied = time.Now()
	}
	s.answerCallers(g)
}

// answerCallers sends the results to the callers of a group.
func (s *Store) answerCallers(g *group) {
	s.recordStages(g)
	for _, u := range g.updates {
		close(u.done)
	}
	s.tailer.notify()
	s.flushIfFull()
}

// recordStages records the times of a group's stages for Stats and Governor.Stages.
func (s *Store) recordStages(g *group) {
	if len(g.commits) == 0 {
		return
	}
	s.measures.group.observeSize(len(g.commits))
	now := time.Now()
	for _, u := range g.updates {
		if u.err == nil && u.receipt.Committed && !u.receipt.Replayed {
			s.measures.commit.observeDuration(now.Sub(u.queuedAt))
		}
	}
}

// writeFailed answers a group that could not be appended. If nothing of it is in the log, it is
// discarded; otherwise the store becomes read-only and the callers get CodeOutcomeUnknown.
func (s *Store) writeFailed(g *group, err error) {
	if lost := s.notAppended(err); lost != nil {
		s.discardGroup(g, lost, err)
		return
	}
	s.setReadOnly(errReadOnly(writeFailure, err))
	for _, u := range g.updates {
		if u.err == nil {
			u.receipt = Receipt{}
			u.err = &Error{Code: CodeOutcomeUnknown, Message: "the store failed while it wrote: the update may or may not be there afterwards",
				Hint: "retry with the same idempotency key", Err: err}
		}
	}
}

const writeFailure = "the store failed while it wrote and takes no updates until it is reopened"

// errReadOnly keeps the cause, which names files, out of the message for the caller.
func errReadOnly(message string, cause error) *Error {
	return &Error{Code: CodeReadOnly, Message: message, Err: cause}
}

// defaultOverlapFrom is the number of waiting updates from which it pays to execute them
// during an append. Groups become smaller by it, and each costs a hand-over and an fsync.
const defaultOverlapFrom = 32

// defaultGatherFrom is the duration of an append from which the committer yields before it
// takes a group: with a slow fsync, the few updates that arrive meanwhile save more than the
// yield costs. With a fast one they save nothing.
const defaultGatherFrom = 100 * time.Microsecond

// pacing holds moving averages of the committer's recent work. It belongs to the committer.
type pacing struct {
	update time.Duration // execution of one update
	group  time.Duration // append of one group, with its fsync
}

// noteExecuted records the execution of a number of updates.
func (t *pacing) noteExecuted(updates int, took time.Duration) {
	updateAverage(&t.update, took/time.Duration(max(updates, 1)))
}

// noteAppended records an append; 0 for a group without log entries.
func (t *pacing) noteAppended(took time.Duration) {
	if took > 0 {
		updateAverage(&t.group, took)
	}
}

// updateAverage moves the average an eighth of the way to the new value.
func updateAverage(average *time.Duration, seen time.Duration) { *average += (seen - *average) / 8 }

// shouldOverlap reports whether the next updates should be executed during an append. It
// requires many of them, and an append that takes at most half as long as they do. During a
// longer append it is better to gather them into one group with one fsync, because callers
// that are answered late also ask late for more.
func (t *pacing) shouldOverlap(next, from int) bool {
	return next >= from && time.Duration(next)*t.update >= 2*t.group
}

// shouldGather reports whether the committer yields before it takes a group.
func (t *pacing) shouldGather(from time.Duration) bool { return t.group >= from }

// checkWritable returns the reason to refuse a group before it is executed, or nil.
func (s *Store) checkWritable() error { return s.writableWith(0) }

// writableWith is checkWritable for work that writes indexBytes to the index by itself.
func (s *Store) writableWith(indexBytes uint64) error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	if s.unindexed.Load() != nil {
		s.retryLoadIndex()
		return errUnindexed() // the group was executed before
	}
	if err := s.checkFreeSpace(indexBytes); err != nil {
		return err
	}
	if s.layers.stuck {
		s.flushIfAny() // there is space again
		return s.errDiskFull()
	}
	return nil
}

// freeingBytes is the part of the reserve that must be free for an update that frees space.
// Such an update writes far less.
const freeingBytes = 4 << 20

// mayUseReserve reports whether updates are refused only because of the reserve, and the
// reserve has space for an update that frees space.
func (s *Store) mayUseReserve() bool {
	free, err := s.options.FreeBytes(s.dir.Path)
	return err == nil && free >= freeingBytes && s.refused.Load() == nil && s.unindexed.Load() == nil && !s.layers.stuck
}

// checkFreeSpace returns CodeDiskFull unless bytes are free beyond the reserve.
func (s *Store) checkFreeSpace(bytes uint64) error {
	free, err := s.options.FreeBytes(s.dir.Path)
	if err != nil {
		return Errorf(CodeInternal, "free space: %w", err)
	}
	full := free < s.options.ReserveBytes
	if s.diskFull.Swap(full) != full {
		s.logFreeSpace(full, free)
	}
	if free < s.options.ReserveBytes+bytes {
		return s.errDiskFull()
	}
	return nil
}

func (s *Store) logFreeSpace(full bool, free uint64) {
	what := "the volume of the data directory has room again: updates are taken"
	if full {
		what = "the volume of the data directory is full: updates are refused, reads go on"
	}
	s.log.Warn(what, "free bytes", free, "reserve bytes", s.options.ReserveBytes)
}

// notAppended returns the error for the updates of a failed append of which nothing is in the
// log, nil for another failure.
func (s *Store) notAppended(err error) *Error {
	switch {
	case errors.Is(err, wal.ErrNoSpace):
		return s.errDiskFull()
	case errors.Is(err, errAppendLost):
		e := Errorf(CodeOverloaded, "the log did not take the update: nothing of it was written")
		e.RetryAfter, e.Hint = time.Second, "retry the update"
		return e
	}
	return nil
}

// discardGroup fails a group of which nothing is in the log. Its keys, terms and commits go with
// it; the committer's memory beyond the group is cleared.
func (s *Store) discardGroup(g *group, lost *Error, cause error) {
	s.met = index.RecentTerms{}
	s.recentChanges.forgetUpTo(s.head.Load().revision)
	s.log.Warn("updates failed: the log did not take them", "updates", len(g.updates), "error", cause)
	for _, u := range g.updates {
		u.receipt, u.err = Receipt{}, lost // its error too may follow from lost updates
	}
}

func (s *Store) errDiskFull() *Error {
	e := Errorf(CodeDiskFull, "the volume of the data directory has less than %d MiB free: updates are refused, reads go on", s.options.ReserveBytes>>20)
	e.RetryAfter = time.Minute
	return e
}
