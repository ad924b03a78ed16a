package kg

import (
	"context"
	"iter"
	"sync"

	"koine/kg/internal/base"
)

// Watcher is a place in the log from which changes are read as they come. It
// holds no goroutine and no buffer: a slow one reads the log.
type Watcher struct {
	s        *Store
	ctx      context.Context
	filter   *watchFilter  // written under tailer.mu, by the reader
	wake     chan struct{} // of one; "there is more"
	unlink   func()
	round    uint64 // of filterIndex.match; guarded by tailer.mu
	unlinked bool   // was unlinked; guarded by tailer.mu

	mu     sync.Mutex // guards what follows; taken after tailer.mu
	pos    Position   // read up to here
	idle   bool       // everything up to the tailer's head has been looked at
	wakeAt Revision   // the oldest commit that may match and was not looked at; 0 for none
	closed bool

	// the reader's own
	next  Revision // the next commit to look at
	known Revision // up to here the tailer does not match for this watcher
	// access knows whether what the principal may read is what it was at sighted.
	access        AccessChanges
	accessChecked Revision
}

// Watch registers a watcher of the changes that come after from. When it
// returns nothing after from can be missed any more. What was told or read up to
// from is taken to be what the principal could see there. It fails with
// CodePositionGone when the log no longer holds what follows from, or from is of
// another log or ahead of it, and CodeOverloaded when there are too many
// watchers. Close it when done.
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
	seen.followed, seen.known = s.head.Load().revision, from.Revision
	w := &Watcher{s: s, ctx: ctx, filter: seen, wake: make(chan struct{}, 1), pos: from, access: ChangesOf(s.options.Access), accessChecked: from.Revision}
	if from.Compare(s.Oldest()) == 0 { // whoever begins there was told nothing before
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

// CheckPosition refuses, with CodePositionGone, a position behind which the log
// cannot be read: it is of another log, ahead of this one, or was cut off.
func (s *Store) CheckPosition(from Position) error {
	if from.Epoch != s.dir.Epoch || from.Revision > s.head.Load().revision {
		return s.errPositionGone("the position is not of this log")
	}
	if from.Compare(s.Oldest()) < 0 {
		return s.errPositionGone("the log no longer holds what follows the position")
	}
	return nil
}

// Close ends the watcher and frees its place.
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

// Position is up to where the changes have been handed out, or, while none
// matches, looked at. To watch from there is to miss nothing.
func (w *Watcher) Position() Position {
	t := w.s.tailer
	t.mu.Lock()
	defer t.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle && w.wakeAt == 0 && t.head > w.pos.Revision {
		return Position{w.s.dir.Epoch, t.head, EndOfCommit}
	}
	return w.pos
}

// Events yields the changes in order and waits for more. It ends with the
// context's error, CodeClosed, CodeResync when the log that it needs is gone or a graph that
// the filter is about was replaced as a whole (Error.Oldest is then behind that), or
// CodeAccessChanged when what the principal may read has changed behind the start
// (see AccessChanges): from the commit on that changed it, nothing more is told.
// It is used once, from one goroutine. An event counts as read when the loop
// asks for the next.
func (w *Watcher) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := w.readCommits(func(r Revision) (more bool, err error) {
			return w.yieldCommit(r, func(e *Event) bool { return yield(*e, nil) })
		})
		if err != nil {
			yieldEnd(yield, err)
		}
	}
}

// yieldEnd tells why there is no more. It is a function of its own so that an event takes
// no place on the stack while the next one is waited for.
//
//go:noinline
func yieldEnd[T any](yield func(T, error) bool, err error) {
	var none T
	yield(none, err)
}

// readCommits hands out one commit after the other that may match, until that says stop
// (nil) or it cannot go on.
func (w *Watcher) readCommits(one func(Revision) (more bool, err error)) error {
	for {
		// What was there before the tailer knew this watcher.
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

// nextMatch takes over from the tailer what has come meanwhile: the oldest commit
// that may match, 0 when none does, and the newest there is.
func (w *Watcher) nextMatch() (at, head Revision, err error) {
	t := w.s.tailer
	t.mu.Lock()
	defer t.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, 0, base.ErrClosed()
	}
	at, head = w.wakeAt, t.head
	w.wakeAt = 0
	w.idle = at == 0
	if w.idle && head > w.pos.Revision {
		w.pos = Position{w.s.dir.Epoch, head, EndOfCommit}
	}
	return at, head, nil
}

// yieldCommit hands out the events of one commit; more is false when reading ends.
func (w *Watcher) yieldCommit(r Revision, yield func(*Event) bool) (more bool, err error) {
	c, from, err := w.loadCommit(r)
	if err != nil {
		return false, err
	}
	if w.filter.matchesReplacement(c) {
		return false, w.yieldReplacement(c, from, yield)
	}
	more = w.eachEvent(c, from, func(e *Event) bool {
		if !yield(e) {
			return false
		}
		w.moveTo(e.Position)
		return true
	})
	if err := w.filter.endError(w.s); err != nil {
		return false, err
	}
	if more {
		w.moveTo(Position{w.s.dir.Epoch, r, EndOfCommit})
	}
	return more, nil
}

// checkAccess ends the reading when what the principal may read has changed.
func (w *Watcher) checkAccess() error {
	changed, upTo := w.access.ReadChanged(w.filter.View.Principal, w.accessChecked)
	if changed {
		return w.s.errAccessChanged()
	}
	doubts, until := w.filter.distrust.DoubtsChanged(w.accessChecked)
	if doubts {
		return w.s.errAccessChanged()
	}
	// Either may know of less than the other: nothing up to the later changed
	// anything, because what did is told before its revision can be read.
	w.accessChecked = max(upTo, until)
	return nil
}

// loadCommit reads a commit, of which what is behind from was not handed out.
func (w *Watcher) loadCommit(r Revision) (c *Commit, from Position, err error) {
	if err := w.ctx.Err(); err != nil {
		return nil, from, err
	}
	if err := w.checkAccess(); err != nil {
		return nil, from, err
	}
	// What is hidden now: the operator may have said so since the last commit.
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

// yieldReplacement ends the reading at a commit that replaced a graph which the filter is about,
// behind the event that tells of it.
func (w *Watcher) yieldReplacement(c *Commit, from Position, yield func(*Event) bool) error {
	e := w.filter.seeReplaced(w.s.dir.Epoch, c)
	if e != nil && e.Position.Compare(from) > 0 {
		if !yield(e) {
			return nil
		}
		w.moveTo(e.Position)
	}
	return w.s.errReplaced(c, c.Replaced.Shown(w.filter.isPartlyHidden(c.Replaced.Graph)))
}

// errReplaced ends the reading of who follows a graph whose content was exchanged as a
// whole.
func (s *Store) errReplaced(c *Commit, r *GraphReplacement) error {
	e := Errorf(CodeResync, "the graph %s was replaced as a whole: %d statements came, %d went", r.Graph, r.Added, r.Removed)
	if r.Uncounted {
		e = Errorf(CodeResync, "the graph %s was replaced as a whole", r.Graph)
	}
	e.Hint = "read the graph anew, then follow from the position that is told"
	behind := Position{s.dir.Epoch, c.Revision, EndOfCommit}
	e.Oldest = &behind
	return e
}

// eachEvent calls fn for what the commit is behind from, and tells whether fn
// wanted all of it.
func (w *Watcher) eachEvent(c *Commit, from Position, fn func(*Event) bool) bool {
	for i := range c.Changes {
		at := Position{w.s.dir.Epoch, c.Revision, uint32(i)}
		if at.Compare(from) <= 0 {
			continue
		}
		e := w.filter.eventOf(w.s.dir.Epoch, c, i)
		if w.filter.err != nil || w.filter.stale || e != nil && !fn(e) {
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

// Commits yields what Events does, but the events of one commit together: a
// commit is atomic. Of one in the middle of which the watcher starts it yields
// those behind the start. It takes the place of Events.
func (w *Watcher) Commits() iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		err := w.readCommits(func(r Revision) (more bool, err error) {
			c, from, err := w.loadCommit(r)
			if err != nil {
				return false, err
			}
			if w.filter.matchesReplacement(c) {
				return false, w.yieldReplacement(c, from, func(e *Event) bool { return yield([]Event{*e}, nil) })
			}
			var events []Event
			w.eachEvent(c, from, func(e *Event) bool {
				events = append(events, *e)
				return true
			})
			if err := w.filter.endError(w.s); err != nil {
				return false, err
			}
			if len(events) > 0 && !yield(events, nil) {
				return false, nil
			}
			w.moveTo(Position{w.s.dir.Epoch, r, EndOfCommit})
			return true, nil
		})
		if err != nil {
			yieldEnd(yield, err)
		}
	}
}

// Refilter makes the watcher go on with another filter, from behind the commit
// that the loop over Commits is at: only there it may be called. Nothing that
// fits the new filter is missed. It fails as Watch does, and then the watcher
// goes on with the filter that it has.
func (w *Watcher) Refilter(f Filter) error {
	seen, err := f.prepare(w.s)
	if err != nil {
		return err
	}
	seen.followed, seen.known = w.filter.followed, w.filter.known
	known, err := w.s.tailer.setFilter(w, seen)
	if err != nil {
		return err
	}
	// What came meanwhile was matched with the old filter.
	w.known = max(w.known, known)
	return nil
}
