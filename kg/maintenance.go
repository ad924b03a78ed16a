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
