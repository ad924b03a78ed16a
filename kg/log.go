package kg

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"slices"
	"time"

	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// commitLog is the log as the store needs it: one entry for each revision, from First to Last
// without gaps, each with a hash that covers all entries before it. Reads are safe during
// appends. wal.Log implements it in files.
type commitLog interface {
	First() uint64 // lowest readable revision, 0 for none
	Last() uint64  // highest durable revision, 0 for none

	// AppendPrepared makes entries durable as the revisions from first on. After an error that
	// is errAppendLost or wal.ErrNoSpace nothing of them is in the log, nor will be: the store
	// discards them and goes on. After any other error their fate is unknown, and the store is
	// read-only until it is reopened.
	AppendPrepared(first uint64, entries []wal.Prepared) error
	LastHash() [sha256.Size]byte // of Last

	Read(revision uint64) (payload []byte, err error) // wal.ErrNotFound outside First … Last
	Entries(from, to uint64) iter.Seq2[wal.Entry, error]
	Frames(from, to uint64) iter.Seq2[wal.Frame, error] // as they are stored, for a backup
	Hash(revision uint64) ([sha256.Size]byte, error)
	Verify(ctx context.Context, progress func(done, total uint64)) error

	TruncateFront(before uint64) error // removes the entries before a revision
	UsedBytes() int64
	Close() error
}

// errAppendLost means that the log did not take an append, and never will.
var errAppendLost = errors.New("the append is lost")

// openLog opens the log. It opens a damaged one for reading, as far as possible; the store is
// then read-only.
func (s *Store) openLog() error {
	l, err := s.openLogFiles()
	if err != nil {
		return err
	}
	if !s.options.ReadOnly {
		if err := l.Stalled(); err != nil {
			s.log.Warn("the volume is too full to open the log for writing", "error", err)
		}
		if !l.Allocates() {
			s.log.Warn("the file system of the data directory cannot allocate blocks ahead: only the reserve of free space keeps a full volume from stopping updates", "reserve bytes", s.options.ReserveBytes)
		}
	}
	s.wal = l
	if s.options.wrapLog != nil {
		s.wal = s.options.wrapLog(l)
	}
	return nil
}

func (s *Store) openLogFiles() (*wal.Log, error) {
	o := wal.Options{Files: s.options.logFiles, SegmentBytes: s.options.logSegmentBytes, Logger: s.log, ReadWhenFull: s.dir.New == nil}
	o.ReadOnly, o.Checked = s.options.ReadOnly, s.options.ReadOnly
	path := s.dir.Join(datadir.LogName)
	if s.options.ReadOnly && !datadir.Exists(path) {
		return wal.Nothing() // an open for writing would create an empty one
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
		return nil, base.ErrLog(err)
	}
	return l, nil
}

// readCommit decodes a commit from the log.
func (s *Store) readCommit(r Revision) (*Commit, error) {
	payload, err := s.wal.Read(uint64(r))
	if e := s.refused.Load(); errors.Is(err, wal.ErrNotFound) && e != nil && e.Code == CodeLogDamaged {
		return nil, e // it may be one of the lost ones
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

// noteDamage makes the store read-only if the error shows that the log is damaged. Old entries
// are read on demand only, so damage may appear late.
func (s *Store) noteDamage(err error) error {
	if CodeOf(err) == CodeLogDamaged {
		s.setReadOnly(AsError(err))
	}
	return err
}

// Commit returns the commit of a revision with the changes that the principal may read. The
// justification is included if those are all changes, or if the principal made the commit. A
// commit with no readable change is CodeNotFound. One without any change is visible to the
// principal that made it and to readers of the system graph.
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
		return nil, errNoRevision(r) // its graph is unknown
	}
	forgets := base.Forgetful(s.options.Access, p)
	if replaced != nil {
		replaced = replaced.Redacted(hides != nil || s.options.Distrust.Doubted() != nil || forgets != nil && forgets(replaced.Graph))
	}
	sees := func(q *Quad) bool {
		return readable(q.Graph) && !s.isDeletedAt(q.Graph, r) && (hides == nil || !hides(q.Predicate, q.Graph))
	}
	shown := *c.WithMotives(&p, sees, func(*GraphReplacement) bool { return replaced != nil && !replaced.Uncounted })
	shown.Replaced, shown.Written = replaced, nil
	c, err = visibleCommit(&shown, sees)
	if forgets != nil && err == nil {
		return s.withoutHiddenPast(c, forgets)
	}
	return c, err
}

func errNoRevision(r Revision) error { return Errorf(CodeNotFound, "there is no revision %d", r) }

// visibleCommit removes the changes that are not readable. Indexes between changes are those
// of the log: if changes were removed they mean nothing, and are dropped.
func visibleCommit(c *Commit, readable func(*Quad) bool) (*Commit, error) {
	whole := !slices.ContainsFunc(c.Changes, func(ch Change) bool { return !readable(&ch.Quad) })
	if whole {
		return c, nil
	}
	out := *c
	out.Changes, out.ContentHash = nil, [32]byte{} // the hash covers the hidden changes too
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

// revisionAt returns the newest revision committed at or before t, 0 if the first one came
// later. If the log was cut, a time before its oldest entry is CodeRevisionGone.
func (s *Store) revisionAt(ctx context.Context, t time.Time) (Revision, error) {
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

// DefaultLogCommits is the default of LogRange.Commits.
const DefaultLogCommits = 10_000

// LogRange is a part of the log: the changes after the position After, up to the position
// Until.
type LogRange struct {
	After, Until Position
	// Backward reads the newest first.
	Backward bool
	// Commits bounds the commits examined; 0 is DefaultLogCommits.
	Commits int
}

// LogReader reads a part of the log under a filter and does not wait for more. It belongs to
// one goroutine and need not be closed.
type LogReader struct {
	s      *Store
	ctx    context.Context
	filter *watchFilter
	part   LogRange
	// reached is the end of the part examined: it moves from After to Until, or backward the
	// other way.
	reached Position
}

// ReadLog returns a reader for a part of the log. Its events are those of a watcher with the
// same filter, and the newest policies decide their visibility. It fails with CodePositionGone
// if the log no longer has the commits after After, or if a position belongs to another log or
// lies ahead.
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

// Reached returns the end of the part examined. Reading continues with it as After, or as
// Until when reading backward. An event counts as read when the loop over Events asks for the
// next.
func (l *LogReader) Reached() Position { return l.reached }

// Done reports whether the whole part was examined.
func (l *LogReader) Done() bool {
	return l.part.Until.Compare(l.part.After) <= 0 || l.reached == l.endPosition()
}

func (l *LogReader) endPosition() Position {
	if l.part.Backward {
		return l.part.After
	}
	return l.part.Until
}

// Events yields the events of the part in the order of the log, or backward. It ends after the
// part, or after LogRange.Commits commits: see Done. It also ends with an error: the
// context's, or CodePositionGone if the log was cut meanwhile. Use it once.
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

// readCommit examines the next commit. It returns false when the loop ends.
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

// readForward yields the events of a commit after reached.
func (l *LogReader) readForward(c *Commit, yield func(Event, error) bool) (more bool) {
	if e := l.filter.replacementEvent(l.s.dir.Epoch, c); e != nil && e.Position.Compare(l.reached) > 0 && e.Position.Compare(l.part.Until) <= 0 {
		if !yield(*e, nil) {
			return false
		}
	}
	for i := range c.Changes {
		at := Position{Epoch: l.s.dir.Epoch, Revision: c.Revision, Index: uint32(i)}
		if at.Compare(l.reached) <= 0 {
			continue
		}
		if at.Compare(l.part.Until) > 0 {
			break
		}
		event := l.filter.eventOf(at.Epoch, c, i)
		if l.filter.err != nil {
			return false
		}
		if len(event) > 0 {
			if !yield(event[0], nil) {
				return false
			}
			l.reached = at
		}
	}
	l.reached = Position{Epoch: l.s.dir.Epoch, Revision: c.Revision, Index: EndOfCommit}
	if l.reached.Compare(l.part.Until) > 0 {
		l.reached = l.part.Until
	}
	return true
}

// readBackward yields the events of a commit up to reached, the last one first.
func (l *LogReader) readBackward(c *Commit, yield func(Event, error) bool) (more bool) {
	if e := l.filter.replacementEvent(l.s.dir.Epoch, c); e != nil && e.Position.Compare(l.reached) <= 0 && e.Position.Compare(l.part.After) > 0 {
		if !yield(*e, nil) {
			return false
		}
	}
	for i := len(c.Changes) - 1; i >= 0; i-- {
		at := Position{Epoch: l.s.dir.Epoch, Revision: c.Revision, Index: uint32(i)}
		if at.Compare(l.reached) > 0 {
			continue
		}
		if at.Compare(l.part.After) <= 0 {
			break
		}
		event := l.filter.eventOf(at.Epoch, c, i)
		if l.filter.err != nil {
			return false
		}
		if len(event) > 0 {
			if !yield(event[0], nil) {
				return false
			}
			l.reached = event[0].Start()
		}
	}
	l.reached = Position{Epoch: l.s.dir.Epoch, Revision: c.Revision - 1, Index: EndOfCommit}
	if l.reached.Compare(l.part.After) < 0 {
		l.reached = l.part.After
	}
	return true
}
