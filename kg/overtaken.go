package kg

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

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

// overtaken tells whether the update needs a verdict that it does not have: on what it
// comes to now, by the same rules, of subjects that have not changed since, and nothing
// else changed that the verdict was made from. by is the key of what changed.
func (g *group) overtaken(u *update, tx *Tx) (by uint64, overtaken bool) {
	s := g.s
	if u.held != nil || !tx.judged || len(judgedChanges(tx.changes)) == 0 && (tx.replaced == nil || tx.replaced.Deleted) {
		return 0, false
	}
	j := u.judged
	if j == nil || j.rules != s.rulesVersion() {
		return 0, true
	}
	for subject, t := range tx.touched {
		if !t.own && t.last > j.revision {
			return maphash.Comparable(dependencySeed, subject), true
		}
	}
	by, changed := s.recently.changed(j.depends, j.revision)
	if tx.replaced != nil {
		// The graph has not changed since, and what comes is what was judged. A judgement
		// of that size is not made again because others committed much: the log knows.
		if changed && by == 0 {
			var err error
			by, changed, err = changedIn(u.ctx, j.depends, j.revision, g.revision, g.commit)
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
func (j *judged) sameChanges(tx *Tx) bool {
	was, is := j.changes, tx.changes
	now := tx.TimeTerm()
	for {
		was, is = j.skip(was), j.skip(is)
		if len(was) == 0 || len(is) == 0 {
			return len(was) == len(is)
		}
		a, b := &was[0], &is[0]
		was, is = was[1:], is[1:]
		p, q := a.Quad, b.Quad
		if Reserved(p) && p.Object == j.time && q.Object == now {
			p.Object = q.Object
		}
		if a.Op != b.Op || p != q || a.Assertion.Source != b.Assertion.Source || !a.Assertion.same(b.Assertion) {
			return false
		}
	}
}

// skip leaves out changes that a verdict is not about, up to the first that it is.
func (j *judged) skip(changes []Change) []Change {
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
	turn  *turn // nil before it is overtaken
	made  int   // judgements
}

func (s *Store) rejudge() rejudging { return rejudging{store: s} }

// next waits until it is worth to judge an update anew that was overtaken by a change
// with this key, 0 for none. Those that are overtaken by the same thing, such as a
// subject that many write, take turns: each waits for the one before, instead of
// overtaking it once more.
func (r *rejudging) next(ctx context.Context, by uint64) error {
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
	r.end()
	r.turn = r.store.turns.join(keys)
	timeout := time.NewTimer(turnTime)
	defer timeout.Stop()
	select {
	case <-r.turn.ready:
	case <-timeout.C:
	case <-r.store.stop:
		return errClosed()
	case <-ctx.Done():
		return errGivenUp(ctx)
	}
	return nil
}

// end lets the next one have its turn.
func (r *rejudging) end() {
	if r.turn != nil {
		r.store.turns.leave(r.turn)
		r.turn = nil
	}
}

func errAlwaysOvertaken() *Error {
	e := Errorf(CodeOverloaded, "the update was judged %d times, and each time something that it was judged by changed before it was committed", MaxJudgements)
	e.RetryAfter = time.Second
	e.Hint = "try again later, or change fewer subjects at a time"
	return e
}

// turns are the queues of overtaken updates, one for each key. The zero turns is empty.
type turns struct {
	mu     sync.Mutex // guards what follows, and turn.before
	queues map[uint64][]*turn
}

// turn is the place of an update in the queues of its keys.
type turn struct {
	keys   []uint64
	before int           // in how many queues somebody is in front of it
	ready  chan struct{} // closed when nobody is
}

// join puts an update at the end of the queues of all its keys at once, so that no two
// wait for each other.
func (t *turns) join(keys []uint64) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &turn{keys: keys, ready: make(chan struct{})}
	if t.queues == nil {
		t.queues = make(map[uint64][]*turn)
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
func (t *turns) leave(one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range one.keys {
		queue := t.queues[k]
		first := queue[0] == one
		queue = slices.DeleteFunc(queue, func(o *turn) bool { return o == one })
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
