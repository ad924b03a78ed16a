package kg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"koine/kg/internal/wal"
)

// openLog opens the log. A damaged one is opened for reading, as far as that
// goes, and the store takes no updates.
func (s *Store) openLog() error {
	o := wal.Options{Files: s.options.logFiles, SegmentBytes: s.options.logSegmentBytes, Logger: s.log, ReadWhenFull: s.dir.new == nil}
	o.ReadOnly, o.Checked = s.options.ReadOnly, s.options.ReadOnly
	path := s.dir.join(logName)
	if s.options.ReadOnly && !exists(path) {
		l, err := wal.Nothing() // as the one that an open for writing makes
		s.wal = l
		return err
	}
	l, err := wal.Open(path, o)
	if errors.Is(err, wal.ErrDamaged) {
		s.refuse(errLogDamaged(err))
		o.ReadOnly, o.Checked = true, false
		if l, err = wal.Open(path, o); errors.Is(err, wal.ErrDamaged) {
			l, err = wal.Nothing()
		}
	}
	if err != nil {
		return errLog(err)
	}
	s.wal = l
	return nil
}

// errLog gives what the log reports a code.
func errLog(err error) error {
	switch {
	case errors.Is(err, wal.ErrVersion):
		return Errorf(CodeFormatUnknown, "the log was written by a newer koine: %w", err)
	case errors.Is(err, wal.ErrDamaged):
		return errLogDamaged(err)
	case errors.Is(err, wal.ErrClosed):
		return errClosed()
	}
	return fmt.Errorf("the log: %w", err)
}

// errLogDamaged tells where the damage is. What the system said of a file stays out of
// the message, which goes to whoever asks.
func errLogDamaged(cause error) *Error {
	e := Errorf(CodeLogDamaged, "the log is damaged")
	var d *wal.DamageError
	var file *fs.PathError
	switch {
	case errors.As(cause, &d):
		e = Errorf(CodeLogDamaged, "the log is damaged at entry %d: %s", d.Index, d.Detail)
		if d.Index == 0 {
			e = Errorf(CodeLogDamaged, "the log is damaged: %s", d.Detail)
		}
	case !errors.As(cause, &file):
		e = Errorf(CodeLogDamaged, "the log is damaged: %v", cause)
	}
	e.Err = cause
	e.Hint = "updates are refused so that no revision is used twice; restore a backup, or export what can be read and load it into a new directory"
	return e
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
		return nil, s.noteDamage(errLog(err))
	}
	c, err := parseEntry(payload, r)
	return c, s.noteDamage(err)
}

// noteDamage refuses updates from now on when the error shows that the log is
// damaged: what is old is read only when somebody asks for it.
func (s *Store) noteDamage(err error) error {
	if CodeOf(err) == CodeLogDamaged {
		s.refuse(AsError(err))
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
	p.normalise()
	if r == 0 || r > s.head.Load().revision {
		return nil, errNoRevision(r)
	}
	c, err := s.readCommit(r)
	if err != nil {
		return nil, err
	}
	asked := graphAnswer{of: VersionOf(s.options.Access)}
	readable := func(graph Term) bool { return asked.may(s.options.Access, &p, graph) }
	hides := Hidden(s.options.Access, p)
	replaced := c.Replaced
	if replaced != nil && (replaced.Deleted || !readable(replaced.Graph) || s.buried(replaced.Graph, r)) {
		replaced = nil
	}
	if len(c.Changes) == 0 && replaced == nil && c.Principal != p.ID && !readable(SystemGraph) {
		return nil, errNoRevision(r) // nothing tells which graph it was about
	}
	forgets := forgetful(s.options.Access, p)
	if replaced != nil {
		replaced = replaced.shown(hides != nil || s.options.Distrust.Doubted() != nil || forgets != nil && forgets(replaced.Graph))
	}
	sees := func(q *Quad) bool {
		return readable(q.Graph) && !s.buried(q.Graph, r) && (hides == nil || !hides(q.Predicate, q.Graph))
	}
	shown := *c.withMotives(&p, sees, func(*GraphReplacement) bool { return replaced != nil && !replaced.Uncounted })
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
