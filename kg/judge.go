package kg

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"koine/kg/internal/base"
	"koine/kg/internal/index"
	"koine/kg/internal/logentry"
)

// judgeUpdate runs an update on its caller's goroutine against a snapshot and judges
// it there. The committer never judges: where the update comes to something else
// meanwhile, or a subject that it is about has changed, it is tried again here. For
// a dry run this is all.
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
		return Receipt{}, nil, Errorf(CodeInvalid, "revision %d is not there yet: the newest is %d", u.meta.ExpectedRevision, g.revision).At("expectedRevision")
	}
	tx, err := g.runUpdate(u)
	if err != nil {
		return Receipt{}, nil, err
	}
	j := &judgedUpdate{revision: h.revision, rulesVersion: s.rulesVersion(), changes: tx.changes, time: tx.TimeTerm()}
	receipt := Receipt{
		Revision: h.revision, Position: g.endPosition(),
		Affected: len(tx.changes), Subjects: changedSubjects(tx.changes),
	}
	if logentry.EntryAtMost(tx.changes) > MaxCommitBytes && len(logentry.AppendEntry(nil, &Commit{Changes: tx.changes})) > MaxCommitBytes {
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

// rulesVersion is asked before anything is looked at that rules decide about.
func (s *Store) rulesVersion() uint64 {
	if s.options.RulesVersion == nil {
		return 0
	}
	return s.options.RulesVersion()
}

// newTrial is a group of one that is never appended. The numbers of its terms
// are of no account.
func (s *Store) newTrial(h *head, base index.KV) *group {
	const farAhead = 1 << 62 // of any number that the dictionary gives
	trial := *h
	trial.nextNumber = farAhead
	g := s.startGroup(&trial, base)
	g.trial = true
	g.w.Dict.From = h.nextNumber
	return g
}

// runVerifier asks the verifier, if there is one and the update has an effect.
func (g *group) runVerifier(u *update, tx *Tx) (v Verdict, err error) {
	if tx.before == nil {
		return v, nil
	}
	changes := judgedChanges(tx.changes)
	if len(changes) == 0 {
		return v, nil
	}
	g.w.O.Settle() // verifiers may read with several goroutines
	v, err = g.s.callVerifier(u.ctx, func(ctx context.Context) Judgement {
		return Judgement{
			Meta: u.meta, Changes: changes,
			Before: g.snapshotOver(ctx, u, tx, tx.before, nil), After: g.snapshotOver(ctx, u, tx, g.w.O, tx.w.Deltas),
		}
	})
	return v.forOwn(tx), err
}

// callVerifier asks the verifier. It ends with ctx, and with the judgements of the store
// (EndJudging). A panic of the verifier is an error.
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
func (g *group) snapshotOver(ctx context.Context, u *update, tx *Tx, layer index.KV, pending *index.Deltas) *Snapshot {
	return &Snapshot{
		ctx: ctx, kv: layer, dict: g.w.Dict, access: tx.access, hides: Hidden(tx.access, u.meta.Principal), catalogue: g.catalogue, pending: pending, generations: g.w.Generations,
		view:     View{Principal: u.meta.Principal, AllGraphs: true, WithoutPending: true, Now: tx.time, At: g.revision, Doubts: tx.doubts},
		position: g.endPosition(),
	}
}

// MaxJudgements is how often an update is judged at most: the first time, and again
// each time that something it was judged by changed before it was committed.
const MaxJudgements = 32

// turnTime is how long an overtaken update waits for those that were overtaken by the
// same thing before it. A judgement that takes longer than that does not hold up the
// others: they then compete with it.
const turnTime = 250 * time.Millisecond

// errOvertaken sends an update back to its caller's goroutine to be judged anew. It
// never leaves the store.
var errOvertaken = errors.New("the verdict was overtaken")

// isOvertaken tells whether the update needs a verdict that it does not have: on what it
// comes to now, by the same rules, of subjects that have not changed since, and nothing
// else changed that the verdict was made from. by is the key of what changed.
func (g *group) isOvertaken(u *update, tx *Tx) (by uint64, overtaken bool) {
	s := g.s
	if u.held != nil || !tx.judged || len(judgedChanges(tx.changes)) == 0 && (tx.replaced == nil || tx.replaced.Deleted) {
		return 0, false
	}
	j := u.judged
	if j == nil || j.rulesVersion != s.rulesVersion() {
		return 0, true
	}
	for subject, t := range tx.touched {
		if !t.own && t.last > j.revision {
			return maphash.Comparable(base.DependencySeed, subject), true
		}
	}
	by, changed := s.recently.changedAfter(j.depends, j.revision)
	if tx.replaced != nil {
		// The graph has not changed since, and what comes is what was judged. A judgement
		// of that size is not made again because others committed much: the log knows.
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

// sameChanges tells whether the verdict is on what the update comes to now.
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
		if a.Op != b.Op || p != q || a.Assertion.Source != b.Assertion.Source || !a.Assertion.Same(b.Assertion) {
			return false
		}
	}
}

// skipUnjudged leaves out changes that a verdict is not about, up to the first that it is.
func (j *judgedUpdate) skipUnjudged(changes []Change) []Change {
	for i := range changes {
		q := &changes[i].Quad
		if !IsOwnGraph(q.Graph) || q.Predicate != Sequence && slices.Contains(j.own, q.Subject) {
			return changes[i:]
		}
	}
	return nil
}

// rejudging is an update between its judgements.
type rejudging struct {
	store *Store
	turn  *queuedUpdate // nil before it is overtaken
	made  int           // judgements
}

func (s *Store) newRejudging() rejudging { return rejudging{store: s} }

// waitTurn waits until it is worth to judge an update anew that was overtaken by a change
// with this key, 0 for none. Those that are overtaken by the same thing, such as a
// subject that many write, take turns: each waits for the one before, instead of
// overtaking it once more.
func (r *rejudging) waitTurn(ctx context.Context, by uint64) error {
	if r.made++; r.made >= MaxJudgements {
		return errAlwaysOvertaken()
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
		return errGivenUp(ctx)
	}
	return nil
}

// endTurn lets the next one have its turn.
func (r *rejudging) endTurn() {
	if r.turn != nil {
		r.store.updateQueues.leave(r.turn)
		r.turn = nil
	}
}

func errAlwaysOvertaken() *Error {
	e := Errorf(CodeOverloaded, "the update was judged %d times, and each time something that it was judged by changed before it was committed", MaxJudgements)
	e.RetryAfter = time.Second
	e.Hint = "try again later, or change fewer subjects at a time"
	return e
}

// updateQueues are the queues of overtaken updates, one for each key. The zero turns is empty.
type updateQueues struct {
	mu     sync.Mutex // guards what follows, and turn.before
	queues map[uint64][]*queuedUpdate
}

// queuedUpdate is the place of an update in the queues of its keys.
type queuedUpdate struct {
	keys   []uint64
	before int           // in how many queues somebody is in front of it
	ready  chan struct{} // closed when nobody is
}

// join puts an update at the end of the queues of all its keys at once, so that no two
// wait for each other.
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

// leave takes an update out of its queues.
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

// dependencyHashes is what is kept of dependencies while an update waits.
func dependencyHashes(list []Dependency) []uint64 {
	out := make([]uint64, len(list))
	for i, d := range list {
		out[i] = d.Number()
	}
	return out
}

// recentChanges tells in which revision things were last changed that a verdict may
// depend on, for the newest revisions. It belongs to the committer.
type recentChanges struct {
	last map[uint64]Revision
	// since is the revision up to which nothing is known.
	since Revision
	most  int // stands in for maxRecent; for tests
}

// maxRecent bounds what recently remembers: three numbers or four for each change.
const maxRecent = 1 << 17

// addCommit takes a commit in.
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

// changedIn reports whether one of the commits behind a revision, up to newest, changed one
// of the dependencies, and which; 0 where that is not known, because a commit replaced a
// graph as a whole or is not in the log any more. depends is sorted.
func changedIn(ctx context.Context, depends []uint64, after, newest Revision, commit func(Revision) (*Commit, error)) (which uint64, changed bool, err error) {
	for r := after + 1; r <= newest && len(depends) > 0; r++ {
		if ctx.Err() != nil {
			return 0, false, errGivenUp(ctx)
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

// forgetUpTo makes everything up to the revision unknown.
func (r *recentChanges) forgetUpTo(up Revision) {
	clear(r.last)
	r.since = up
}

// changedAfter tells whether any of the dependencies may have changed after the
// revision, and which; 0 where that is not known.
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
