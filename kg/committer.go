package kg

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// update is one caller's update on its way through the committer.
type update struct {
	ctx   context.Context
	meta  Meta
	fn    func(*Tx) error
	since time.Time // when it was queued
	taken atomic.Bool
	// patient is one that waits for its turn as long as its context lets it: one
	// of a load, which has no more than two waiting.
	patient bool

	// judged is the caller's own judgement, nil without a verifier.
	judged *judged
	// held is what fn keeps, nil for an update that is made; unhold makes it again
	// what it was before.
	held   *HeldUpdate
	unhold func()

	receipt Receipt
	err     error
	group   *group // that it was part of, once it is taken
	done    chan struct{}
}

// judged is a verdict and what it holds for.
type judged struct {
	verdict  Verdict
	revision Revision
	rules    uint64 // Options.RulesVersion
	changes  []Change
	held     *HeldUpdate // what is kept of the update, where it is to be held
	depends  []uint64    // what the verdict was made from beyond the changes' subjects
}

// holds tells whether the verdict is on what the update comes to now: by the same
// rules, the same changes, of subjects that have not changed since, and nothing
// else changed that it was made from.
func (j *judged) holds(tx *Tx, s *Store) bool {
	r := &s.recently
	return j.rules == s.rulesVersion() && !tx.changedSince(j.revision) && !r.changed(j.depends, j.revision) && slices.EqualFunc(j.changes, tx.changes, func(a, b Change) bool {
		return a.Op == b.Op && a.Quad == b.Quad && a.Assertion.Source == b.Assertion.Source && a.Assertion.same(b.Assertion)
	})
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
	return s.update(ctx, m, fn)
}

func (s *Store) update(ctx context.Context, m Meta, fn func(*Tx) error) (Receipt, error) {
	if err := m.normalise(); err != nil {
		return Receipt{}, err
	}
	if ctx.Err() != nil {
		return Receipt{}, errGivenUp(ctx)
	}
	if err := s.admit(ctx, m); err != nil {
		return Receipt{}, err
	}
	u := &update{ctx: ctx, meta: m, fn: fn, done: make(chan struct{})}
	if m.DryRun || s.judges() {
		receipt, j, err := s.trial(u)
		switch {
		case err == nil && !m.DryRun && !receipt.Replayed && s.keeps(u, j.verdict):
			u.hold(s.options.Holder, j.held)
		case err != nil || m.DryRun || receipt.Replayed || j.verdict.Outcome != Accepted:
			receipt.DryRun = m.DryRun
			return receipt, err
		default:
			u.judged = j
		}
	}
	if err := s.enqueue(u); err != nil {
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
		s.options.Stages(ctx, u.group.stages(u.since))
	}
	return u.receipt, u.err
}

// admit asks whether the update may be made now.
func (s *Store) admit(ctx context.Context, m Meta) error {
	if s.options.Admit == nil {
		return nil
	}
	return s.options.Admit(ctx, m)
}

// admitRead asks whether the principal may begin to read, or to follow what
// changes.
func (s *Store) admitRead(ctx context.Context, p Principal, follow bool) error {
	if s.options.AdmitRead == nil || p.trusted() {
		return nil
	}
	p.normalise()
	return s.options.AdmitRead(ctx, p, follow)
}

// enqueue hands an update to the committer, or says why not.
func (s *Store) enqueue(u *update) error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	u.since = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock() // so that nothing is queued behind Close's last look
	if s.closed {
		return errClosed()
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
// shows them to readers, one at a time.
func (s *Store) commitLoop() {
	defer s.stopped.Done()
	idle := time.NewTimer(flushIdle)
	defer idle.Stop()
	for {
		select {
		case u := <-s.queue:
			s.commit(s.collect(u))
			idle.Reset(flushIdle)
		case fn := <-s.exclusive:
			s.settle()
			fn()
			s.recently.forget(s.head.Load().revision)
		case fn := <-s.between:
			fn()
			idle.Reset(flushIdle)
		case err := <-s.flushed:
			s.endFlush(err)
			idle.Reset(flushIdle)
		case <-idle.C:
			s.flushIfAny()
		case <-s.stop:
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
// they need, and answers them.
func (s *Store) commit(updates []*update) {
	for len(updates) > 0 {
		updates = updates[s.commitGroup(updates):]
	}
}

// commitGroup makes one group of the first updates and says how many it took.
func (s *Store) commitGroup(updates []*update) int {
	g := s.newGroup()
	if err := s.writable(); err != nil {
		g.updates = updates
		failAll(updates, err)
	} else {
		s.make(g, updates)
	}
	g.snapshot.close()
	s.measure(g)
	for _, u := range g.updates {
		close(u.done)
	}
	s.tailer.tell()
	s.flushIfFull()
	return len(g.updates)
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

// make executes updates until the group is full, appends what they come to, and
// applies it.
func (s *Store) make(g *group, updates []*update) {
	for i, u := range updates {
		if g.bytes >= maxGroupBytes || g.system {
			break
		}
		g.updates = updates[:i+1]
		u.group = g
		switch {
		case !u.taken.CompareAndSwap(false, true): // given up by its caller
		case u.ctx.Err() != nil:
			u.err = errGivenUp(u.ctx)
		case !u.patient && time.Since(u.since) > s.options.QueueTime:
			u.err = errOverloaded()
		default:
			if u.held != nil && u.held.rules != s.rulesVersion() {
				u.unhold() // by other rules it may be made, or refused
			}
			u.receipt, u.err = g.execute(u)
		}
	}
	if len(g.commits) == 0 {
		return
	}
	first := g.commits[0].Revision
	g.executed = time.Now()
	err := s.wal.AppendPrepared(uint64(first), g.frames)
	g.appended = time.Now()
	s.measures.append.took(g.appended.Sub(g.executed))
	if err == nil {
		g.hash = s.wal.LastHash()
	}
	if err == nil && s.options.afterAppend != nil {
		err = s.options.afterAppend()
	}
	if err != nil {
		s.writeFailed(g, err)
		return
	}
	s.apply(g)
	g.applied = time.Now()
}

// writeFailed makes the store read-only and leaves the callers of the group in
// no doubt that there is doubt.
func (s *Store) writeFailed(g *group, err error) {
	s.refuse(Errorf(CodeReadOnly, "the store failed while it wrote and takes no updates until it is reopened: %w", err))
	for _, u := range g.updates {
		if u.err == nil {
			u.receipt = Receipt{}
			u.err = &Error{Code: CodeOutcomeUnknown, Message: "the store failed while it wrote: the update may or may not be there afterwards",
				Hint: "ask again with the same idempotency key", Err: err}
		}
	}
}

func failAll(updates []*update, err error) {
	for _, u := range updates {
		u.err = err
	}
}

// writable refuses a group before anything is done for it.
func (s *Store) writable() error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	free, err := s.options.FreeBytes(s.dir.path)
	if err != nil {
		return Errorf(CodeInternal, "free space: %w", err)
	}
	full := free < s.options.ReserveBytes
	if s.diskFull.Swap(full) != full {
		s.log.Warn("free space of the data directory", "refusing updates", full, "free bytes", free, "reserve bytes", s.options.ReserveBytes)
	}
	if full {
		return s.errDiskFull()
	}
	return nil
}

func (s *Store) errDiskFull() *Error {
	e := Errorf(CodeDiskFull, "the volume of the data directory has less than %d MiB free: no updates are taken, reads go on", s.options.ReserveBytes>>20)
	e.RetryAfter = time.Minute
	return e
}
