package kg

import (
	"context"
	"iter"
	"slices"
	"sync"
)

// Filter says which changes a watcher sees.
type Filter struct {
	Pattern Pattern
	// Ops admits only these operations, as the watcher sees them. Nil admits
	// all.
	Ops []Op
	// View is under whose eyes the changes are seen: Principal, Graphs,
	// AllGraphs, MinCertainty and Believed. A revision or an age cannot be part
	// of it.
	View View
	// Keep is a further condition on a statement with one assertion. Nil keeps
	// all. It must be fast and safe for concurrent use.
	Keep func(Statement) bool
}

// Event is a change as a watcher sees it: the difference of what its view shows
// before and after.
type Event struct {
	Op Op
	// Statement is the quad with the assertion that changed.
	Statement Statement
	// Previous, on a Replace, is what went.
	Previous []Statement
	// StatementRemains, on a Remove, tells that others still back it.
	StatementRemains bool
	Commit           *Commit // not to be changed; may hold changes that the view does not show
	Position         Position
}

// Watcher is a place in the log from which changes are read as they come. It
// holds no goroutine and no buffer: a slow one reads the log.
type Watcher struct {
	s      *Store
	ctx    context.Context
	filter Filter
	wake   chan struct{} // of one; "there is more"
	unlink func()

	mu     sync.Mutex // guards what follows; taken after tailer.mu
	pos    Position   // read up to here
	idle   bool       // everything up to the tailer's head has been looked at
	wakeAt Revision   // the oldest commit that may match and was not looked at; 0 for none
	closed bool

	// the reader's own
	next  Revision // the next commit to look at
	known Revision // up to here the tailer does not match for this watcher
}

// Watch registers a watcher of the changes that come after from. When it
// returns nothing after from can be missed any more. It fails with
// CodePositionGone when the log no longer holds what follows from, or from is of
// another log or ahead of it, and CodeOverloaded when there are too many
// watchers. Close it when done.
func (s *Store) Watch(ctx context.Context, f Filter, from Position) (*Watcher, error) {
	if f.View.MaxAge != 0 || f.View.At != 0 {
		return nil, Errorf(CodeInvalid, "changes cannot be watched under an age or at a revision")
	}
	if err := f.View.Valid(); err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, errClosed()
	}
	f.View.Principal.normalise()
	if from.Epoch != s.dir.epoch || from.Revision > s.head.Load().revision {
		return nil, s.errPositionGone("the position is not of this log")
	}
	if from.Compare(s.Oldest()) < 0 {
		return nil, s.errPositionGone("the log no longer holds what follows the position")
	}
	w := &Watcher{s: s, ctx: ctx, filter: f, wake: make(chan struct{}, 1), pos: from}
	w.next = from.Revision
	if from.Index == EndOfCommit || from.Revision == 0 {
		w.next++
	}
	known, unlink, err := s.tailer.add(w)
	if err != nil {
		return nil, err
	}
	w.known, w.unlink = known, unlink
	return w, nil
}

// Close ends the watcher and frees its place.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.unlink()
	w.signal()
}

func (w *Watcher) signal() {
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
		return Position{w.s.dir.epoch, t.head, EndOfCommit}
	}
	return w.pos
}

// Events yields the changes in order and waits for more. It ends with the
// context's error, CodeClosed, or CodeResync when the log that it needs is gone.
// It is used once, from one goroutine. An event counts as read when the loop
// asks for the next.
func (w *Watcher) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := w.read(func(e *Event) bool { return yield(*e, nil) })
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// read hands events out until yield says stop (nil) or it cannot go on.
func (w *Watcher) read(yield func(*Event) bool) error {
	for {
		// What was there before the tailer knew this watcher.
		for ; w.next <= w.known; w.next++ {
			if more, err := w.one(w.next, yield); !more {
				return err
			}
		}
		at, head, err := w.advance()
		if err != nil {
			return err
		}
		if at == 0 {
			select {
			case <-w.wake:
			case <-w.ctx.Done():
				return w.ctx.Err()
			case <-w.s.stop:
				return errClosed()
			}
			continue
		}
		w.next, w.known = max(w.next, at), head
	}
}

// advance takes over from the tailer what has come meanwhile: the oldest commit
// that may match, 0 when none does, and the newest there is.
func (w *Watcher) advance() (at, head Revision, err error) {
	t := w.s.tailer
	t.mu.Lock()
	defer t.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, 0, errClosed()
	}
	at, head = w.wakeAt, t.head
	w.wakeAt = 0
	w.idle = at == 0
	if w.idle && head > w.pos.Revision {
		w.pos = Position{w.s.dir.epoch, head, EndOfCommit}
	}
	return at, head, nil
}

// one hands out the events of one commit; more is false when reading ends.
func (w *Watcher) one(r Revision, yield func(*Event) bool) (more bool, err error) {
	if err := w.ctx.Err(); err != nil {
		return false, err
	}
	c, err := w.s.tailer.commit(r)
	if CodeOf(err) == CodeRevisionGone {
		gone := w.s.errPositionGone("the log no longer holds what comes next")
		gone.Code = CodeResync
		return false, gone
	}
	if err != nil {
		return false, err
	}
	w.mu.Lock()
	from, closed := w.pos, w.closed
	w.idle = false
	w.mu.Unlock()
	if closed {
		return false, errClosed()
	}
	for i := range c.Changes {
		at := Position{w.s.dir.epoch, r, uint32(i)}
		if at.Compare(from) <= 0 {
			continue
		}
		if e := w.filter.see(w.s.options.Access, c, i); e != nil {
			e.Position = at
			if i == len(c.Changes)-1 {
				e.Position.Index = EndOfCommit
			}
			if !yield(e) {
				return false, nil
			}
			w.moveTo(e.Position)
		}
	}
	w.moveTo(Position{w.s.dir.epoch, r, EndOfCommit})
	return true, nil
}

func (w *Watcher) moveTo(p Position) {
	w.mu.Lock()
	w.pos = p
	w.mu.Unlock()
}

// see gives the event that the change is under the filter, nil if it is none.
func (f *Filter) see(access Access, c *Commit, i int) *Event {
	ch := &c.Changes[i]
	if !f.Pattern.Matches(ch.Quad) || !f.View.shows(ch.Quad.Graph) || !access.Allowed(f.View.Principal, ch.Quad.Graph, Read) {
		return nil
	}
	e := &Event{Commit: c}
	var seen bool
	if ch.Op == Add {
		seen = f.seeAdd(e, c, ch)
	} else {
		seen = f.seeRemove(e, c, ch)
	}
	if !seen || f.Ops != nil && !slices.Contains(f.Ops, e.Op) {
		return nil
	}
	return e
}

// shown tells whether the assertion is seen as one of the quad.
func (f *Filter) shown(q Quad, a Assertion) bool {
	return f.View.admits(a) && (f.Keep == nil || f.Keep(one(q, a)))
}

func one(q Quad, a Assertion) Statement { return Statement{Quad: q, Assertions: []Assertion{a}} }

// seeAdd: a new assertion is an add, one that took the place of its source's
// earlier one or of other statements a replace, and one that the view no longer
// admits a removal of the earlier.
func (f *Filter) seeAdd(e *Event, c *Commit, ch *Change) bool {
	old, had := findSource(ch.Before, ch.Assertion.Source)
	had = had && f.shown(ch.Quad, old)
	if !f.shown(ch.Quad, ch.Assertion) {
		if had {
			e.Op, e.Statement = Remove, one(ch.Quad, old)
			e.StatementRemains = f.remains(ch)
		}
		return had
	}
	e.Op, e.Statement = Add, one(ch.Quad, ch.Assertion)
	if had {
		e.Previous = append(e.Previous, one(ch.Quad, old))
	}
	for _, i := range ch.Replaces {
		gone := &c.Changes[i]
		if list := f.gone(gone); f.Pattern.Matches(gone.Quad) && len(list) > 0 {
			e.Previous = append(e.Previous, Statement{Quad: gone.Quad, Assertions: list})
		}
	}
	if len(e.Previous) > 0 {
		e.Op = Replace
	}
	return true
}

// seeRemove: what was withdrawn and had been seen. What a replace removed is
// shown with its add, if that is seen.
func (f *Filter) seeRemove(e *Event, c *Commit, ch *Change) bool {
	gone := f.gone(ch)
	if len(gone) == 0 {
		return false
	}
	if ch.ReplacedBy >= 0 {
		by := &c.Changes[ch.ReplacedBy]
		if f.Pattern.Matches(by.Quad) && f.shown(by.Quad, by.Assertion) {
			return false
		}
	}
	e.Op, e.Statement = Remove, one(ch.Quad, gone[0])
	e.StatementRemains = f.remains(ch)
	return true
}

// gone lists the assertions that a removal withdrew and that were seen.
func (f *Filter) gone(ch *Change) []Assertion {
	var list []Assertion
	for _, a := range ch.Before {
		if _, stays := findSource(ch.After, a.Source); !stays && f.shown(ch.Quad, a) {
			list = append(list, a)
		}
	}
	return list
}

// remains tells whether the statement is still seen after the change.
func (f *Filter) remains(ch *Change) bool {
	return slices.ContainsFunc(ch.After, func(a Assertion) bool { return f.shown(ch.Quad, a) })
}
