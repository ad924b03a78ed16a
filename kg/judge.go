package kg

import "slices"

// trial runs an update on its caller's goroutine against a snapshot and judges
// it there, so that the committer need not: it judges again only when the update
// comes to something else meanwhile, or a subject that it is about has changed.
// For a dry run this is all.
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
	j := &judged{revision: h.revision, rules: s.rulesVersion(), changes: tx.changes}
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
	if err := j.verdict.err(); err != nil {
		return Receipt{}, nil, err
	}
	j.held = heldUpdate(u, tx, j.verdict, j.rules)
	if j.verdict.Outcome != Accepted {
		receipt.Affected, receipt.Subjects = 0, nil
	}
	j.depends = numbers(j.verdict.Depends)
	j.verdict.Depends = nil
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
	err = call(func(*Tx) (err error) {
		v, err = g.s.options.Verifier.Verify(u.ctx, Judgement{
			Meta: u.meta, Changes: changes,
			Before: g.snapshotOver(u, tx, tx.before, nil), After: g.snapshotOver(u, tx, g.w.o, tx.w.deltas),
		})
		return err
	}, nil)
	return v.forOwn(tx), err
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
func (g *group) snapshotOver(u *update, tx *Tx, layer kv, pending *deltas) *Snapshot {
	return &Snapshot{
		ctx: u.ctx, kv: layer, dict: g.w.dict, access: tx.access, hides: Hidden(tx.access, u.meta.Principal), catalogue: g.catalogue, pending: pending,
		view:     View{Principal: u.meta.Principal, AllGraphs: true, withoutPending: true, Now: tx.time, At: g.revision, doubts: tx.doubts},
		position: g.position(),
	}
}

// changedSince tells whether one of the subjects that the update is about has
// changed after the revision.
func (tx *Tx) changedSince(r Revision) bool {
	for _, last := range tx.touched {
		if last > r {
			return true
		}
	}
	return false
}
