package kg

import (
	"os"
	"slices"
	"sync/atomic"
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
	Sources             uint64
	MostBacked          uint64
	MaxSourceStatements uint64
	OverShare           uint64
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
	st.FreeBytes, _ = s.options.FreeBytes(s.dir.Path) // a scrape has nobody to tell
	st.CheckpointBytes = s.checkpointBytes()
	st.LagRevisions, st.MaxLag = s.tailer.lagBehind(h.revision)
	h.catalogue.Each(keys.PrefixPredicate, ID{}, func(graph, _ ID, n uint64) {
		if t, counts := h.generations.TenureOf(graph); counts && t.Until == 0 {
			st.Statements += n
		}
	})
	st.Sources, st.MostBacked = h.catalogue.Backers()
	st.MaxSourceStatements, st.OverShare = s.options.MaxSourceStatements, s.overQuota.Read()
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
	paths, _ := s.listCheckpoints()
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil {
			sum += st.Size()
		}
	}
	return sum
}

// lagBehind is how far behind head the watchers are. It looks at each of them.
func (t *tailer) lagBehind(head Revision) (Histogram, Revision) {
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

// Histogram is how often values fell below each of its bounds.
type Histogram struct {
	// Bounds are the upper ends of the buckets, in ascending order; a value that
	// is a bound belongs below it. Not to be changed.
	Bounds []float64
	// Counts has one more: the last one is of the values above all bounds. They
	// are not added up.
	Counts []uint64
	Sum    float64
}

// Count is how many values there were.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Cumulative is the counts added up by bound, as Prometheus has them.
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
	// latencyBounds are in seconds, from a group in a memory file system to a disk
	// that hangs.
	latencyBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	// groupBounds are in commits.
	groupBounds = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	// lagBounds are in revisions; a watcher that is at the head is in the first.
	lagBounds = []float64{0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}
)

// maxBuckets bounds the buckets of a histogram.
const maxBuckets = 16

// distribution is a histogram under observation. One goroutine at a time observes, any
// number read; observing allocates nothing and takes no lock.
type distribution struct {
	counts [maxBuckets]atomic.Uint64
	sum    atomic.Uint64 // in the unit of its observer: nanoseconds, or commits
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

// snapshotIn is what was observed so far, in units of so many of the sum's.
func (d *distribution) snapshotIn(bounds []float64, unit float64) Histogram {
	h := Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1), Sum: float64(d.sum.Load()) / unit}
	for i := range h.Counts {
		h.Counts[i] = d.counts[i].Load()
	}
	return h
}

// Stages is when an update that was acknowledged went through what: it was queued,
// its group was taken, executed (judged again where that was needed), appended to
// the log with its sync, and applied to the index.
type Stages struct {
	Queued, Taken, Executed, Appended, Applied time.Time
	// Group is the revision of the last commit in the group, which names it, and
	// Commits how many there are.
	Group   Revision
	Commits int
}

func (g *group) stagesFrom(queued time.Time) Stages {
	return Stages{queued, g.began, g.executed, g.appended, g.applied, g.revision, len(g.commits)}
}
