package kg

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"koine/kg/internal/base"
	"koine/kg/internal/index"
	"koine/kg/internal/wal"
)

// update is one caller's update on its way through the committer.
type update struct {
	ctx      context.Context
	meta     Meta
	fn       func(*Tx) error
	queuedAt time.Time // when it was queued
	taken    atomic.Bool
	// patient is one that waits for its turn as long as its context lets it: one
	// of a load, which has no more than two waiting.
	patient bool
	// freesSpace is set for an update that lets disk space be freed: it may use the reserve.
	freesSpace bool

	// judged is the caller's own judgement, nil without a verifier.
	judged *judgedUpdate
	// held is what fn keeps, nil for an update that is made.
	held *HeldUpdate
	// overtakenBy is the key of what changed under the verdict, where err is
	// errOvertaken; 0 where that is not one thing.
	overtakenBy uint64

	receipt Receipt
	err     error
	group   *group // that it was part of, once it is taken
	done    chan struct{}
}

// judgedUpdate is a verdict and what it holds for.
type judgedUpdate struct {
	verdict      Verdict
	revision     Revision
	rulesVersion uint64 // Options.RulesVersion
	changes      []Change
	time         Term        // of the trial
	held         *HeldUpdate // what is kept of the update, where it is to be held
	depends      []uint64    // what the verdict was made from beyond the changes' subjects; sorted where a graph is replaced
	own          []Term      // Verdict.Own
}

// Update runs fn and commits what it applied: all of it or, when fn fails or
// the update is refused, nothing. It returns when the commit is durable and
// readers see it. Errors of fn come back as they are.
//
// CodeOutcomeUnknown means that the store failed while it wrote: the commit may
// or may not be there when the store is opened again. Ask again with the same
// idempotency key.
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
		return Receipt{}, errGivenUp(ctx)
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

// tryUpdate has an update judged where that is needed, and commits it, or gives
// errOvertaken where it has to be judged anew.
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

// submitUpdate hands an update to the committer and waits for its outcome.
func (s *Store) submitUpdate(u *update) (Receipt, error) {
	ctx := u.ctx
	if err := s.enqueueUpdate(u); err != nil {
		return Receipt{}, err
	}
	select {
	case <-u.done:
	case <-ctx.Done():
		if u.taken.CompareAndSwap(false, true) {
			return Receipt{}, errGivenUp(ctx)
		}
		<-u.done // under way: its outcome is known soon
	}
	if s.options.Stages != nil && u.receipt.Committed && !u.receipt.Replayed {
		s.options.Stages(ctx, u.group.stagesFrom(u.queuedAt))
	}
	return u.receipt, u.err
}

// checkAdmission asks whether the update may be made now.
func (s *Store) checkAdmission(ctx context.Context, m Meta) error {
	if err := m.Principal.CheckWrite(); err != nil {
		return err
	}
	if s.options.Admit == nil {
		return nil
	}
	return s.options.Admit(ctx, m)
}

// admitRead asks whether the principal may begin to read, or to follow what
// changes.
func (s *Store) admitRead(ctx context.Context, p Principal, follow bool) error {
	if err := p.CheckRead(); err != nil {
		return err
	}
	if s.options.AdmitRead == nil || p.Trusted() {
		return nil
	}
	p.Normalise()
	return s.options.AdmitRead(ctx, p, follow)
}

// enqueueUpdate hands an update to the committer, or says why not.
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

func errGivenUp(ctx context.Context) *Error {
	return Errorf(CodeTimeout, "the update was given up before it was made: %w", ctx.Err())
}

func errOverloaded() *Error {
	e := Errorf(CodeOverloaded, "too many updates are waiting")
	e.RetryAfter = time.Second
	e.Hint = "try again later; several statements in one update cost little more than one"
	return e
}

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
			if s.tempo.shouldGather(s.options.gatherFrom) {
				runtime.Gosched() // who was answered just now asks again, in this group
			}
			s.commitUpdates(s.collectGroup(u))
			idle.Reset(flushIdle)
		case err := <-s.appended:
			s.landAhead(err)
			idle.Reset(flushIdle)
		case fn := <-s.exclusive:
			s.awaitAppend()
			s.flushAll()
			fn()
			s.recently.forgetUpTo(s.head.Load().revision)
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
				u.err = base.ErrClosed()
				close(u.done)
			}
			s.flushAll()
			return
		}
	}
}

// collectGroup takes what is queued as one group.
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

// commitUpdates takes updates through execute, append and apply, in as many groups as
// they need, and answers them, but perhaps for the last group: that one is ahead.
func (s *Store) commitUpdates(updates []*update) {
	for len(updates) > 0 {
		if s.ahead != nil && s.ahead.system {
			s.awaitAppend() // what it says holds for the next group
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

// startAppend hands an executed group to the log, and does not wait for it where there is
// enough to execute meanwhile. A group is answered after the one ahead of it, on top
// of which it was executed, even if it has nothing for the log.
func (s *Store) startAppend(g *group) {
	ahead, next := s.ahead, len(s.queue)
	if ahead != nil {
		next += len(ahead.updates) // whose callers are about to be answered, and ask for more
		if err := <-s.appended; err != nil {
			s.landAhead(err)
			failAll(g.updates, s.refusalError()) // nothing was written of it
			s.answerCallers(g)
			return
		}
		s.ahead = nil
	}
	if s.tempo.shouldOverlap(next, s.options.overlapFrom) {
		s.ahead = g
		go func() { s.appended <- g.appendToLog() }() // the committer waits for it before it ends
	}
	if ahead != nil {
		s.finishAppend(ahead, nil) // while the log is at work
	}
	if s.ahead == nil {
		s.finishAppend(g, g.appendToLog())
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
	s.finishAppend(g, err)
}

// finishAppend shows a group to readers whose append has ended, and answers it.
func (s *Store) finishAppend(g *group, err error) {
	s.tempo.noteAppended(g.took)
	switch {
	case err != nil:
		s.writeFailed(g, err)
	case len(g.commits) > 0:
		s.applyGroup(g)
		g.applied = time.Now()
	}
	s.answerCallers(g)
}

// answerCallers tells the callers of a group how their updates ended.
func (s *Store) answerCallers(g *group) {
	s.recordStages(g)
	for _, u := range g.updates {
		close(u.done)
	}
	s.tailer.notify()
	s.flushIfFull()
}

// recordStages takes note of what a group is answered with.
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

// writeFailed makes the store read-only and leaves the callers of the group in
// no doubt that there is doubt.
func (s *Store) writeFailed(g *group, err error) {
	if errors.Is(err, wal.ErrNoSpace) {
		s.noRoom(g, err)
		return
	}
	s.setReadOnly(errReadOnly(writeFailure, err))
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

// defaultOverlapFrom is from how many waiting updates on it pays to execute them
// while the log is at work: the groups become smaller, and each costs a hand-over
// and a sync of its own.
const defaultOverlapFrom = 32

// defaultGatherFrom is from how long an append takes on that the committer lets others
// run before it takes a group: with a sync that long, the few updates that come
// meanwhile save more than they cost. With a quick one they save nothing.
const defaultGatherFrom = 100 * time.Microsecond

// pacing is how long the committer's work took lately. It belongs to the committer.
type pacing struct {
	update time.Duration // to execute one update
	group  time.Duration // to append one group, with its sync
}

// noteExecuted takes note of updates that were executed.
func (t *pacing) noteExecuted(updates int, took time.Duration) {
	updateAverage(&t.update, took/time.Duration(max(updates, 1)))
}

// noteAppended takes note of a group that the log has; 0 of one that had nothing for it.
func (t *pacing) noteAppended(took time.Duration) {
	if took > 0 {
		updateAverage(&t.group, took)
	}
}

// updateAverage moves an average an eighth of the way to what was seen last.
func updateAverage(average *time.Duration, seen time.Duration) { *average += (seen - *average) / 8 }

// shouldOverlap tells whether so many updates as come next are executed while the log takes
// a group. They are where there are many, and the log takes half as long or less:
// where it takes longer, what it leaves time for is better in one group with one sync,
// since who is answered late asks late for more.
func (t *pacing) shouldOverlap(next, from int) bool {
	return next >= from && time.Duration(next)*t.update >= 2*t.group
}

// shouldGather tells whether others are let run before a group is taken.
func (t *pacing) shouldGather(from time.Duration) bool { return t.group >= from }

// checkWritable refuses a group before anything is done for it.
func (s *Store) checkWritable() error { return s.writableWith(0) }

// writableWith is writable for something that takes so much of the index by itself.
func (s *Store) writableWith(indexBytes uint64) error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	if s.unindexed.Load() != nil {
		s.indexLoad()
		return errUnindexed() // the group was made before
	}
	if err := s.hasRoom(indexBytes); err != nil {
		return err
	}
	if s.layers.stuck {
		s.flushIfAny() // there is room again
		return s.errDiskFull()
	}
	return nil
}

// freeingBytes is how much of the reserve has to be left for an update that frees space. It
// is far more than such an update writes.
const freeingBytes = 4 << 20

// mayUseReserve reports whether only the reserve of free space keeps updates from being
// made, and has room for one that frees space.
func (s *Store) mayUseReserve() bool {
	free, err := s.options.FreeBytes(s.dir.Path)
	return err == nil && free >= freeingBytes && s.refused.Load() == nil && s.unindexed.Load() == nil && !s.layers.stuck
}

// hasRoom is CodeDiskFull unless there are so many bytes beside the reserve.
func (s *Store) hasRoom(bytes uint64) error {
	free, err := s.options.FreeBytes(s.dir.Path)
	if err != nil {
		return Errorf(CodeInternal, "free space: %w", err)
	}
	full := free < s.options.ReserveBytes
	if s.diskFull.Swap(full) != full {
		s.sayRoom(full, free)
	}
	if free < s.options.ReserveBytes+bytes {
		return s.errDiskFull()
	}
	return nil
}

func (s *Store) sayRoom(full bool, free uint64) {
	what := "the volume of the data directory has room again: updates are taken"
	if full {
		what = "the volume of the data directory is full: updates are refused, reads go on"
	}
	s.log.Warn(what, "free bytes", free, "reserve bytes", s.options.ReserveBytes)
}

// noRoom refuses a group for which the log had no room. Nothing of it was written, and
// what was noted of it while it was executed is forgotten.
func (s *Store) noRoom(g *group, err error) {
	s.met = index.MetTerms{}
	s.recently.forgetUpTo(s.head.Load().revision)
	s.log.Warn("updates are refused: the log has no room for them", "updates", len(g.updates), "error", err)
	for _, u := range g.updates {
		if u.err == nil {
			u.receipt, u.err = Receipt{}, s.errDiskFull()
		}
	}
}

// refusalError is why updates cannot be made after a group has failed.
func (s *Store) refusalError() error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	return s.errDiskFull()
}

func (s *Store) errDiskFull() *Error {
	e := Errorf(CodeDiskFull, "the volume of the data directory has less than %d MiB free: no updates are taken, reads go on", s.options.ReserveBytes>>20)
	e.RetryAfter = time.Minute
	return e
}
