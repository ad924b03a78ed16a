package kg

import (
	"time"

	"koine/kg/internal/keys"
)

// Stats is the store in numbers.
type Stats struct {
	Revision     Revision
	Time         time.Time // of the newest commit
	Statements   uint64    // in all graphs
	Terms        uint64    // in the dictionary
	LogBytes     int64
	IndexBytes   int64
	QueueLength  int
	Watchers     int
	Snapshots    int
	CacheHits    uint64
	CacheMisses  uint64
	OldestInLog  Revision
	ReplayedOpen uint64 // commits applied again when the store was opened
}

// Stats gives the numbers of the moment. They are of the whole store, for its
// operator: not for callers who may not see all of it.
func (s *Store) Stats() Stats {
	h := s.head.Load()
	st := Stats{
		Revision: h.revision, Time: h.time, Terms: h.nextNumber - 1,
		QueueLength: len(s.queue), Watchers: s.tailer.watchers(),
		CacheHits: s.cache.hits.read(), CacheMisses: s.cache.misses.read(),
		OldestInLog: Revision(s.wal.First()), LogBytes: s.wal.UsedBytes(), ReplayedOpen: s.replayed,
	}
	h.catalogue.each(keys.PrefixPredicate, ID{}, func(_, _ ID, n uint64) { st.Statements += n })
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		for _, t := range s.db.Tables() {
			st.IndexBytes += int64(t.OnDiskSize)
		}
	}
	s.pins.Scan(func(_ Revision, n int) bool { st.Snapshots += n; return true })
	return st
}
