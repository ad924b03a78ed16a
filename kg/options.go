package kg

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/hashicorp/raft-wal/types"

	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
)

// Defaults of Options.
const (
	DefaultQueueLength   = 4096
	DefaultQueueTime     = 10 * time.Second
	DefaultGroupCommits  = 512
	DefaultReserveBytes  = 1 << 30
	DefaultTermCache     = 1 << 17
	DefaultMemTableBytes = 16 << 20
	DefaultMemTables     = 5
	DefaultTableBytes    = 2 << 20
	DefaultBlockCache    = 256 << 20
	DefaultIndexBytes    = 64 << 20
	DefaultRunCache      = 32 << 20
	DefaultRingCommits   = 4096
	DefaultRingBytes     = 32 << 20
	DefaultMaxWatchers   = 100_000
)

// Options configures a store. The zero value works: every field has a default, named in its
// comment.
type Options struct {
	Governor

	Clock  func() time.Time // time.Now when nil
	Logger *slog.Logger     // discards when nil

	// Uptime returns the time elapsed on a monotonic clock. Clock is checked against it before
	// History removes anything, because a wall clock that was set wrong would remove too much.
	// nil: the time since this process began.
	Uptime func() time.Duration

	// MaxSourceStatements is the statement quota: how many statements one agent may be a
	// source of. 0 is no bound. Statements in koine's own graphs do not count, except Parts in
	// journals. An update that raises a source above the quota is refused as a whole with
	// CodeLimitExceeded and LimitStatements. Updates by koine itself are not bounded.
	MaxSourceStatements uint64

	// QueueLength bounds the updates that wait for the committer, QueueTime the time that one
	// waits. Beyond either an update fails with CodeOverloaded; a load waits instead.
	QueueLength int
	QueueTime   time.Duration
	// GroupCommits bounds how many updates share one fsync.
	GroupCommits int

	// History is how long past revisions are kept, at least MinHistory. Older history is
	// removed from time to time: see Retain. 0 keeps all of it.
	History time.Duration

	// ReserveBytes is the free space below which updates are refused with CodeDiskFull. A
	// volume that runs full would end the process.
	ReserveBytes uint64
	// FreeBytes returns the free space of a directory's volume. nil asks the operating system.
	FreeBytes func(dir string) (uint64, error)

	// LiteralBytes bounds the lexical form of a new literal, between MinLiteralBytes and
	// MaxLiteralBytes; 0 is DefaultLiteralBytes. A longer one is refused with
	// CodeLimitExceeded. Longer literals that are stored already stay readable and removable.
	LiteralBytes int

	TermCache int // terms cached in each direction
	// MemTableBytes is how much of the newest keys is kept in memory above Badger, before it
	// becomes a table. As much again is kept while that is being written. Badger's own memtables, in
	// which smaller amounts gather, have half the size.
	MemTableBytes   int64
	MemTables       int   // memtables that wait to be written; beyond them the committer waits
	TableBytes      int64 // size of the index's smaller files. Some of them are in memory while they are written
	BlockCacheBytes int64 // bytes of index blocks cached
	IndexBytes      int64 // bytes of the filters and indexes of the index's files kept in memory; less than 0: none
	RunCacheBytes   int64 // bytes of decoded runs of statements cached; less than 0: none

	// RingCommits and RingBytes bound the newest commits that are kept decoded for watchers. A
	// watcher that is further behind reads the log. MaxWatchers bounds the open watchers.
	RingCommits int
	RingBytes   int
	MaxWatchers int

	// MustExist makes Open fail with CodeFormatUnknown and ErrNoStore where there is no store,
	// without touching the directory.
	MustExist bool
	// ReadOnly opens an existing store without changing any of its files. Several processes
	// may do so at the same time while none writes. Updates fail with CodeReadOnly. Log
	// entries beyond the index are applied in memory, an unusable index is rebuilt in a
	// temporary directory, and an older format is read without an upgrade.
	ReadOnly bool
	// Rebuild discards the index on opening and builds it again from the newest checkpoint and
	// the log.
	Rebuild bool

	// logFiles replaces the file system below the log, for fault tests.
	logFiles types.VFS
	// wrapLog returns the log that the store uses instead of the one in its directory, for
	// fault tests.
	wrapLog func(commitLog) commitLog
	// CheckIndexFirst verifies the checksums of the whole index before Open returns, not in
	// the background: for a program that reads once and exits.
	CheckIndexFirst bool
	// SkipChecks, with ReadOnly, verifies only the newest part of a large log and the smallest
	// files of a large index. It is for a program that verifies what it reads, such as a backup.
	// Without ReadOnly it has no effect: nothing that is written may follow from a damaged index.
	SkipChecks bool

	// indexSummedFirst is how many bytes of the index Open verifies before it returns; 0 is
	// summedFirst. For tests.
	indexSummedFirst int64
	// logSegmentBytes is the size of a log file; 0 is the log's default. For fault tests.
	logSegmentBytes int
	// bulkFrom, bulkChunk and bulkTableBytes replace the constants of these names, and
	// bulkSortBytes replaces extsort.DefaultBytes, so that tests reach the bounds.
	bulkFrom, bulkChunk, bulkTableBytes, bulkSortBytes int
	// groupBytes, loadCommitBytes and bulkFromBytes replace maxGroupBytes and the constants of
	// these names, for tests.
	groupBytes, loadCommitBytes, bulkFromBytes int
	// wholeFrom is the largest graph, in statements, that is replaced by one ordinary commit;
	// wholeCommit replaces the constant of that name. For tests.
	wholeFrom, wholeCommit int
	// purgeRetry replaces the constant of that name, for tests.
	purgeRetry time.Duration
	// bulkStep is called with the name of each step of a bulk load before it begins, also
	// concurrently, for
	// tests.
	bulkStep func(step string)
	// upgradeStep is called before each part of an upgrade of the index is completed. It may fail
	// in its stead, for tests.
	upgradeStep func(step string) error
	// replacedDepends replaces MaxReplacedDepends, for tests.
	replacedDepends int
	// tailBytes replaces maxTailBytes.
	tailBytes int
	// overlapFrom and gatherFrom replace defaultOverlapFrom and defaultGatherFrom.
	overlapFrom int
	gatherFrom  time.Duration
	// afterAppend is called between the append to the log and the change of the index, for
	// fault tests.
	afterAppend func() error
	// retainEvery is the interval of Retain; 0 derives it from History. For tests.
	retainEvery time.Duration
	// afterRetain is called with the name of each part of Retain after it, and with "step" after
	// each step of a removal, for fault tests.
	afterRetain func(part string)
	// beforeApply sees the overlay before it reaches the index, for benchmarks.
	beforeApply func(o *index.Overlay)
}

// MinMemTableBytes is the smallest Options.MemTableBytes.
const MinMemTableBytes = 8 << 20

// validate returns CodeInvalid for options that cannot work.
func (o Options) validate() error {
	if o.MemTableBytes < MinMemTableBytes {
		return Errorf(CodeInvalid, "MemTableBytes is at least %d, not %d", MinMemTableBytes, o.MemTableBytes)
	}
	if o.LiteralBytes < MinLiteralBytes || o.LiteralBytes > MaxLiteralBytes {
		return Errorf(CodeInvalid, "LiteralBytes is between %d and %d, not %d", MinLiteralBytes, MaxLiteralBytes, o.LiteralBytes)
	}
	if o.ReadOnly && o.Rebuild {
		return Errorf(CodeInvalid, "ReadOnly and Rebuild exclude each other")
	}
	if o.History != 0 && o.History < MinHistory {
		return Errorf(CodeInvalid, "History is 0 or at least %s, not %s", MinHistory, o.History)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Governor = o.Governor.withDefaults()
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Uptime == nil {
		o.Uptime = func() time.Duration { return time.Since(processBegan) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FreeBytes == nil {
		o.FreeBytes = datadir.FreeBytes
	}
	o.SkipChecks = o.SkipChecks && o.ReadOnly
	if o.CheckIndexFirst || o.ReadOnly && !o.SkipChecks {
		o.indexSummedFirst = maxSummedBytes
	}
	setDefault(&o.indexSummedFirst, summedFirst)
	setDefault(&o.QueueLength, DefaultQueueLength)
	setDefault(&o.QueueTime, DefaultQueueTime)
	setDefault(&o.GroupCommits, DefaultGroupCommits)
	setDefault(&o.ReserveBytes, DefaultReserveBytes)
	setDefault(&o.LiteralBytes, DefaultLiteralBytes)
	setDefault(&o.TermCache, DefaultTermCache)
	setDefault(&o.MemTableBytes, DefaultMemTableBytes)
	setDefault(&o.MemTables, DefaultMemTables)
	setDefault(&o.TableBytes, DefaultTableBytes)
	setDefault(&o.overlapFrom, defaultOverlapFrom)
	setDefault(&o.gatherFrom, defaultGatherFrom)
	setDefault(&o.BlockCacheBytes, DefaultBlockCache)
	setDefault(&o.IndexBytes, DefaultIndexBytes)
	setDefault(&o.RunCacheBytes, DefaultRunCache)
	setDefault(&o.RingCommits, DefaultRingCommits)
	setDefault(&o.RingBytes, DefaultRingBytes)
	setDefault(&o.MaxWatchers, DefaultMaxWatchers)
	if o.upgradeStep == nil {
		o.upgradeStep = func(string) error { return nil }
	}
	if o.bulkStep == nil {
		o.bulkStep = func(string) {}
	}
	setDefault(&o.bulkFrom, bulkFrom)
	setDefault(&o.bulkChunk, bulkChunk)
	setDefault(&o.groupBytes, maxGroupBytes)
	setDefault(&o.loadCommitBytes, loadCommitBytes)
	setDefault(&o.bulkFromBytes, bulkFromBytes)
	setDefault(&o.bulkTableBytes, bulkTableBytes)
	setDefault(&o.replacedDepends, MaxReplacedDepends)
	setDefault(&o.wholeFrom, MaxPatches)
	setDefault(&o.wholeCommit, wholeCommit)
	setDefault(&o.purgeRetry, purgeRetry)
	setDefault(&o.tailBytes, maxTailBytes)
	return o
}

// processBegan carries the monotonic clock reading that Uptime counts from.
var processBegan = time.Now()

func (o *Options) memBytes() int { return int(o.MemTableBytes) }

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// badgerLogger passes Badger's messages to slog, with lower levels: few of them matter to an
// operator.
type badgerLogger struct{ log *slog.Logger }

func (l badgerLogger) Errorf(f string, a ...any)   { l.logf(slog.LevelError, f, a) }
func (l badgerLogger) Warningf(f string, a ...any) { l.logf(slog.LevelWarn, f, a) }
func (l badgerLogger) Infof(f string, a ...any)    { l.logf(slog.LevelDebug, f, a) }
func (l badgerLogger) Debugf(f string, a ...any)   { l.logf(slog.LevelDebug-1, f, a) }

func (l badgerLogger) logf(level slog.Level, format string, args []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "index: "+sprintfTrim(format, args))
	}
}

// numCompactors leaves one core to the rest of the store.
func numCompactors() int { return max(2, runtime.GOMAXPROCS(0)-1) }
