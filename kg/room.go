package kg

import (
	"errors"
	"syscall"
	"time"

	"koine/kg/internal/wal"
)

// A full volume is no fault of the store: it goes on to be read, and takes updates again
// when there is room. Three things keep it from failing.
//
//   - Updates are refused below a reserve of free space, but for the entry by which what an
//     unfinished replacement wrote is given up: it is small, and lets that be removed.
//   - The log allocates what an append needs before it writes anything of it, so that a
//     group for which there is no room is refused as a whole.
//   - The index writes to memory and makes tables of that in the background. A table for
//     which there is no room is tried again; until then its keys stay in memory, and the
//     log has them.

// isNoSpace tells that something failed because the volume, or the share of it that the
// process may have, is full.
func isNoSpace(err error) bool {
	return errors.Is(err, wal.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// writable refuses a group before anything is done for it.
func (s *Store) writable() error { return s.writableWith(0) }

// writableWith is writable for something that takes so much of the index by itself.
func (s *Store) writableWith(indexBytes uint64) error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	if s.unindexed.Load() != nil {
		s.indexLoad()
		return errUnindexed() // the group was made before
	}
	if err := s.hasRoom(indexBytes); err != nil {
		return err
	}
	if s.layers.stuck {
		s.flushIfAny() // there is room again
		return s.errDiskFull()
	}
	return nil
}

// freeingBytes is how much of the reserve has to be left for an update that frees space. It
// is far more than such an update writes.
const freeingBytes = 4 << 20

// mayUseReserve reports whether only the reserve of free space keeps updates from being
// made, and has room for one that frees space.
func (s *Store) mayUseReserve() bool {
	free, err := s.options.FreeBytes(s.dir.path)
	return err == nil && free >= freeingBytes && s.refused.Load() == nil && s.unindexed.Load() == nil && !s.layers.stuck
}

// hasRoom is CodeDiskFull unless there are so many bytes beside the reserve.
func (s *Store) hasRoom(bytes uint64) error {
	free, err := s.options.FreeBytes(s.dir.path)
	if err != nil {
		return Errorf(CodeInternal, "free space: %w", err)
	}
	full := free < s.options.ReserveBytes
	if s.diskFull.Swap(full) != full {
		s.sayRoom(full, free)
	}
	if free < s.options.ReserveBytes+bytes {
		return s.errDiskFull()
	}
	return nil
}

func (s *Store) sayRoom(full bool, free uint64) {
	what := "the volume of the data directory has room again: updates are taken"
	if full {
		what = "the volume of the data directory is full: updates are refused, reads go on"
	}
	s.log.Warn(what, "free bytes", free, "reserve bytes", s.options.ReserveBytes)
}

// noRoom refuses a group for which the log had no room. Nothing of it was written, and
// what was noted of it while it was executed is forgotten.
func (s *Store) noRoom(g *group, err error) {
	s.met = metTerms{}
	s.recently.forget(s.head.Load().revision)
	s.log.Warn("updates are refused: the log has no room for them", "updates", len(g.updates), "error", err)
	for _, u := range g.updates {
		if u.err == nil {
			u.receipt, u.err = Receipt{}, s.errDiskFull()
		}
	}
}

// refusal is why updates cannot be made after a group has failed.
func (s *Store) refusal() error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	return s.errDiskFull()
}

func (s *Store) errDiskFull() *Error {
	e := Errorf(CodeDiskFull, "the volume of the data directory has less than %d MiB free: no updates are taken, reads go on", s.options.ReserveBytes>>20)
	e.RetryAfter = time.Minute
	return e
}
