package kg

import (
	"os"
	"slices"
	"sync/atomic"
	"time"

	"koine/kg/internal/keys"
)

// Stats are the metrics of a store.
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
	// KeysRead is the number of index keys that scans and lookups passed since the store was
	// opened, including the opening. A scan counts when it ends.
	KeysRead     uint64
	OldestInLog  Revision
	ReplayedOpen uint64 // commits applied again on opening

	// OldestReadable is the oldest readable revision; 0 if all are.
	OldestReadable Revision
	History        time.Duration // Options.History
	// CommitSeconds is the time of committed updates from queueing to the answer,
	// AppendSeconds the time of an append with its fsync, GroupCommits the number of commits
	// that shared one, all since the store was opened.
	CommitSeconds Histogram
	AppendSeconds Histogram
	GroupCommits  Histogram
	// QueueBound is Options.QueueLength.
	QueueBound int
	// LagRevisions is how many revisions the watchers are behind now; MaxLag is the largest.
	LagRevisions Histogram
	MaxLag       Revision
	// CheckpointBytes is the size of the checkpoints.
	CheckpointBytes int64
	// FreeBytes is the free space of the data directory's volume, 0 if unknown, and
	// ReserveBytes the bound below which updates are refused.
	FreeBytes    uint64
	ReserveBytes uint64
	// Refused is the code with which updates are refused; "" if they are accepted.
	Refused Code

	// Sources is the number of agents that are sources of statements outside koine's own
	// graphs, MostSourceStatements the largest number of statements of one,
	// MaxSourceStatements the option of that name, and QuotaRefusals the number of updates
	// that exceeded it.
	Sources              uint64
	MostSourceStatements uint64
	MaxSourceStatements  uint64
	QuotaRefusals        uint64
}

// measures are the histograms of the committer, and the state of its current append.
type measures struct {
	commit distribution // nanoseconds
	append distribution // nanoseconds
	group  distribution // commits
}

// Stats returns the present metrics. They cover the whole store: they are for its operator,
// not for callers with restricted access.
func (s *Store) Stats() Stats {
	h := s.head.Load()
	st := Stats{
		Revision: h.revision, Time: h.time, Terms: h.nextNumber - 1,
		QueueLength: len(s.queue), Watchers: s.tailer.countWatchers(),
		CacheHits: s.cache.Hits.Read(), CacheMisses: s.cache.Misses.Read(), KeysRead: s.keysRead.Read(),
		OldestInLog: Revision(s.wal.First()), LogBytes: s.wal.UsedBytes(), ReplayedOpen: s.replayed,
		CommitSeconds: s.measures.commit.snapshotIn(latencyBounds, float64(time.Second)),
		AppendSeconds: s.measures.append.snapshotIn(latencyBounds, float64(time.Second)),
		GroupCommits:  s.measures.group.snapshotIn(groupBounds, 1),
		QueueBound:    s.options.QueueLength, ReserveBytes: s.options.ReserveBytes, OldestReadable: s.oldestReadable(), History: s.options.History,
	}
	if err := s.Ready(); err != nil {
		st.Refused = CodeOf(err)
	}
	st.FreeBytes, _ = s.options.FreeBytes(s.dir.Path) // a scrape cannot report the error
	st.CheckpointBytes = s.checkpointBytes()
	st.LagRevisions, st.MaxLag = s.tailer.lagBehind(h.revision)
	h.catalogue.Each(keys.PrefixPredicate, ID{}, func(graph, _ ID, n uint64) {
		if t, counts := h.generations.TenureOf(graph); counts && t.Until == 0 {
			st.Statements += n
		}
	})
	st.Sources, st.MostSourceStatements = h.catalogue.SourceTotals()
	st.MaxSourceStatements, st.QuotaRefusals = s.options.MaxSourceStatements, s.overQuota.Read()
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

// checkpointBytes returns the size of the checkpoints. A file that vanishes meanwhile counts
// 0.
func (s *Store) checkpointBytes() (sum int64) {
	paths, _ := s.listCheckpoints()
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil {
			sum += st.Size()
		}
	}
	return sum
}

// lagBehind returns how far the watchers are behind head. It visits each of them.
func (t *tailer) lagBehind(head Revision) (Histogram, Revision) {
	h := Histogram{Bounds: lagBounds, Counts: make([]uint64, len(lagBounds)+1)}
	var most Revision
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.all {
		w.mu.Lock()
		at := w.pos.Revision
		if w.idle && w.wakeAt == 0 {
			at = max(at, t.matchedHead()) // nothing newer concerns it
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

// Histogram counts values in buckets.
type Histogram struct {
	// Bounds are the inclusive upper ends of the buckets, ascending. Read-only.
	Bounds []float64
	// Counts are the values per bucket, not cumulative; one more than Bounds, for the values
	// above all of them.
	Counts []uint64
	Sum    float64
}

// Count returns the number of values.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Cumulative returns the cumulative counts by bound, as Prometheus expects them.
func (h Histogram) Cumulative() map[float64]uint64 {
	m := make(map[float64]uint64, len(h.Bounds))
	n := uint64(0)
	for i, b := range h.Bounds {
		n += h.Counts[i]
		m[b] = n
	}
	return m
}

// Bounds of the store's histograms.
var (
	// latencyBounds are in seconds, from an append in memory to a disk that hangs.
	latencyBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	// groupBounds are in commits.
	groupBounds = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	// lagBounds are in revisions. A watcher at the head is in the first bucket.
	lagBounds = []float64{0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}
)

// maxBuckets bounds the buckets of a histogram.
const maxBuckets = 16

// distribution collects a histogram. One goroutine at a time observes, any number read.
// Observing allocates nothing and takes no lock.
type distribution struct {
	counts [maxBuckets]atomic.Uint64
	sum    atomic.Uint64 // in the observer's unit: nanoseconds or commits
}

func (d *distribution) observe(bounds []float64, v float64, sum uint64) {
	i, _ := slices.BinarySearch(bounds, v)
	d.counts[i].Add(1)
	d.sum.Add(sum)
}

func (d *distribution) observeDuration(t time.Duration) {
	d.observe(latencyBounds, t.Seconds(), uint64(t))
}

func (d *distribution) observeSize(n int) { d.observe(groupBounds, float64(n), uint64(n)) }

// snapshotIn returns the histogram so far; unit divides the sum.
func (d *distribution) snapshotIn(bounds []float64, unit float64) Histogram {
	h := Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1), Sum: float64(d.sum.Load()) / unit}
	for i := range h.Counts {
		h.Counts[i] = d.counts[i].Load()
	}
	return h
}

// Stages are the times of an acknowledged update: it was queued, taken by a group, executed
// (and judged again if needed), appended to the log with an fsync, and applied to the index.
type Stages struct {
	Queued, Taken, Executed, Appended, Applied time.Time
	// Group is the last revision of the group, which identifies it, and Commits the number of
	// its commits.
	Group   Revision
	Commits int
}

func (g *group) stagesFrom(queued time.Time) Stages {
	return Stages{queued, g.began, g.executed, g.appended, g.applied, g.revision, len(g.commits)}
}
