package kg

import (
	"context"
	"slices"
)

// trial runs an update on its caller's goroutine against a snapshot and judges
// it there. The committer never judges: where the update comes to something else
// meanwhile, or a subject that it is about has changed, it is tried again here. For
// a dry run this is all.
func (s *Store) trial(u *update) (Receipt, *judged, error) {
	p, err := s.pin(u.ctx)
	if err != nil {
		return Receipt{}, nil, err
	}
	defer s.unpin(p)
	h := p.head
	g := s.newTrial(h, p.kv)
	if r, found, err := g.remembered(&u.meta); found || err != nil {
		return r, nil, err
	}
	if u.meta.HasExpected && u.meta.ExpectedRevision > g.revision {
		return Receipt{}, nil, Errorf(CodeInvalid, "revision %d is not there yet: the newest is %d", u.meta.ExpectedRevision, g.revision).At("expectedRevision")
	}
	tx, err := g.run(u)
	if err != nil {
		return Receipt{}, nil, err
	}
	j := &judged{revision: h.revision, rules: s.rulesVersion(), changes: tx.changes, time: tx.TimeTerm()}
	receipt := Receipt{
		Revision: h.revision, Position: g.position(),
		Affected: len(tx.changes), Subjects: subjects(tx.changes),
	}
	if entryAtMost(tx.changes) > MaxCommitBytes && len(appendEntry(nil, &Commit{Changes: tx.changes})) > MaxCommitBytes {
		return Receipt{}, nil, errCommitTooLarge()
	}
	if j.verdict, err = g.judge(u, tx); err != nil {
		return Receipt{}, nil, err
	}
	j.depends, j.own = numbers(j.verdict.Depends), j.verdict.Own
	j.verdict.Depends, j.verdict.Own = nil, nil
	if err := j.verdict.err(); err != nil {
		return Receipt{}, nil, err
	}
	j.held = heldUpdate(u, tx, j.verdict, j.rules)
	if j.verdict.Outcome != Accepted {
		receipt.Affected, receipt.Subjects = 0, nil
	}
	receipt.Verdict = j.verdict
	return receipt, j, nil
}

// rulesVersion is asked before anything is looked at that rules decide about.
func (s *Store) rulesVersion() uint64 {
	if s.options.RulesVersion == nil {
		return 0
	}
	return s.options.RulesVersion()
}

// newTrial is a group of one that is never appended. The numbers of its terms
// are of no account.
func (s *Store) newTrial(h *head, base kv) *group {
	const farAhead = 1 << 62 // of any number that the dictionary gives
	trial := *h
	trial.nextNumber = farAhead
	g := s.startGroup(&trial, base)
	g.trial = true
	g.w.dict.from = h.nextNumber
	return g
}

// judge asks the verifier, if there is one and the update has an effect.
func (g *group) judge(u *update, tx *Tx) (v Verdict, err error) {
	if tx.before == nil {
		return v, nil
	}
	changes := judgedChanges(tx.changes)
	if len(changes) == 0 {
		return v, nil
	}
	g.w.o.settle() // verifiers may read with several goroutines
	v, err = g.s.verify(u.ctx, func(ctx context.Context) Judgement {
		return Judgement{
			Meta: u.meta, Changes: changes,
			Before: g.snapshotOver(ctx, u, tx, tx.before, nil), After: g.snapshotOver(ctx, u, tx, g.w.o, tx.w.deltas),
		}
	})
	return v.forOwn(tx), err
}

// verify asks the verifier. It ends with ctx, and with the judgements of the store
// (EndJudging). A panic of the verifier is an error.
func (s *Store) verify(ctx context.Context, judgement func(ctx context.Context) Judgement) (v Verdict, err error) {
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.judging, func() { end(errJudgingEnded()) })()
	err = call(func(*Tx) (err error) {
		v, err = s.options.Verifier.Verify(inner, judgement(inner))
		return err
	}, nil)
	if err != nil && ctx.Err() == nil && s.judging.Err() != nil {
		err = errJudgingEnded()
	}
	return v, err
}

// EndJudging ends the judgements that are under way and those that begin later, and
// with them their updates, which get CodeClosed: a server that ends does not wait for
// them. Close does it too.
func (s *Store) EndJudging() { s.endJudging() }

func errJudgingEnded() *Error {
	return Errorf(CodeClosed, "the store is about to be closed: the update was not judged, and not made")
}

// judgedChanges are those that verifiers are asked about: what a proposal would
// add is judged when it is applied.
func judgedChanges(all []Change) []Change {
	pending := func(c Change) bool { return IsPendingGraph(c.Quad.Graph) }
	if !slices.ContainsFunc(all, pending) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), pending)
}

// snapshotOver is what the update's caller sees of a layer of the group.
func (g *group) snapshotOver(ctx context.Context, u *update, tx *Tx, layer kv, pending *deltas) *Snapshot {
	return &Snapshot{
		ctx: ctx, kv: layer, dict: g.w.dict, access: tx.access, hides: Hidden(tx.access, u.meta.Principal), catalogue: g.catalogue, pending: pending, generations: g.w.generations,
		view:     View{Principal: u.meta.Principal, AllGraphs: true, withoutPending: true, Now: tx.time, At: g.revision, doubts: tx.doubts},
		position: g.position(),
	}
}
