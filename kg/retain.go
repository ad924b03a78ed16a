package kg

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"koine/kg/base"
	"koine/kg/internal/bulkindex"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// Bounds of the history option.
const (
	// MinHistory is the smallest Options.History, if it is set.
	MinHistory = time.Minute
	// MinKeyTime is the shortest time for which an idempotency key is remembered.
	MinKeyTime = 7 * 24 * time.Hour
	// retainPart is the fraction of the history's length between two rounds, within
	// minRetainTime and maxRetainTime.
	retainPart    = 30
	minRetainTime = time.Minute
	maxRetainTime = 24 * time.Hour
	// pruneStep is the number of past intervals, or idempotency keys, removed between two
	// groups of the committer.
	pruneStep = 256
	// quietPatience bounds how long a step waits for a moment without updates. A step takes some
	// milliseconds: of a store that is always busy it removes more than twice a thousand
	// intervals a second.
	quietPatience = 100 * time.Millisecond
	// readersPatience bounds how long a round waits for readers of the revisions that it
	// removes.
	readersPatience = time.Minute
)

// RetainReport is the result of a round of retention.
type RetainReport struct {
	Oldest    Revision // oldest readable revision from now on; 0 if all are
	Intervals uint64   // past intervals removed
	Keys      uint64   // idempotency keys removed
	Cut       bool     // the log was cut
	// LongestHold is the longest time for which updates waited for a step of the round, or of
	// another purge beside it.
	LongestHold time.Duration
	// Waits is how long the clock's time is not trusted yet: it went ahead of the elapsed
	// time.
	Waits time.Duration
}

// Retain removes history older than Options.History; without that option it does nothing. The
// store calls it from time to time. First the old revisions become unreadable for good. Then
// statements that ended before leave the index, in small steps between updates. Then a
// checkpoint is written and the log is cut. The next round continues an interrupted one.
func (m Maintenance) Retain(ctx context.Context) (r RetainReport, err error) {
	s := m.s
	s.retaining.Lock()
	defer s.retaining.Unlock()
	r = RetainReport{Oldest: s.oldestReadable()}
	if s.options.History == 0 {
		return r, nil
	}
	s.longestHold.Store(0)
	defer func() { r.LongestHold = time.Duration(s.longestHold.Load()) }()
	if e := s.refusedFor(); e != nil {
		return r, e
	}
	now, waits := s.steady.now()
	r.Waits = waits
	if err := s.raiseFloor(ctx, now); err != nil {
		return r, err
	}
	r.Oldest = s.oldestReadable()
	s.afterRetain("floor")
	if r.Intervals, err = s.prunePast(ctx, r.Oldest); err != nil {
		return r, err
	}
	if err := s.clearGenerations(ctx, r.Oldest); err != nil {
		return r, err
	}
	if err := s.purgeGenerations(ctx); err != nil {
		return r, err
	}
	s.afterRetain("past")
	if r.Keys, err = s.pruneKeys(ctx, now); err != nil {
		return r, err
	}
	s.afterRetain("keys")
	r.Cut, err = s.cutBehind(ctx, r.Oldest)
	s.afterRetain("cut")
	return r, err
}

func (s *Store) afterRetain(part string) {
	if s.options.afterRetain != nil {
		s.options.afterRetain(part)
	}
}

// raiseFloor makes the newest revision older than the history the oldest readable one, and
// waits for readers of earlier revisions.
func (s *Store) raiseFloor(ctx context.Context, now time.Time) error {
	floor, err := s.revisionAt(ctx, now.Add(-s.options.History))
	if CodeOf(err) == CodeRevisionGone {
		floor, err = s.oldestReadable(), nil // the log begins later
	}
	if err != nil {
		return err
	}
	if floor > s.oldestReadable() {
		// On disk first: a revision with pruned content must never become readable again.
		if err := datadir.WriteHistory(s.dir.Join(datadir.HistoryName), floor); err != nil {
			return err
		}
		s.oldest.Store(uint64(floor))
		s.log.Info("oldest readable revision raised", "oldest revision", floor)
	}
	return s.awaitReaders(ctx, s.oldestReadable())
}

// awaitReaders waits until no snapshot reads a revision before the floor.
func (s *Store) awaitReaders(ctx context.Context, floor Revision) error {
	ctx, cancel := context.WithTimeout(ctx, readersPatience)
	defer cancel()
	for {
		s.mu.Lock()
		oldest, _, reading := s.reads.Min()
		left := s.readsLeft
		s.mu.Unlock()
		if !reading || oldest >= floor {
			return nil
		}
		select {
		case <-left:
		case <-s.stop:
			return base.ErrClosed()
		case <-ctx.Done():
			return Errorf(CodeTimeout, "revision %d is still being read: older history is removed in the next round", oldest)
		}
	}
}

// holdRevision notes that a snapshot reads a past revision until done is called.
func (s *Store) holdRevision(r Revision) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.reads.Get(r)
	s.reads.Set(r, n+1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n, _ := s.reads.Get(r); n > 1 {
			s.reads.Set(r, n-1)
			return
		}
		s.reads.Delete(r)
		close(s.readsLeft)
		s.readsLeft = make(chan struct{})
	}
}

// prunePast removes the past intervals that ended by the floor from the index.
func (s *Store) prunePast(ctx context.Context, floor Revision) (n uint64, err error) {
	if floor == 0 {
		return 0, nil
	}
	return s.pruneWhere(ctx, []byte{byte(keys.SPOG.Past())}, func(key, _ []byte, gone func(bulkindex.KeyValue)) bool {
		q, ok := keys.SPOG.Past().Parse(key)
		from, to, inOrder := keys.Interval(key)
		if !ok || !inOrder || to > uint64(floor) {
			return false
		}
		for _, o := range keys.Orders {
			if o.Holds(q) {
				gone(bulkindex.KeyValue{Key: o.AppendPast(nil, q, from, to)})
			}
		}
		return true
	})
}

// pruneKeys removes expired idempotency keys.
func (s *Store) pruneKeys(ctx context.Context, now time.Time) (n uint64, err error) {
	oldest := s.oldestKey(now)
	return s.pruneWhere(ctx, keys.IdempotencyPrefix(), func(key, value []byte, gone func(bulkindex.KeyValue)) bool {
		row, err := index.ParseIdempotencyRow(value)
		if err != nil || row.Millis >= oldest {
			return false
		}
		gone(bulkindex.KeyValue{Key: bytes.Clone(key), Value: bytes.Clone(value)})
		return true
	})
}

// oldestKey returns the time in milliseconds before which idempotency keys have expired.
// Updates decide by it and the times in the log alone; the removal of the row from the index
// has no effect on them.
func (s *Store) oldestKey(now time.Time) int64 {
	if s.options.History == 0 {
		return -1 << 63
	}
	return now.Add(-max(MinKeyTime, s.options.History)).UnixMilli()
}

// pruneWhere scans the keys of a prefix in a snapshot and deletes, step by step, those that
// old passes to gone.
func (s *Store) pruneWhere(ctx context.Context, prefix []byte, old func(key, value []byte, gone func(bulkindex.KeyValue)) bool) (n uint64, err error) {
	p, err := s.pin(ctx)
	if err != nil {
		return 0, err
	}
	defer s.unpin(p)
	c := p.kv.Scan(prefix)
	defer c.Close()
	var step []bulkindex.KeyValue
	rows, steps := 0, 0
	gone := func(k bulkindex.KeyValue) { step = append(step, k) }
	for ; c.Valid(); c.Next() {
		var taken bool
		if err := c.Value(func(v []byte) error { taken = old(c.Key(), v, gone); return nil }); err != nil {
			return n, err
		}
		if taken {
			n, rows = n+1, rows+1
		}
		if rows == pruneStep {
			if err := s.deleteKeys(ctx, step); err != nil {
				return n, err
			}
			step, rows = nil, 0
		}
		if steps++; steps%index.PaceInterval == 0 {
			if err := s.yieldAndCheck(ctx); err != nil {
				return n, err
			}
		}
	}
	return n, s.deleteKeys(ctx, step)
}

// yieldAndCheck yields the processor and returns an error if the work should end.
func (s *Store) yieldAndCheck(ctx context.Context) error {
	if s.isStopping() {
		return base.ErrClosed()
	}
	runtime.Gosched()
	return ctx.Err()
}

// deleteKeys deletes keys from the index between two groups of the committer, and at a moment
// without updates if one comes soon.
func (s *Store) deleteKeys(ctx context.Context, step []bulkindex.KeyValue) error {
	if len(step) == 0 {
		return nil
	}
	if err := s.awaitQuiet(ctx); err != nil {
		return err
	}
	defer s.afterRetain("step")
	return s.runBetween(ctx, func() error { return s.deleteNow(step) })
}

// deleteNow deletes keys in the layer that commits write to. A key with a value is deleted
// only if it still has that value. Only the committer calls it.
func (s *Store) deleteNow(step []bulkindex.KeyValue) error {
	if e := s.refusedFor(); e != nil {
		return e
	}
	if s.unindexed.Load() != nil {
		return errUnindexed() // the whole index is about to be made anew
	}
	base := s.newKV(s.layers.flushed)
	defer base.Close()
	o := index.NewOverlay(s.layers.newKV(base, s.layers.mem))
	for _, k := range step {
		same := k.Value == nil
		if !same {
			_, err := o.Get(k.Key, func(v []byte) error { same = bytes.Equal(v, k.Value); return nil })
			if err != nil {
				return err
			}
		}
		if same {
			o.Delete(string(k.Key))
		}
	}
	s.mu.Lock()
	s.layers.memBytes += o.MergeInto(s.layers.mem)
	s.layers.shared = nil
	s.mu.Unlock()
	s.flushIfFull()
	return nil
}

// awaitQuiet waits for a moment without updates, not for long.
func (s *Store) awaitQuiet(ctx context.Context) error {
	const look = 10 * time.Millisecond
	for waited := time.Duration(0); len(s.queue) > 0 && waited < quietPatience; waited += look {
		timer := time.NewTimer(look)
		select {
		case <-timer.C:
		case <-s.stop:
			timer.Stop()
			return base.ErrClosed()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// cutBehind cuts the log at the oldest readable revision and removes the checkpoints from
// before the pruning.
func (s *Store) cutBehind(ctx context.Context, floor Revision) (bool, error) {
	if floor == 0 {
		return false, nil
	}
	first := Revision(s.wal.First())
	before := min(floor+1, s.head.Load().revision) // the last entry always stays
	if before > first {
		if err := s.Maintenance().CutLog(ctx, before); err != nil {
			return false, err
		}
	}
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	return Revision(s.wal.First()) > first, s.dropCheckpointsBut(1)
}

// retainLoop runs Retain from time to time.
func (s *Store) retainLoop(ctx context.Context) error {
	every, first := min(max(s.options.History/retainPart, minRetainTime), maxRetainTime), minRetainTime
	if e := s.options.retainEvery; e > 0 {
		every, first = e, e
	}
	timer := time.NewTimer(first) // soon, to continue an interrupted round
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			next := every
			r, err := s.Maintenance().Retain(ctx)
			if r.Waits > 0 && s.options.retainEvery == 0 {
				next = max(min(every, r.Waits), minRetainTime)
			}
			if err != nil && !s.isStopping() {
				s.log.Warn("old history could not be removed", "error", err)
			} else if r.Cut || r.Intervals > 0 || r.Keys > 0 {
				s.log.Info("removed old history", "oldest revision", r.Oldest, "intervals", r.Intervals, "idempotency keys", r.Keys, "log cut", r.Cut, "longest hold", r.LongestHold)
			}
			timer.Reset(next)
		case <-ctx.Done():
			return nil
		}
	}
}

// Bounds of the trust in a clock.
const (
	// ClockTolerance is how far a clock may go ahead of the elapsed time between two readings
	// and be trusted at once, plus a thousandth of that time.
	ClockTolerance = time.Minute
	// MaxClockSettle is how long a clock that went further ahead must run regularly before it
	// is trusted, or the length of the history if that is shorter.
	MaxClockSettle = time.Hour
)

// steadyClock tells a time that is not ahead of the true one, so that content removed for its
// age is really that old. The system clock may jump; the time since the process began does
// not. If the clock goes ahead of that, or is ahead of the newest commit on opening, the
// earlier time continues until the clock has run regularly for a while: an operator or a time
// server can set it right meanwhile. A clock that goes back is trusted.
type steadyClock struct {
	clock  func() time.Time
	uptime func() time.Duration
	settle time.Duration
	log    *slog.Logger

	mu sync.Mutex
	// The time at the beginning of the process: as trusted, and as computed from the clock's
	// last reading, which has been consistent since the time since.
	believed time.Time
	said     time.Time
	since    time.Duration
	looked   time.Duration
}

// newSteadyClock starts at the time of the newest commit.
func newSteadyClock(o *Options, newest *head) *steadyClock {
	c := &steadyClock{clock: o.Clock, uptime: o.Uptime, settle: min(o.History, MaxClockSettle), log: o.Logger}
	up := c.uptime()
	c.said = c.clock().Round(0).Add(-up) // Round strips the monotonic reading
	c.since, c.looked = up, up
	c.believed = newest.time.Add(-up)
	if ahead := c.said.Sub(c.believed); newest.revision == 0 || ahead <= ClockTolerance {
		c.believed = c.said
	} else {
		c.log.Warn("the clock is ahead of the newest commit: retention uses the time of that commit until the clock has run regularly for a while",
			"ahead", ahead.Round(time.Second), "for", c.settle)
	}
	return c
}

// now returns the trusted time, and how long the clock's time is not trusted yet.
func (c *steadyClock) now() (t time.Time, waits time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := c.uptime()
	said := c.clock().Round(0).Add(-up)
	if jump := said.Sub(c.said); jump.Abs() > ClockTolerance+(up-c.looked)/1000 {
		c.since = up
		if jump > 0 {
			c.log.Warn("the clock jumped ahead: retention ignores the jump until the clock has run regularly for a while",
				"ahead", jump.Round(time.Second), "for", c.settle)
		}
	}
	c.said, c.looked = said, up
	waits = c.settle - (up - c.since)
	if waits <= 0 || said.Sub(c.believed) <= ClockTolerance {
		c.believed, waits = said, 0
	}
	return c.believed.Add(up), waits
}

// oldestReadable returns the oldest readable revision, 0 if all are.
func (s *Store) oldestReadable() Revision { return Revision(s.oldest.Load()) }
