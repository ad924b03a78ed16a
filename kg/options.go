package kg

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/hashicorp/raft-wal/types"

	"koine/kg/internal/base"
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
	DefaultBlockCache    = 256 << 20
	DefaultRingCommits   = 4096
	DefaultRingBytes     = 32 << 20
	DefaultMaxWatchers   = 100_000
)

// Options configures a store. The zero Options is a working one.
type Options struct {
	Access   Access           // AllowAll when nil
	Distrust Distrust         // everybody is trusted when nil
	Verifier Verifier         // accepts everything when nil
	Holder   Holder           // keeps held updates; nil: they are told to be held, and nothing is kept
	Clock    func() time.Time // time.Now when nil
	Logger   *slog.Logger     // discards when nil

	// RulesVersion, if set, is a number that grows whenever something has changed
	// beside the graph that updates are judged by, or that decides what is hidden:
	// after the change, which every later judgement goes by. A verdict from before
	// is made again before the update is committed or held. It must be fast and safe
	// for concurrent use.
	RulesVersion func() uint64

	// Uptime is the time that passed since some beginning, by a clock that nobody
	// sets; nil: since this process began. What Clock says is compared with it
	// before History takes anything away.
	Uptime func() time.Duration

	// OnSystemChange is called with each commit that changes a graph of koine's
	// own other than a journal (JournalGraphPrefix), when it is durable and before any reader sees it: what decides from
	// those graphs (policies, credentials) is never older than what is read. No
	// update is executed between the two. It is called under the committer and
	// must neither block nor call the store. Commits that are there when the store
	// is opened are not told.
	OnSystemChange func(*Commit)

	// Admit, if set, is asked about each update, dry runs included, and each load
	// as it begins, before anything else is done for it; its error is the answer.
	// It must be fast and safe for concurrent use.
	Admit func(context.Context, Meta) error

	// AdmitRead, if set, is asked whenever somebody from outside begins to read: by
	// View, Commit and ReadLog, and, with follow, by Watch; its error is the answer.
	// What the context tells of the request is between it and the caller. It must be
	// fast and safe for concurrent use.
	AdmitRead func(ctx context.Context, p Principal, follow bool) error

	// Charge, if set, is told for each further LoadUpdateQuads that a load has taken
	// in, beyond those that Admit let in: a load is not stopped on its way, and what
	// it took can be held against what its caller asks next. As Admit.
	Charge func(context.Context, Meta)

	// MaxSourceStatements bounds how many statements one agent may be the source of, outside
	// koine's own graphs but for Parts in journals; 0 is no bound. An update that would leave a source with
	// more than that, and with more than it had, gets CodeLimitExceeded with
	// LimitStatements, and nothing of it is made. Updates from within this process
	// are not bounded.
	MaxSourceStatements uint64

	// Span, if set, begins a span of a trace inside of that which ctx carries: of
	// an update, a load, or a view for as long as it is open. end is called once.
	Span func(ctx context.Context, name string) (inner context.Context, end func(error))
	// Stages is told, before Update returns, when an acknowledged update went
	// through what; nil for nobody. ctx is that of the update's span.
	Stages func(ctx context.Context, s Stages)

	// QueueLength bounds the updates that wait for the committer, QueueTime how
	// long one may wait; past either a caller gets CodeOverloaded, and a load
	// waits.
	QueueLength int
	QueueTime   time.Duration
	// GroupCommits bounds how many updates share one fsync.
	GroupCommits int

	// History is how long the past is kept, at least MinHistory: what is older is
	// taken away from time to time, see Retain. 0 keeps all of it.
	History time.Duration

	// ReserveBytes is the free space below which updates are refused with
	// CodeDiskFull. Running out of space would end the process.
	ReserveBytes uint64
	// FreeBytes tells the free space of a directory's volume; nil asks the
	// system.
	FreeBytes func(dir string) (uint64, error)

	// LiteralBytes bounds the lexical form of a literal in what callers add, between
	// MinLiteralBytes and MaxLiteralBytes; 0 is DefaultLiteralBytes. A longer one gets
	// CodeLimitExceeded. What is stored already stays, is read and can be removed.
	LiteralBytes int

	TermCache int // terms remembered in each direction
	// MemTableBytes is the size of Badger's memtables. Half of it is how much of
	// the newest keys is kept above Badger.
	MemTableBytes   int64
	BlockCacheBytes int64 // of the index

	// RingCommits and RingBytes bound the newest commits that are kept decoded
	// for watchers; one that is behind reads the log.
	RingCommits int
	RingBytes   int
	MaxWatchers int

	// MustExist makes Open fail, and leave the directory as it was, where there is no
	// store: with CodeFormatUnknown and ErrNoStore.
	MustExist bool
	// ReadOnly opens the store of a directory without changing anything in it; there
	// must be one. Others may read it at the same time, and nobody write. Updates get
	// CodeReadOnly. What the log has beyond the index is kept in memory, and an index
	// that cannot be used is built in a temporary directory. An older format is read as
	// it is.
	ReadOnly bool
	// Rebuild throws the index away when opening and builds it anew from the
	// newest checkpoint and the log.
	Rebuild bool

	// logFiles stands in for the file system under the log; for fault tests.
	logFiles types.VFS
	// CheckIndexFirst compares all of the index with its checksums before the store is
	// opened, and not beside everything else: for a program that reads once and ends.
	CheckIndexFirst bool

	// indexSummedFirst is how much of an index is compared with its checksums before it
	// is opened; 0 is summedFirst. For tests.
	indexSummedFirst int64
	// logSegmentBytes is the size of the log's files; for fault tests. 0 is the
	// log's own default.
	logSegmentBytes int
	// bulkFrom, bulkChunk and bulkTableBytes stand in for the constants of these names,
	// and bulkSortBytes for extsort.DefaultBytes; for tests of what lies beyond.
	bulkFrom, bulkChunk, bulkTableBytes, bulkSortBytes int
	// groupBytes, loadCommitBytes and bulkFromBytes stand in for maxGroupBytes and the
	// constants of these names; for tests.
	groupBytes, loadCommitBytes, bulkFromBytes int
	// wholeFrom is how many statements a graph may hold that is replaced in one ordinary
	// commit, wholeCommit stands in for the constant of that name; for tests.
	wholeFrom, wholeCommit int
	// purgeRetry stands in for the constant of that name; for tests.
	purgeRetry time.Duration
	// bulkStep is called in a bulk load before each step with its name; for tests.
	bulkStep func(step string)
	// replacedDepends stands in for MaxReplacedDepends; for tests.
	replacedDepends int
	// tailBytes stands in for maxTailBytes.
	tailBytes int
	// overlapFrom and gatherFrom stand in for defaultOverlapFrom and defaultGatherFrom.
	overlapFrom int
	gatherFrom  time.Duration
	// afterAppend is called between the log and the index; for fault tests.
	afterAppend func() error
	// retainEvery is the time between two rounds of Retain, and before the first;
	// for tests. 0 leaves it to History.
	retainEvery time.Duration
	// afterRetain is called after each part of Retain with its name; for fault
	// tests.
	afterRetain func(part string)
	// beforeApply sees what is about to be written to the index; for the twins
	// of benchmarks.
	beforeApply func(o *index.Overlay)
}

// MinMemTableBytes is the least that Options.MemTableBytes may be.
const MinMemTableBytes = 8 << 20

// validate reports options that cannot work.
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
	if o.Access == nil {
		o.Access = AllowAll{}
	}
	if o.Distrust == nil {
		o.Distrust = base.TrustAll{}
	}
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
	if o.CheckIndexFirst || o.ReadOnly {
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
	setDefault(&o.overlapFrom, defaultOverlapFrom)
	setDefault(&o.gatherFrom, defaultGatherFrom)
	setDefault(&o.BlockCacheBytes, DefaultBlockCache)
	setDefault(&o.RingCommits, DefaultRingCommits)
	setDefault(&o.RingBytes, DefaultRingBytes)
	setDefault(&o.MaxWatchers, DefaultMaxWatchers)
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

// processBegan has the reading of the clock that nobody sets.
var processBegan = time.Now()

func (o *Options) memBytes() int { return int(o.MemTableBytes / 2) }

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// badgerLogger hands Badger's own messages to slog, below what an operator
// needs to see.
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

// numCompactors leaves a core to the rest of the store.
func numCompactors() int { return max(2, runtime.GOMAXPROCS(0)-1) }
