package kg

import (
	"context"
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
	// frees is set for an update that lets disk space be freed: it may use the reserve.
	frees bool

	// judged is the caller's own judgement, nil without a verifier.
	judged *judged
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

// judged is a verdict and what it holds for.
type judged struct {
	verdict  Verdict
	revision Revision
	rules    uint64 // Options.RulesVersion
	changes  []Change
	time     Term        // of the trial
	held     *HeldUpdate // what is kept of the update, where it is to be held
	depends  []uint64    // what the verdict was made from beyond the changes' subjects; sorted where a graph is replaced
	own      []Term      // Verdict.Own
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
	again := s.rejudge()
	defer again.end()
	for {
		u := &update{ctx: ctx, meta: m, fn: fn, done: make(chan struct{})}
		receipt, err := s.attempt(u)
		if err != errOvertaken {
			return receipt, err
		}
		if err := again.next(ctx, u.overtakenBy); err != nil {
			return Receipt{}, err
		}
	}
}

// attempt has an update judged where that is needed, and commits it, or gives
// errOvertaken where it has to be judged anew.
func (s *Store) attempt(u *update) (Receipt, error) {
	if u.meta.DryRun || s.judges() {
		receipt, j, err := s.trial(u)
		switch {
		case err == nil && !u.meta.DryRun && !receipt.Replayed && s.keeps(u, j.verdict):
			u.hold(s.options.Holder, j.held)
		case err != nil || u.meta.DryRun || receipt.Replayed || j.verdict.Outcome != Accepted:
			receipt.DryRun = u.meta.DryRun
			return receipt, err
		default:
			u.judged = j
		}
	}
	return s.submit(u)
}

// submit hands an update to the committer and waits for its outcome.
func (s *Store) submit(u *update) (Receipt, error) {
	ctx := u.ctx
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
	p.normalise()
	return s.options.AdmitRead(ctx, p, follow)
}

// enqueue hands an update to the committer, or says why not.
func (s *Store) enqueue(u *update) error {
	if e := s.refusedFor(); e != nil {
		return e
	}
	u.since = time.Now()
	s.door.RLock()
	defer s.door.RUnlock()
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
