package kg

import (
	"os"
	"slices"
	"time"

	"koine/kg/internal/keys"
)

// Stats is the store in numbers.
type Stats struct {
	Revision    Revision
	Time        time.Time // of the newest commit
	Statements  uint64    // in all graphs
	Terms       uint64    // in the dictionary
	LogBytes    int64
	IndexBytes  int64
	QueueLength int
	Watchers    int
	Snapshots   int
	CacheHits   uint64
	CacheMisses uint64
	// KeysRead is how many keys of the index scans and lookups passed since the store was
	// opened, opening itself included. Scans count when they end.
	KeysRead     uint64
	OldestInLog  Revision
	ReplayedOpen uint64 // commits applied again when the store was opened

	// OldestReadable is the oldest revision that can be read; 0 while all can.
	OldestReadable Revision
	History        time.Duration // Options.History
	// CommitSeconds is how long committed updates took from being queued to their
	// answer, AppendSeconds how long the log took for a group, its sync included,
	// and GroupCommits how many commits shared one. Since the store was opened.
	CommitSeconds Histogram
	AppendSeconds Histogram
	GroupCommits  Histogram
	// QueueBound is Options.QueueLength.
	QueueBound int
	// LagRevisions is how far behind the newest revision the watchers are, now;
	// MaxLag is the largest of them.
	LagRevisions Histogram
	MaxLag       Revision
	// CheckpointBytes is what the checkpoints take.
	CheckpointBytes int64
	// FreeBytes is the free space of the data directory's volume, ReserveBytes that
	// below which no updates are taken. FreeBytes is 0 when it cannot be told.
	FreeBytes    uint64
	ReserveBytes uint64
	// Refused is why no updates are taken; "" while they are.
	Refused Code

	// Sources is how many agents statements outside koine's own graphs have as
	// sources, MostBacked how many the one with the most of them has, MaxBacked
	// Options.MaxBacked, OverShare how many updates that refused.
	Sources    uint64
	MostBacked uint64
	MaxBacked  uint64
	OverShare  uint64
}

// measures are what the committer observes, and the append that it waits for.
type measures struct {
	commit distribution // nanoseconds
	append distribution // nanoseconds
	group  distribution // commits
}

// Stats gives the numbers of the moment. They are of the whole store, for its
// operator: not for callers who may not see all of it.
func (s *Store) Stats() Stats {
	h := s.head.Load()
	st := Stats{
		Revision: h.revision, Time: h.time, Terms: h.nextNumber - 1,
		QueueLength: len(s.queue), Watchers: s.tailer.watchers(),
		CacheHits: s.cache.hits.read(), CacheMisses: s.cache.misses.read(), KeysRead: s.keysRead.read(),
		OldestInLog: Revision(s.wal.First()), LogBytes: s.wal.UsedBytes(), ReplayedOpen: s.replayed,
		CommitSeconds: s.measures.commit.histogram(latencyBounds, float64(time.Second)),
		AppendSeconds: s.measures.append.histogram(latencyBounds, float64(time.Second)),
		GroupCommits:  s.measures.group.histogram(groupBounds, 1),
		QueueBound:    s.options.QueueLength, ReserveBytes: s.options.ReserveBytes, OldestReadable: s.floor(), History: s.options.History,
	}
	if err := s.Ready(); err != nil {
		st.Refused = CodeOf(err)
	}
	st.FreeBytes, _ = s.options.FreeBytes(s.dir.path) // a scrape has nobody to tell
	st.CheckpointBytes = s.checkpointBytes()
	st.LagRevisions, st.MaxLag = s.tailer.lag(h.revision)
	h.catalogue.each(keys.PrefixPredicate, ID{}, func(graph, _ ID, n uint64) {
		if t, counts := h.generations.tenureOf(graph); counts && t.until == 0 {
			st.Statements += n
		}
	})
	st.Sources, st.MostBacked = h.catalogue.backers()
	st.MaxBacked, st.OverShare = s.options.MaxBacked, s.overShare.read()
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

// checkpointBytes is what the checkpoints take; a file that goes away meanwhile
// takes nothing.
func (s *Store) checkpointBytes() (sum int64) {
	paths, _ := s.checkpoints()
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil {
			sum += st.Size()
		}
	}
	return sum
}

// lag is how far behind head the watchers are. It looks at each of them.
func (t *tailer) lag(head Revision) (Histogram, Revision) {
	h := Histogram{Bounds: lagBounds, Counts: make([]uint64, len(lagBounds)+1)}
	var most Revision
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.all {
		w.mu.Lock()
		at := w.pos.Revision
		if w.idle && w.wakeAt == 0 {
			at = max(at, t.head) // nothing that concerns it has come
		}
		w.mu.Unlock()
		behind := max(head, at) - at
		most = max(most, behind)
		i, _ := slices.BinarySearch(lagBounds, float64(behind))
		h.Counts[i]++
		h.Sum += float64(behind)
	}
	return h, most
}
