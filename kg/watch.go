package kg

import (
	"context"
	"iter"
	"sync"

	"koine/kg/base"
)

// Watcher reads the changes of the log from a position on and waits for new ones. It has no
// goroutine and no buffer: a slow watcher reads the log. Close it when done.
type Watcher struct {
	s        *Store
	ctx      context.Context
	filter   *watchFilter  // written by the reader with tailer.mu held
	wake     chan struct{} // capacity 1
	unlink   func()
	round    uint64 // of filterIndex.matchCommit; guarded by tailer.mu
	unlinked bool   // guarded by tailer.mu

	mu      sync.Mutex // guards the fields below; locked after tailer.mu
	pos     Position   // all changes up to here are yielded or do not match
	idle    bool       // the reader has examined everything up to the tailer's head
	wakeAt  Revision   // the oldest unexamined commit that may match; 0 for none
	wakeTo  Revision   // the newest commit that may match
	recheck bool       // the principal's rights may have changed since they were checked
	closed  bool
	nudged  bool // Nudge was called since the reader last looked

	// The fields below belong to the reader.
	next  Revision // the next commit to examine
	known Revision // the tailer matches for this watcher from the next revision on
	// access reports changes of the principal's rights since accessChecked.
	access        AccessChanges
	accessChecked Revision
}

// Watch returns a watcher of the changes after from that match f. A snapshot's position is a
// good from: no change between the two is missed. The principal is taken to know everything
// that it could read up to from. Watch fails with CodePositionGone if the log no longer holds
// the commits after from, or if from belongs to another log or lies ahead of it, and with
// CodeOverloaded beyond Options.MaxWatchers or MaxWatchedPatterns. The caller closes the
// watcher.
func (s *Store) Watch(ctx context.Context, f Filter, from Position) (*Watcher, error) {
	if err := s.admitRead(ctx, f.View.Principal, true); err != nil {
		return nil, err
	}
	seen, err := f.prepare(s)
	if err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, base.ErrClosed()
	}
	if err := s.CheckPosition(from); err != nil {
		return nil, err
	}
	seen.open, seen.followed, seen.known = &s.tailer.open, s.head.Load().revision, from.Revision
	w := &Watcher{s: s, ctx: ctx, filter: seen, wake: make(chan struct{}, 1), pos: from, access: ChangesOf(s.options.Access), accessChecked: from.Revision}
	if from.Compare(s.Oldest()) == 0 { // a watcher that begins there has reported nothing before
		w.accessChecked = s.head.Load().revision
		seen.known = 0
	}
	w.next = from.Revision
	if from.Index == EndOfCommit || from.Revision == 0 {
		w.next++
	}
	known, unlink, err := s.tailer.addWatcher(w)
	if err != nil {
		return nil, err
	}
	w.known, w.unlink = known, unlink
	return w, nil
}

// CheckPosition returns CodePositionGone if the log cannot be read from the position on: the
// position belongs to another log, lies ahead of this one, or was cut off.
func (s *Store) CheckPosition(from Position) error {
	if from.Epoch != s.dir.Epoch || from.Revision > s.head.Load().revision {
		return s.errPositionGone("the position is not of this log")
	}
	if from.Compare(s.Oldest()) < 0 {
		return s.errPositionGone("the log no longer holds what follows the position")
	}
	return nil
}

// Close ends Events and Commits and releases the watcher. It may be called more than once.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.unlink()
	w.wakeUp()
}

func (w *Watcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Nudge makes Commits yield an empty slice once, soon: a reader that has something else to
// tell as well need not wait for the next commit. Calls coalesce. Events ignores it.
func (w *Watcher) Nudge() {
	w.mu.Lock()
	w.nudged = true
	w.mu.Unlock()
	w.wakeUp()
}

// takeNudge reports whether Nudge was called since the last time.
func (w *Watcher) takeNudge() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.nudged
	w.nudged = false
	return was
}

// Position returns the position behind the last change that was yielded, or, while no change
// matches, behind the last one examined. A watch from there misses nothing.
func (w *Watcher) Position() Position {
	t := w.s.tailer
	t.mu.Lock()
	defer t.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if head := t.matchedHead(); w.idle && w.wakeAt == 0 && !w.recheck && head > w.pos.Revision {
		return Position{Epoch: w.s.dir.Epoch, Revision: head, Index: EndOfCommit}
	}
	return w.pos
}

// Events yields the matching changes in the order of the log and waits for more. An event
// counts as read when the loop asks for the next one. Use it once, from one goroutine. It ends
// with
//
//   - the error of the context that Watch got;
//   - CodeClosed after Close, or when the store closes;
//   - CodeResync if the log it needs is gone, or if a graph of the filter was replaced as a
//     whole; Error.Oldest is the position behind the replacement;
//   - CodeAccessChanged if the principal's rights changed after the start (AccessChanges). It
//     yields nothing from the commit on that changed them.
func (w *Watcher) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for event, err := range w.SharedEvents() {
			if err != nil {
				yieldEnd(yield, err)
				return
			}
			if !yield(event[0], nil) {
				return
			}
		}
	}
}

// SharedEvents is Events with each event in a slice of its own, which other watchers may be given
// too: it must not be changed.
func (w *Watcher) SharedEvents() iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		err := w.readCommits(nil, func(r Revision) (more bool, err error) {
			return w.yieldCommit(r, func(e []Event) bool { return yield(e, nil) })
		})
		if err != nil {
			yieldEnd(yield, err)
		}
	}
}

// yieldEnd yields the error that ends the sequence. It is a separate function to keep the
// event off the stack while the reader waits.
//
//go:noinline
func yieldEnd[T any](yield func(T, error) bool, err error) {
	var none T
	yield(none, err)
}

// readCommits calls one for each commit that may match, until one returns false or an error.
// It calls nudge, if not nil, after Nudge, and ends when it returns false.
func (w *Watcher) readCommits(nudge func() bool, one func(Revision) (more bool, err error)) error {
	for {
		if nudge != nil && w.takeNudge() && !nudge() {
			return nil
		}
		// Commits from before the tailer matched for this watcher.
		for ; w.next <= w.known; w.next++ {
			if more, err := one(w.next); !more {
				return err
			}
		}
		at, head, err := w.nextMatch()
		if err != nil {
			return err
		}
		if at == 0 {
			if err := w.checkAccess(); err != nil {
				return err
			}
			if !w.rest(head) {
				continue
			}
			select {
			case <-w.wake:
			case <-w.ctx.Done():
				return w.ctx.Err()
			case <-w.s.stop:
				return base.ErrClosed()
			}
			continue
		}
		w.next, w.known = max(w.next, at), head
	}
}

// nextMatch fetches the tailer's state: the oldest commit that may match, 0 for none, and the
// newest commit. With 0 the reader checks the rights before it rests.
//
// It does not take tailer.mu: the tailer holds it while it wakes thousands, each of which would
// wait for it. So head is read first: the matches up to it are noted. Those noted beyond it were
// matched since, or are being matched; the reader has them then, and is not told of them again.
func (w *Watcher) nextMatch() (at, head Revision, err error) {
	head = w.s.tailer.matchedHead()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, 0, base.ErrClosed()
	}
	at = w.wakeAt
	head = max(head, w.wakeTo)
	w.wakeAt, w.recheck, w.idle = 0, false, false
	return at, head, nil
}

// rest moves the position to head, up to which no commit matches and the rights are checked.
// It returns false if there is something new to examine.
func (w *Watcher) rest(head Revision) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wakeAt != 0 || w.recheck {
		return false
	}
	w.idle = true
	if head > w.pos.Revision {
		w.pos = Position{Epoch: w.s.dir.Epoch, Revision: head, Index: EndOfCommit}
	}
	return true
}

// yieldCommit yields the events of one commit. It returns false when the sequence ends.
func (w *Watcher) yieldCommit(r Revision, yield func([]Event) bool) (more bool, err error) {
	c, from, err := w.loadCommit(r)
	if err != nil {
		return false, err
	}
	if w.filter.matchesReplacement(c) {
		return false, w.yieldReplacement(c, from, yield)
	}
	more = w.eachEvent(c, from, func(e []Event) bool {
		if !yield(e) {
			return false
		}
		w.moveTo(e[0].Position)
		return true
	})
	if err := w.filter.endError(w.s); err != nil {
		return false, err
	}
	if more {
		w.moveTo(Position{Epoch: w.s.dir.Epoch, Revision: r, Index: EndOfCommit})
	}
	return more, nil
}

// checkAccess returns CodeAccessChanged if the principal's rights have changed.
func (w *Watcher) checkAccess() error {
	p := w.filter.View.Principal
	changed, upTo := w.access.ReadChanged(p, w.accessChecked)
	// koine itself reads everything. After a start, an access control reports changes that it
	// knows nothing of for every principal.
	if changed && !(p.ID == System && p.Trusted()) {
		return w.s.errAccessChanged()
	}
	doubts, until := w.filter.distrust.DoubtsChanged(w.accessChecked)
	if doubts {
		return w.s.errAccessChanged()
	}
	// Either number may lag behind the other. Nothing changed up to the later one: a change is
	// reported before its revision becomes readable.
	w.accessChecked = max(upTo, until)
	return nil
}

// loadCommit reads a commit and returns the position behind which its changes are still to be
// yielded.
func (w *Watcher) loadCommit(r Revision) (c *Commit, from Position, err error) {
	if err := w.ctx.Err(); err != nil {
		return nil, from, err
	}
	if err := w.checkAccess(); err != nil {
		return nil, from, err
	}
	// Hiding rules may have changed since the last commit.
	w.filter.hides = Hidden(w.s.options.Access, w.filter.View.Principal)
	c, err = w.s.tailer.commitAt(r)
	if CodeOf(err) == CodeRevisionGone {
		gone := w.s.errPositionGone("the log no longer holds what comes next")
		gone.Code = CodeResync
		return nil, from, gone
	}
	if err != nil {
		return nil, from, err
	}
	w.mu.Lock()
	from, closed := w.pos, w.closed
	w.idle = false
	w.mu.Unlock()
	if closed {
		return nil, from, base.ErrClosed()
	}
	return c, from, nil
}

// yieldReplacement ends the sequence at a commit that replaced a graph of the filter, after
// the event that reports the replacement.
func (w *Watcher) yieldReplacement(c *Commit, from Position, yield func([]Event) bool) error {
	e := w.filter.replacementEvent(w.s.dir.Epoch, c)
	if e != nil && e.Position.Compare(from) > 0 {
		if !yield([]Event{*e}) {
			return nil
		}
		w.moveTo(e.Position)
	}
	return w.s.errReplaced(c, c.Replaced.Redacted(w.filter.isPartlyHidden(c.Replaced.Graph)))
}

// errReplaced returns the CodeResync error for a watcher of a graph that was replaced as a
// whole.
func (s *Store) errReplaced(c *Commit, r *GraphReplacement) error {
	e := Errorf(CodeResync, "the graph %s was replaced as a whole: %d statements added, %d removed", r.Graph, r.Added, r.Removed)
	if r.Uncounted {
		e = Errorf(CodeResync, "the graph %s was replaced as a whole", r.Graph)
	}
	e.Hint = "read the graph again and watch from the position given"
	behind := Position{Epoch: s.dir.Epoch, Revision: c.Revision, Index: EndOfCommit}
	e.Oldest = &behind
	return e
}

// eachEvent calls fn for each event of the commit behind from. It returns false if fn did.
func (w *Watcher) eachEvent(c *Commit, from Position, fn func([]Event) bool) bool {
	for i := range c.Changes {
		at := Position{Epoch: w.s.dir.Epoch, Revision: c.Revision, Index: uint32(i)}
		if at.Compare(from) <= 0 {
			continue
		}
		e := w.filter.eventOf(w.s.dir.Epoch, c, i)
		if w.filter.err != nil || w.filter.stale || len(e) > 0 && !fn(e) {
			return false
		}
	}
	return true
}

func (w *Watcher) moveTo(p Position) {
	w.mu.Lock()
	w.pos = p
	w.mu.Unlock()
}

// Commits is Events with the events of one commit yielded together: a commit is atomic. If the
// watcher starts within a commit, the first slice holds the events behind the start. Use
// either Commits or Events. A slice is empty only after Nudge.
func (w *Watcher) Commits() iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		err := w.readCommits(func() bool { return yield(nil, nil) }, func(r Revision) (more bool, err error) {
			c, from, err := w.loadCommit(r)
			if err != nil {
				return false, err
			}
			if w.filter.matchesReplacement(c) {
				return false, w.yieldReplacement(c, from, func(e []Event) bool { return yield(e, nil) })
			}
			var events []Event
			w.eachEvent(c, from, func(e []Event) bool {
				events = append(events, e...)
				return true
			})
			if err := w.filter.endError(w.s); err != nil {
				return false, err
			}
			if len(events) > 0 && !yield(events, nil) {
				return false, nil
			}
			w.moveTo(Position{Epoch: w.s.dir.Epoch, Revision: r, Index: EndOfCommit})
			return true, nil
		})
		if err != nil {
			yieldEnd(yield, err)
		}
	}
}

// WholeCommits is Commits for koine itself, whose filter it ignores: it yields the commits as
// they are in the log, and nil after Nudge. A commit that replaced a graph does not end it.
func (w *Watcher) WholeCommits() iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		var err error
		if p := &w.filter.View.Principal; p.ID != System || !p.Trusted() {
			err = Errorf(CodeInvalid, "%s cannot follow whole commits; watch events", p.ID)
		} else {
			err = w.readCommits(func() bool { return yield(nil, nil) }, func(r Revision) (more bool, err error) {
				c, _, err := w.loadCommit(r)
				if err != nil || !yield(c, nil) {
					return false, err
				}
				w.moveTo(Position{Epoch: w.s.dir.Epoch, Revision: r, Index: EndOfCommit})
				return true, nil
			})
		}
		if err != nil {
			yieldEnd(yield, err)
		}
	}
}

// Refilter replaces the filter from the next commit on. Call it only within the loop over
// Commits. No match of the new filter is missed. It fails as Watch does, and the old filter
// then stays.
func (w *Watcher) Refilter(f Filter) error {
	seen, err := f.prepare(w.s)
	if err != nil {
		return err
	}
	seen.open, seen.followed, seen.known = w.filter.open, w.filter.followed, w.filter.known
	known, err := w.s.tailer.setFilter(w, seen)
	if err != nil {
		return err
	}
	// Commits in between were matched against the old filter.
	w.known = max(w.known, known)
	return nil
}
