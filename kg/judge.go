package kg

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"koine/kg/base"
	"koine/kg/internal/index"
	"koine/kg/internal/logentry"
)

// judgeUpdate runs an update on its caller's goroutine against a snapshot and judges it there.
// The committer never judges: if the update then comes to other changes, or one of its
// subjects has changed, it is judged here again. A dry run ends here.
func (s *Store) judgeUpdate(u *update) (Receipt, *judgedUpdate, error) {
	p, err := s.pin(u.ctx)
	if err != nil {
		return Receipt{}, nil, err
	}
	defer s.unpin(p)
	h := p.head
	g := s.newTrial(h, p.kv)
	if r, found, err := g.firstReceipt(&u.meta); found || err != nil {
		return r, nil, err
	}
	if u.meta.HasExpected && u.meta.ExpectedRevision > g.revision {
		return Receipt{}, nil, Errorf(CodeInvalid, "revision %d does not exist yet: the newest is %d", u.meta.ExpectedRevision, g.revision).At("expectedRevision")
	}
	tx, err := g.runUpdate(u)
	if err != nil {
		return Receipt{}, nil, err
	}
	j := &judgedUpdate{revision: h.revision, rulesVersion: s.options.RulesVersion(), changes: tx.changes, time: tx.TimeTerm()}
	receipt := Receipt{
		Revision: h.revision, Position: g.endPosition(),
		Affected: len(tx.changes), Subjects: changedSubjects(tx.changes),
	}
	if logentry.ChangesSizeBound(tx.changes) > MaxCommitBytes && len(logentry.AppendEntry(nil, &Commit{Changes: tx.changes})) > MaxCommitBytes {
		return Receipt{}, nil, errCommitTooLarge()
	}
	if j.verdict, err = g.runVerifier(u, tx); err != nil {
		return Receipt{}, nil, err
	}
	j.depends, j.own = dependencyHashes(j.verdict.Depends), j.verdict.Own
	j.verdict.Depends, j.verdict.Own = nil, nil
	if err := j.verdict.rejection(); err != nil {
		return Receipt{}, nil, err
	}
	j.held = heldUpdate(u, tx, j.verdict, j.rulesVersion)
	if j.verdict.Outcome != Accepted {
		receipt.Affected, receipt.Subjects = 0, nil
	}
	receipt.Verdict = j.verdict
	return receipt, j, nil
}

// newTrial returns a group of one update that is never appended. Its term numbers are
// arbitrary.
func (s *Store) newTrial(h *head, base index.KV) *group {
	const farAhead = 1 << 62 // greater than all numbers in the dictionary
	trial := *h
	trial.nextNumber = farAhead
	g := s.startGroup(&trial, base)
	g.trial = true
	g.w.Dictionary.FirstUnseen = h.nextNumber
	return g
}

// runVerifier calls the verifier if the update has an effect.
func (g *group) runVerifier(u *update, tx *Tx) (v Verdict, err error) {
	if tx.before == nil {
		return v, nil
	}
	changes := judgedChanges(tx.changes)
	if len(changes) == 0 {
		return v, nil
	}
	g.w.Overlay.FlushPending() // verifiers may read with several goroutines
	v, err = g.s.callVerifier(u.ctx, func(ctx context.Context) Judgement {
		return Judgement{
			Meta: u.meta, Changes: changes,
			Before: g.snapshotOver(ctx, u, tx, tx.before, nil), After: g.snapshotOver(ctx, u, tx, g.w.Overlay, tx.w.Deltas),
		}
	})
	return v.withOwnChanges(tx), err
}

// callVerifier calls the verifier. The call ends with ctx and with EndJudging. A panic of the
// verifier becomes an error.
func (s *Store) callVerifier(ctx context.Context, judgement func(ctx context.Context) Judgement) (v Verdict, err error) {
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.judging, func() { end(errJudgingEnded()) })()
	err = callUpdate(func(*Tx) (err error) {
		v, err = s.options.Verifier.Verify(inner, judgement(inner))
		return err
	}, nil)
	if err != nil && ctx.Err() == nil && s.judging.Err() != nil {
		err = errJudgingEnded()
	}
	return v, err
}

// EndJudging ends all judgements, running and future, and their updates with CodeClosed, so
// that a server can shut down without waiting for them. Close calls it.
func (s *Store) EndJudging() { s.endJudging() }

func errJudgingEnded() *Error {
	return Errorf(CodeClosed, "the store is closing: the update was not committed")
}

// judgedChanges returns the changes for the verifier. It leaves out the content of proposals,
// which is judged when a proposal is applied.
func judgedChanges(all []Change) []Change {
	pending := func(c Change) bool { return IsPendingGraph(c.Quad.Graph) }
	if !slices.ContainsFunc(all, pending) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), pending)
}

// snapshotOver returns a snapshot of a layer of the group under the caller's view.
func (g *group) snapshotOver(ctx context.Context, u *update, tx *Tx, layer index.KV, pending *index.Deltas) *Snapshot {
	return &Snapshot{
		ctx: ctx, kv: layer, dict: g.w.Dictionary, access: tx.access, hides: Hidden(tx.access, u.meta.Principal), catalogue: g.catalogue, pending: pending, generations: g.w.Generations,
		view:     View{Principal: u.meta.Principal, AllGraphs: true, WithoutPending: true, Now: tx.time, At: g.revision, Doubts: tx.doubts},
		position: g.endPosition(),
	}
}

// MaxJudgements bounds how often an update is judged: the first time, and again whenever an
// input of the verdict changed before the commit.
const MaxJudgements = 32

// turnTime bounds how long an overtaken update waits for those before it that were overtaken
// by the same change. A judgement that takes longer does not hold the others up: they compete
// with it.
const turnTime = 250 * time.Millisecond

// errOvertaken sends an update back to its caller's goroutine for another judgement. It never
// leaves the store.
var errOvertaken = errors.New("the verdict was overtaken")

// isOvertaken reports whether the update has no valid verdict: its changes, its subjects, a
// dependency or the rules differ from those judged. by is the hash of the input that changed,
// 0 if unknown.
func (g *group) isOvertaken(u *update, tx *Tx) (by uint64, overtaken bool) {
	s := g.s
	if u.held != nil || !tx.judged || len(judgedChanges(tx.changes)) == 0 && (tx.replaced == nil || tx.replaced.Deleted) {
		return 0, false
	}
	j := u.judged
	if j == nil || j.rulesVersion != s.options.RulesVersion() {
		return 0, true
	}
	for subject, t := range tx.touched {
		if !t.own && t.last > j.revision {
			return maphash.Comparable(base.DependencySeed, subject), true
		}
	}
	by, changed := s.recentChanges.changedAfter(j.depends, j.revision)
	if tx.replaced != nil {
		// A large judgement is not repeated only because many commits came since: the log
		// tells whether they changed one of its dependencies.
		if changed && by == 0 {
			var err error
			by, changed, err = changedIn(u.ctx, j.depends, j.revision, g.revision, g.commitAt)
			changed = changed || err != nil
		}
		return by, changed
	}
	if changed {
		return by, true
	}
	return 0, !j.sameChanges(tx)
}

// sameChanges reports whether the verdict is about the update's present changes.
func (j *judgedUpdate) sameChanges(tx *Tx) bool {
	was, is := j.changes, tx.changes
	now := tx.TimeTerm()
	for {
		was, is = j.skipUnjudged(was), j.skipUnjudged(is)
		if len(was) == 0 || len(is) == 0 {
			return len(was) == len(is)
		}
		a, b := &was[0], &is[0]
		was, is = was[1:], is[1:]
		p, q := a.Quad, b.Quad
		if Reserved(p) && p.Object == j.time && q.Object == now {
			p.Object = q.Object
		}
		if a.Op != b.Op || p != q || a.Assertion.Source != b.Assertion.Source || !a.Assertion.SameContent(b.Assertion) {
			return false
		}
	}
}

// skipUnjudged drops leading changes that the verdict is not about.
func (j *judgedUpdate) skipUnjudged(changes []Change) []Change {
	for i := range changes {
		q := &changes[i].Quad
		if !IsOwnGraph(q.Graph) || q.Predicate != Sequence && slices.Contains(j.own, q.Subject) {
			return changes[i:]
		}
	}
	return nil
}

// rejudging is the state of an update between its judgements.
type rejudging struct {
	store      *Store
	turn       *queuedUpdate // nil before it is overtaken
	judgements int           // judgements so far
}

func (s *Store) newRejudging() rejudging { return rejudging{store: s} }

// waitTurn waits until an overtaken update should be judged again. by is the hash of the
// change that overtook it, 0 if unknown. Updates overtaken by the same change, such as writes
// to a hot subject, take turns instead of overtaking each other again.
func (r *rejudging) waitTurn(ctx context.Context, by uint64) error {
	if r.judgements++; r.judgements >= MaxJudgements {
		return errTooManyJudgements()
	}
	keys := []uint64{}
	if r.turn != nil {
		keys = r.turn.keys
	}
	if by != 0 && !slices.Contains(keys, by) {
		keys = append(slices.Clip(keys), by)
	}
	r.endTurn()
	r.turn = r.store.updateQueues.join(keys)
	timeout := time.NewTimer(turnTime)
	defer timeout.Stop()
	select {
	case <-r.turn.ready:
	case <-timeout.C:
	case <-r.store.stop:
		return base.ErrClosed()
	case <-ctx.Done():
		return errUpdateCancelled(ctx)
	}
	return nil
}

// endTurn gives the turn to the next update.
func (r *rejudging) endTurn() {
	if r.turn != nil {
		r.store.updateQueues.leave(r.turn)
		r.turn = nil
	}
}

func errTooManyJudgements() *Error {
	e := Errorf(CodeOverloaded, "the update was judged %d times, and each time another commit changed an input of the verdict", MaxJudgements)
	e.RetryAfter = time.Second
	e.Hint = "retry later, or change fewer subjects at a time"
	return e
}

// updateQueues are queues of overtaken updates by key. The zero value is empty.
type updateQueues struct {
	mu     sync.Mutex // guards the queues and queuedUpdate.before
	queues map[uint64][]*queuedUpdate
}

// queuedUpdate is an update in the queues of its keys.
type queuedUpdate struct {
	keys   []uint64
	before int           // number of queues in which it is not the first
	ready  chan struct{} // closed when before is 0
}

// join appends an update to the queues of all its keys at once, so that no two updates wait
// for each other.
func (t *updateQueues) join(keys []uint64) *queuedUpdate {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &queuedUpdate{keys: keys, ready: make(chan struct{})}
	if t.queues == nil {
		t.queues = make(map[uint64][]*queuedUpdate)
	}
	for _, k := range keys {
		if len(t.queues[k]) > 0 {
			one.before++
		}
		t.queues[k] = append(t.queues[k], one)
	}
	if one.before == 0 {
		close(one.ready)
	}
	return one
}

// leave removes an update from its queues.
func (t *updateQueues) leave(one *queuedUpdate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range one.keys {
		queue := t.queues[k]
		first := queue[0] == one
		queue = slices.DeleteFunc(queue, func(o *queuedUpdate) bool { return o == one })
		if len(queue) == 0 {
			delete(t.queues, k)
			continue
		}
		t.queues[k] = queue
		if first {
			if queue[0].before--; queue[0].before == 0 {
				close(queue[0].ready)
			}
		}
	}
}

// dependencyHashes returns the hashes of dependencies, kept while an update waits.
func dependencyHashes(list []Dependency) []uint64 {
	out := make([]uint64, len(list))
	for i, d := range list {
		out[i] = d.Number()
	}
	return out
}

// recentChanges holds, for the newest revisions, the revision in which each possible
// dependency last changed. It belongs to the committer.
type recentChanges struct {
	last map[uint64]Revision
	// since is the revision up to which changes are unknown.
	since Revision
	most  int // replaces maxRecent, for tests
}

// maxRecent bounds the entries of recentChanges: three or four for each change.
const maxRecent = 1 << 17

// addCommit records the changes of a commit.
func (r *recentChanges) addCommit(c *Commit) {
	most := r.most
	if most == 0 {
		most = maxRecent
	}
	if len(c.Changes) > most/4 || c.Replaced != nil {
		r.forgetUpTo(c.Revision)
		return
	}
	if len(r.last) > most {
		r.forgetUpTo(c.Revision - 1)
	}
	if r.last == nil {
		r.last = make(map[uint64]Revision)
	}
	for n := range c.ChangedNumbers() {
		r.last[n] = c.Revision
	}
}

// changedIn reports whether a commit after a revision, up to newest, changed one of the sorted
// dependencies, and which one; 0 if unknown because a commit replaced a whole graph or is no
// longer in the log.
func changedIn(ctx context.Context, depends []uint64, after, newest Revision, commit func(Revision) (*Commit, error)) (which uint64, changed bool, err error) {
	for r := after + 1; r <= newest && len(depends) > 0; r++ {
		if ctx.Err() != nil {
			return 0, false, errUpdateCancelled(ctx)
		}
		c, err := commit(r)
		if CodeOf(err) == CodeRevisionGone || err == nil && c.Replaced != nil {
			return 0, true, nil
		}
		if err != nil {
			return 0, false, err
		}
		for n := range c.ChangedNumbers() {
			if _, found := slices.BinarySearch(depends, n); found {
				return n, true, nil
			}
		}
	}
	return 0, false, nil
}

// forgetUpTo makes the changes up to the revision unknown.
func (r *recentChanges) forgetUpTo(up Revision) {
	clear(r.last)
	r.since = up
}

// changedAfter reports whether one of the dependencies may have changed after the revision,
// and which one; 0 if unknown.
func (r *recentChanges) changedAfter(depends []uint64, after Revision) (which uint64, changed bool) {
	if len(depends) == 0 {
		return 0, false
	}
	if after < r.since {
		return 0, true
	}
	for _, n := range depends {
		if r.last[n] > after {
			return n, true
		}
	}
	return 0, false
}
