package kg

import "koine/kg/base"

// Maintenance is the upkeep of an open store: checks, checkpoints, backups and retention. Repair,
// Erase and Restore are for a closed one.
type Maintenance struct{ s *Store }

// Maintenance returns the store's maintenance.
func (s *Store) Maintenance() Maintenance { return Maintenance{s} }

// Sound returns an error if the store is closed or damaged, or failed to write. Unlike Ready
// it ignores a full volume and Options.ReadOnly.
func (m Maintenance) Sound() error {
	s := m.s
	if s.isClosed() {
		return base.ErrClosed()
	}
	if e := s.refused.Load(); e != nil && e.Code != CodeDiskFull {
		return e
	}
	return nil
}

// ReleasePages gives pages of the index's files back to the system. They stay in its page cache,
// and come back when they are read.
func (m Maintenance) ReleasePages() { m.s.db.ReleasePages() }

// ReleaseCaches empties the caches of blocks, of the indexes of files, of runs and of terms, and most
// of the newest commits that are kept for watchers. It must not run beside itself or Close.
func (m Maintenance) ReleaseCaches() {
	m.s.db.ClearBlockCache()
	m.s.db.ReleaseIndexes()
	m.s.cache.Clear()
	m.s.runs.clear()
	m.s.tailer.shrinkRing()
	m.s.recentCommits.clear()
}
