package kg

import (
	"context"
	"iter"
)

// DefaultLogCommits is how many commits a reading of the log looks at where its
// range does not say.
const DefaultLogCommits = 10_000

// LogRange is a part of the log: the changes behind After, up to and including
// the one that Until is behind.
type LogRange struct {
	After, Until Position
	// Backward reads the newest first.
	Backward bool
	// Commits bounds how many are looked at; 0 stands for DefaultLogCommits.
	Commits int
}

// LogReader reads a part of the log under a filter, without waiting for more.
// It belongs to one goroutine and holds nothing that must be closed.
type LogReader struct {
	s      *Store
	ctx    context.Context
	filter *sight
	part   LogRange
	// reached is the end of what was looked at: forward it goes from After to
	// Until, backward the other way.
	reached Position
}

// ReadLog begins a reading of the log. An event means what it means to a
// watcher with the same filter, and the newest policy decides what is seen. It
// fails with CodePositionGone when the log no longer holds what is behind After,
// or a position is of another log or ahead of it.
func (s *Store) ReadLog(ctx context.Context, f Filter, part LogRange) (*LogReader, error) {
	if err := s.admitRead(ctx, f.View.Principal, false); err != nil {
		return nil, err
	}
	seen, err := f.ready(s)
	if err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, errClosed()
	}
	for _, p := range [...]Position{part.After, part.Until} {
		if err := s.CheckPosition(p); err != nil {
			return nil, err
		}
	}
	setDefault(&part.Commits, DefaultLogCommits)
	l := &LogReader{s: s, ctx: ctx, filter: seen, part: part, reached: part.After}
	if part.Backward {
		l.reached = part.Until
	}
	return l, nil
}

// Reached is up to where the part has been looked at. Put in the place of After,
// or of Until when reading backward, it leads to the rest. An event counts as
// read when the loop over Events asks for the next.
func (l *LogReader) Reached() Position { return l.reached }

// Done tells that the whole part has been looked at.
func (l *LogReader) Done() bool {
	return l.part.Until.Compare(l.part.After) <= 0 || l.reached == l.end()
}

func (l *LogReader) end() Position {
	if l.part.Backward {
		return l.part.After
	}
	return l.part.Until
}

// Events yields the events of the part, in order or, backward, the newest
// first. It ends at the end of the part or after as many commits as it may look
// at: see Done. An error ends it too: the context's, or CodePositionGone when
// the log was cut meanwhile. It is used once.
func (l *LogReader) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for range l.part.Commits {
			if l.Done() {
				return
			}
			more, err := l.commit(yield)
			if err != nil {
				yield(Event{}, err)
			}
			if !more || err != nil {
				return
			}
		}
	}
}

// commit looks at the next commit; more is false when the loop wants no more.
func (l *LogReader) commit(yield func(Event, error) bool) (more bool, err error) {
	if err := l.ctx.Err(); err != nil {
		return false, err
	}
	r := l.reached.Revision
	if !l.part.Backward && l.reached.Index == EndOfCommit {
		r++
	}
	c, err := l.s.lately.commit(l.s, r)
	if CodeOf(err) == CodeRevisionGone {
		return false, l.s.errPositionGone("the log no longer holds what comes next")
	}
	if err != nil {
		return false, err
	}
	if l.part.Backward {
		more = l.backward(c, yield)
	} else {
		more = l.forward(c, yield)
	}
	return more, l.filter.err
}

// forward looks at the changes of a commit behind reached.
func (l *LogReader) forward(c *Commit, yield func(Event, error) bool) (more bool) {
	if e := l.filter.seeReplaced(l.s.dir.epoch, c); e != nil && e.Position.Compare(l.reached) > 0 && e.Position.Compare(l.part.Until) <= 0 {
		if !yield(*e, nil) {
			return false
		}
	}
	for i := range c.Changes {
		at := Position{l.s.dir.epoch, c.Revision, uint32(i)}
		if at.Compare(l.reached) <= 0 {
			continue
		}
		if at.Compare(l.part.Until) > 0 {
			break
		}
		e := l.filter.see(at.Epoch, c, i)
		if l.filter.err != nil {
			return false
		}
		if e != nil {
			if !yield(*e, nil) {
				return false
			}
			l.reached = at
		}
	}
	l.reached = Position{l.s.dir.epoch, c.Revision, EndOfCommit}
	if l.reached.Compare(l.part.Until) > 0 {
		l.reached = l.part.Until
	}
	return true
}

// backward looks at the changes of a commit up to reached, the last one first.
func (l *LogReader) backward(c *Commit, yield func(Event, error) bool) (more bool) {
	if e := l.filter.seeReplaced(l.s.dir.epoch, c); e != nil && e.Position.Compare(l.reached) <= 0 && e.Position.Compare(l.part.After) > 0 {
		if !yield(*e, nil) {
			return false
		}
	}
	for i := len(c.Changes) - 1; i >= 0; i-- {
		at := Position{l.s.dir.epoch, c.Revision, uint32(i)}
		if at.Compare(l.reached) > 0 {
			continue
		}
		if at.Compare(l.part.After) <= 0 {
			break
		}
		e := l.filter.see(at.Epoch, c, i)
		if l.filter.err != nil {
			return false
		}
		if e != nil {
			if !yield(*e, nil) {
				return false
			}
			l.reached = e.Start()
		}
	}
	l.reached = Position{l.s.dir.epoch, c.Revision - 1, EndOfCommit}
	if l.reached.Compare(l.part.After) < 0 {
		l.reached = l.part.After
	}
	return true
}
