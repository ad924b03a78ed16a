package kg

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"koine/kg/internal/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// openLog opens the log. A damaged one is opened for reading, as far as that
// goes, and the store takes no updates.
func (s *Store) openLog() error {
	o := wal.Options{Files: s.options.logFiles, SegmentBytes: s.options.logSegmentBytes, Logger: s.log, ReadWhenFull: s.dir.New == nil}
	o.ReadOnly, o.Checked = s.options.ReadOnly, s.options.ReadOnly
	path := s.dir.Join(datadir.LogName)
	if s.options.ReadOnly && !datadir.Exists(path) {
		l, err := wal.Nothing() // as the one that an open for writing makes
		s.wal = l
		return err
	}
	l, err := wal.Open(path, o)
	if errors.Is(err, wal.ErrDamaged) {
		s.setReadOnly(base.ErrLogDamaged(err))
		o.ReadOnly, o.Checked = true, false
		if l, err = wal.Open(path, o); errors.Is(err, wal.ErrDamaged) {
			l, err = wal.Nothing()
		}
	}
	if err != nil {
		return base.ErrLog(err)
	}
	s.wal = l
	return nil
}

// readCommit decodes a commit from the log.
func (s *Store) readCommit(r Revision) (*Commit, error) {
	payload, err := s.wal.Read(uint64(r))
	if e := s.refused.Load(); errors.Is(err, wal.ErrNotFound) && e != nil && e.Code == CodeLogDamaged {
		return nil, e // it may be one of those that were lost
	}
	if errors.Is(err, wal.ErrNotFound) {
		return nil, Errorf(CodeRevisionGone, "revision %d is not in the log", r)
	}
	if err != nil {
		return nil, s.noteDamage(base.ErrLog(err))
	}
	c, err := logentry.ParseEntry(payload, r)
	return c, s.noteDamage(err)
}

// noteDamage refuses updates from now on when the error shows that the log is
// damaged: what is old is read only when somebody asks for it.
func (s *Store) noteDamage(err error) error {
	if CodeOf(err) == CodeLogDamaged {
		s.setReadOnly(AsError(err))
	}
	return err
}

// Commit is the commit of a revision with those changes that the principal may
// read; why it was made only if those are all, or to who made it. A commit of
// which it may read nothing is CodeNotFound; one without any
// change is shown to who made it and to who reads the system graph.
func (s *Store) Commit(ctx context.Context, p Principal, r Revision) (*Commit, error) {
	if err := s.admitRead(ctx, p, false); err != nil {
		return nil, err
	}
	p.Normalise()
	if r == 0 || r > s.head.Load().revision {
		return nil, errNoRevision(r)
	}
	c, err := s.readCommit(r)
	if err != nil {
		return nil, err
	}
	asked := lastAnswer{current: VersionOf(s.options.Access)}
	readable := func(graph Term) bool { return asked.mayRead(s.options.Access, &p, graph) }
	hides := Hidden(s.options.Access, p)
	replaced := c.Replaced
	if replaced != nil && (replaced.Deleted || !readable(replaced.Graph) || s.isDeletedAt(replaced.Graph, r)) {
		replaced = nil
	}
	if len(c.Changes) == 0 && replaced == nil && c.Principal != p.ID && !readable(SystemGraph) {
		return nil, errNoRevision(r) // nothing tells which graph it was about
	}
	forgets := base.Forgetful(s.options.Access, p)
	if replaced != nil {
		replaced = replaced.Shown(hides != nil || s.options.Distrust.Doubted() != nil || forgets != nil && forgets(replaced.Graph))
	}
	sees := func(q *Quad) bool {
		return readable(q.Graph) && !s.isDeletedAt(q.Graph, r) && (hides == nil || !hides(q.Predicate, q.Graph))
	}
	shown := *c.WithMotives(&p, sees, func(*GraphReplacement) bool { return replaced != nil && !replaced.Uncounted })
	shown.Replaced, shown.Written = replaced, nil
	c, err = visibleCommit(&shown, sees)
	if forgets != nil && err == nil {
		return s.withoutGone(c, forgets)
	}
	return c, err
}

func errNoRevision(r Revision) error { return Errorf(CodeNotFound, "there is no revision %d", r) }

// visibleCommit leaves out the changes of what may not be read. Indexes
// between changes are those of the log, so they keep their meaning only where
// nothing was left out; there they are dropped.
func visibleCommit(c *Commit, readable func(*Quad) bool) (*Commit, error) {
	whole := !slices.ContainsFunc(c.Changes, func(ch Change) bool { return !readable(&ch.Quad) })
	if whole {
		return c, nil
	}
	out := *c
	out.Changes, out.ContentHash = nil, [32]byte{} // a hash of the hidden part too
	for _, ch := range c.Changes {
		if readable(&ch.Quad) {
			ch.Replaces, ch.ReplacedBy = nil, -1
			out.Changes = append(out.Changes, ch)
		}
	}
	if len(out.Changes) == 0 {
		return nil, errNoRevision(c.Revision)
	}
	return &out, nil
}

// RevisionAt is the newest revision that was committed at or before t, 0 when
// the first came later. Times before the oldest log entry are
// CodeRevisionGone once the log's head was cut.
func (s *Store) RevisionAt(ctx context.Context, t time.Time) (Revision, error) {
	first, last := Revision(s.wal.First()), s.head.Load().revision
	if first == 0 || last == 0 {
		return 0, nil
	}
	lo, hi := first, last+1 // the first revision later than t is in [lo, hi]
	for lo < hi {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		mid := lo + (hi-lo)/2
		c, err := s.readCommit(mid)
		if err != nil {
			return 0, err
		}
		if c.Time.After(t) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == first && first > 1 {
		oldest := s.Oldest()
		e := Errorf(CodeRevisionGone, "the log begins after %s", t.UTC().Format(time.RFC3339))
		e.Hint, e.Oldest = "say a revision, or a later time", &oldest
		return 0, e
	}
	return lo - 1, nil
}

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
	filter *watchFilter
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
	seen, err := f.prepare(s)
	if err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, base.ErrClosed()
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
	return l.part.Until.Compare(l.part.After) <= 0 || l.reached == l.endPosition()
}

func (l *LogReader) endPosition() Position {
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
			more, err := l.readCommit(yield)
			if err != nil {
				yield(Event{}, err)
			}
			if !more || err != nil {
				return
			}
		}
	}
}

// readCommit looks at the next commit; more is false when the loop wants no more.
func (l *LogReader) readCommit(yield func(Event, error) bool) (more bool, err error) {
	if err := l.ctx.Err(); err != nil {
		return false, err
	}
	r := l.reached.Revision
	if !l.part.Backward && l.reached.Index == EndOfCommit {
		r++
	}
	c, err := l.s.recentCommits.commitAt(l.s, r)
	if CodeOf(err) == CodeRevisionGone {
		return false, l.s.errPositionGone("the log no longer holds what comes next")
	}
	if err != nil {
		return false, err
	}
	if l.part.Backward {
		more = l.readBackward(c, yield)
	} else {
		more = l.readForward(c, yield)
	}
	return more, l.filter.err
}

// readForward looks at the changes of a commit behind reached.
func (l *LogReader) readForward(c *Commit, yield func(Event, error) bool) (more bool) {
	if e := l.filter.seeReplaced(l.s.dir.Epoch, c); e != nil && e.Position.Compare(l.reached) > 0 && e.Position.Compare(l.part.Until) <= 0 {
		if !yield(*e, nil) {
			return false
		}
	}
	for i := range c.Changes {
		at := Position{l.s.dir.Epoch, c.Revision, uint32(i)}
		if at.Compare(l.reached) <= 0 {
			continue
		}
		if at.Compare(l.part.Until) > 0 {
			break
		}
		e := l.filter.eventOf(at.Epoch, c, i)
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
	l.reached = Position{l.s.dir.Epoch, c.Revision, EndOfCommit}
	if l.reached.Compare(l.part.Until) > 0 {
		l.reached = l.part.Until
	}
	return true
}

// readBackward looks at the changes of a commit up to reached, the last one first.
func (l *LogReader) readBackward(c *Commit, yield func(Event, error) bool) (more bool) {
	if e := l.filter.seeReplaced(l.s.dir.Epoch, c); e != nil && e.Position.Compare(l.reached) <= 0 && e.Position.Compare(l.part.After) > 0 {
		if !yield(*e, nil) {
			return false
		}
	}
	for i := len(c.Changes) - 1; i >= 0; i-- {
		at := Position{l.s.dir.Epoch, c.Revision, uint32(i)}
		if at.Compare(l.reached) > 0 {
			continue
		}
		if at.Compare(l.part.After) <= 0 {
			break
		}
		e := l.filter.eventOf(at.Epoch, c, i)
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
	l.reached = Position{l.s.dir.Epoch, c.Revision - 1, EndOfCommit}
	if l.reached.Compare(l.part.After) < 0 {
		l.reached = l.part.After
	}
	return true
}
