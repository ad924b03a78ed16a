package kg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/tidwall/btree"

	"koine/internal/jobs"
	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// Store is an open data directory: the log, the index derived from it, and the committer, the
// one goroutine that writes both. All methods are safe for concurrent use.
type Store struct {
	options            Options
	log                *slog.Logger
	dir                *datadir.Directory
	wal                commitLog
	db                 *badger.DB
	temporaryIndex     string   // temporary directory with the index of a read-only store; "" for none
	temporaryIndexLock *os.File // held lock of aside
	cache              *index.TermCache
	runs               *runCache // nil: none
	accessCache        *accessCache
	sealer             *sealer
	tailer             *tailer
	recentCommits      recentCommits
	steady             *steadyClock // nil without Options.History
	names              names

	// head is the newest revision that readers see. It moves once the log and the index have
	// it.
	head atomic.Pointer[head]
	// oldest is the oldest readable revision, 0 if all are.
	oldest atomic.Uint64
	// refused is the reason why updates are refused until the store is reopened.
	refused atomic.Pointer[Error]
	// unindexed is a load whose index did not fit on the volume; nil for none.
	unindexed atomic.Pointer[bulk]
	// diskFull means that the last group was refused for lack of space.
	diskFull atomic.Bool

	queue     chan *update
	exclusive chan func()          // run between two groups, with nothing left in memory
	between   chan func()          // run between two groups
	purge     chan struct{}        // capacity 1; signals that generations may be removed
	abandoned abandonedGenerations // generations to be removed
	appended  chan error           // receives the result of the group append in progress
	flushed   chan error           // receives the result of a write of memory to Badger
	scrubbed  chan struct{}        // closed when the whole log has been read
	stop      chan struct{}
	jobs      *jobs.Group // all that runs until Close
	closeOnce sync.Once
	closeErr  error

	checkpointing sync.Mutex // held while a checkpoint is written
	retaining     sync.Mutex // held by a round of Options.History; locked before checkpointing
	// longestHold is the longest time in nanoseconds for which a step of a round or a purge held the
	// committer, since the round began.
	longestHold atomic.Int64

	updateQueues updateQueues
	// observers are written with mu held.
	observers atomic.Pointer[[]*observer]
	// judging is the context of all judgements.
	judging       context.Context
	endJudging    context.CancelFunc
	recentChanges recentChanges // used by the committer only, as the next four
	scratch       scratch
	met           index.RecentTerms
	pacing        pacing
	ahead         *group                // executed, and being appended to the log; nil for none
	entry         *logentry.EntryWriter // of the append in progress
	frames        wal.Frames            // entries of the append in progress
	measures      measures              // written by the committer, read by Stats

	// door is read-locked to queue or prefetch an update, and locked to close the store, so
	// that nothing is queued after the committer's last look and Badger is no longer read. It
	// is not mu: queueing an update must not wait for a group that is being applied.
	door sync.RWMutex

	mu     sync.Mutex // guards the fields below
	pins   btree.Map[Revision, int]
	moved  chan struct{}  // closed when head moves
	closed bool           // written with door and mu held, read with either
	users  sync.WaitGroup // open snapshots; added to with mu held

	reads     btree.Map[Revision, int] // past revisions that open snapshots read, with their number
	readsLeft chan struct{}            // closed when one of reads ends

	holds btree.Map[Revision, int] // first log entries that backups and judged replacements still read, with their number

	// counted means that the catalogue has the counts by source. It is true once the store is
	// open and takes updates.
	counted bool
	// hashedTerms means that long terms may be under their hash alone (index.Marker). It is set
	// while the store is opened.
	hashedTerms bool
	// unranked means that the keys of values may be missing, likewise.
	unranked  bool
	overQuota base.Counter // updates refused for Options.MaxSourceStatements
	keysRead  base.Counter // keys of the index read since opening began

	layers layers // changed by the committer only, with mu held
	// flushedKV is Badger as of the last flush, which all snapshots share. Each flush replaces
	// it: two readers with the same pointer see the same keys. It may be loaded without mu.
	flushedKV   atomic.Pointer[index.BadgerKV]
	closedIndex closedIndex // state of the index when it was last closed
	replayed    uint64      // commits that opening applied again
	rebuilt     string      // why opening rebuilt the index; "" if it did not
}

// head is the newest revision visible to readers.
type head struct {
	revision  Revision
	time      time.Time
	catalogue *index.Catalogue
	// generations of graphs, nil for none.
	generations *index.Generations
	nextNumber  uint64   // number of the dictionary's next term
	hash        [32]byte // hash of the log entry
}

// Open opens the store in dir. It creates one in an absent or empty directory unless
// o.MustExist is set, and removes what it created if that fails. Open fails with
// CodeDataDirInUse if another process has the directory open, with CodeFormatUnknown, which
// wraps ErrNoStore, if the directory is not a koine store, and with CodeFormatUnknown if a
// newer koine wrote it. A store with a damaged log opens read-only: see Ready. The caller
// closes the store.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	var d *datadir.Directory
	var err error
	if o.ReadOnly {
		d, err = openDirectoryReadOnly(dir)
	} else {
		d, err = datadir.OpenDirectory(dir, o.MustExist)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{
		options:     o,
		accessCache: newAccessCache(o.Access),
		log:         o.Logger,
		dir:         d,
		queue:       make(chan *update, o.QueueLength),
		exclusive:   make(chan func()),
		between:     make(chan func()),
		purge:       make(chan struct{}, 1),
		readsLeft:   make(chan struct{}),
		appended:    make(chan error),
		flushed:     make(chan error),
		scrubbed:    make(chan struct{}),
		stop:        make(chan struct{}),
		jobs:        jobs.NewGroup(o.Logger),
		moved:       make(chan struct{}),
		entry:       logentry.NewEntryWriter(),
		names:       names{prefixes: new(Prefixes)},
	}
	s.judging, s.endJudging = context.WithCancel(context.Background())
	if err := s.open(); err != nil {
		s.endJudging()
		return nil, errors.Join(d.New.WrapError(err), s.closeContents(), d.New.Remove(), d.Close())
	}
	d.New = nil // creation is complete
	s.jobs.Start("check the index", s.checkIndexFiles)
	s.jobs.Start("read the log", s.scrubLog)
	s.jobs.Start("wake watchers", s.tailer.run)
	if !o.ReadOnly {
		s.jobs.Start("commit", s.commitLoop)
		s.jobs.Start("purge", s.purgeLoop)
	}
	if s.options.History > 0 && !o.ReadOnly {
		s.steady = newSteadyClock(&s.options, s.head.Load())
		s.jobs.Start("retain", s.retainLoop)
	}
	s.awaitScrub()
	if err := s.upgradeFormat(); err != nil {
		return nil, errors.Join(fmt.Errorf("upgrade the data directory: %w", err), s.Close())
	}
	if !o.ReadOnly {
		if err := s.giveUpInterrupted(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.purgeSoon()
	}
	return s, nil
}

func (s *Store) open() (err error) {
	s.oldest.Store(uint64(s.dir.Floor))
	if s.sealer, err = newSealer(s.dir.Secret); err != nil {
		return err
	}
	s.cache = index.NewTermCache(s.options.TermCache)
	s.runs = newRunCache(s.options.RunCacheBytes)
	if err := s.openLog(); err != nil {
		return err
	}
	if err := s.openIndex(); err != nil {
		return err
	}
	if e := s.refused.Load(); e != nil && s.head.Load().revision == 0 {
		return e // neither log nor index is readable
	}
	s.clearAtStart()
	s.tailer = newTailer(s)
	if err := s.loadNames(); err != nil {
		return err
	}
	if s.options.ReadOnly {
		return nil
	}
	if err := s.checkFreeSpace(0); err != nil && CodeOf(err) != CodeDiskFull {
		return err
	}
	return nil // below the reserve the store is read-only, and says so
}

// Close ends all watchers and fails queued updates with CodeClosed. It waits for the update in
// progress and for the callers to close their snapshots, and then closes the directory. Later
// calls fail with CodeClosed.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.endJudging()
		s.door.Lock()
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.door.Unlock()
		close(s.stop)
		s.jobs.Stop()
		s.users.Wait()
		s.closeErr = s.closeFiles()
	})
	return s.closeErr
}

// closeFiles closes the store's files and unlocks the directory.
func (s *Store) closeFiles() error { return errors.Join(s.closeContents(), s.dir.Close()) }

// closeContents closes the index and then the log: the log must hold everything in the index.
func (s *Store) closeContents() error {
	var errs []error
	if s.db != nil {
		errs = append(errs, s.closeIndex())
	}
	s.closedIndex.close()
	if s.wal != nil {
		errs = append(errs, s.wal.Close())
	}
	errs = append(errs, s.removeTemporaryIndex())
	return errors.Join(errs...)
}

// Ready returns nil while the store takes updates, and otherwise the reason why not.
func (s *Store) Ready() error {
	if s.isClosed() {
		return base.ErrClosed()
	}
	if e := s.refusedFor(); e != nil {
		return e
	}
	if s.unindexed.Load() != nil {
		return errUnindexed()
	}
	if s.diskFull.Load() {
		return s.checkFreeSpace(0) // space may have been freed since the last update
	}
	return nil
}

// refusedFor returns the reason why updates are refused until the store is reopened, or nil.
func (s *Store) refusedFor() *Error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	if s.options.ReadOnly {
		return errOpenedReadOnly()
	}
	return nil
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// isStopping reports whether Close has begun.
func (s *Store) isStopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// setReadOnly makes the store read-only until it is reopened.
func (s *Store) setReadOnly(e *Error) {
	if s.refused.CompareAndSwap(nil, e) {
		s.log.Error("updates are refused until the store is reopened", "code", e.Code, "error", e, "cause", e.Err)
	}
}

// Head returns the position behind the newest revision.
func (s *Store) Head() Position {
	return Position{Epoch: s.dir.Epoch, Revision: s.head.Load().revision, Index: EndOfCommit}
}

// LiteralBytes returns Options.LiteralBytes: the bound on the lexical form of a new literal.
func (s *Store) LiteralBytes() int { return s.options.LiteralBytes }

// Oldest returns the position before the oldest change in the log.
func (s *Store) Oldest() Position {
	first := Revision(s.wal.First())
	if first == 0 {
		return Position{Epoch: s.dir.Epoch, Revision: s.head.Load().revision, Index: EndOfCommit}
	}
	return Position{Epoch: s.dir.Epoch, Revision: first - 1, Index: EndOfCommit}
}

// Epoch returns the identity of the store's log.
func (s *Store) Epoch() Epoch { return s.dir.Epoch }

// View returns a snapshot of the store under the view. Reads on it end with ctx. The caller
// closes it. View fails with CodeRevisionAhead if v.At is newer than the newest revision, and
// with CodeRevisionGone if retention has removed it.
func (s *Store) View(ctx context.Context, v View) (*Snapshot, error) {
	if err := v.Valid(); err != nil {
		return nil, err
	}
	if err := s.admitRead(ctx, v.Principal, false); err != nil {
		return nil, err
	}
	p, err := s.pin(ctx)
	if err != nil {
		return nil, err
	}
	newest := p.head.revision
	if v.At > newest {
		s.unpin(p)
		return nil, Errorf(CodeRevisionAhead, "revision %d does not exist yet: the newest is %d", v.At, newest)
	}
	if v.Now.IsZero() {
		v.Now = s.options.Clock()
	}
	past := v.At != 0 && v.At < newest || v.AtStart && newest > 0
	release := func() { s.unpin(p) }
	if past && !v.AtStart {
		// Registered before the check against the oldest revision: from here on retention
		// keeps the revision.
		done := s.holdRevision(v.At)
		release = func() { s.unpin(p); done() }
	}
	if v.At != 0 && v.At < s.oldestReadable() {
		release()
		return nil, datadir.ErrRevisionGone(v.At, Position{Epoch: s.dir.Epoch, Revision: s.oldestReadable(), Index: EndOfCommit})
	}
	if v.At == 0 && !v.AtStart {
		v.At = newest
	}
	v.Principal.Normalise()
	if err := v.ApplyDistrust(s.options.Distrust); err != nil {
		release()
		return nil, err
	}
	if s.options.Span != nil {
		_, end := s.options.Span(ctx, "kg view")
		closed := release
		release = func() { closed(); end(nil) }
	}
	return &Snapshot{
		ctx: ctx, kv: p.kv, access: s.options.Access, hides: Hidden(s.options.Access, v.Principal),
		meter:   meterOf(ctx, &v.Principal),
		forgets: base.Forgetful(s.options.Access, v.Principal), followed: unfollowed, catalogue: p.head.catalogue, generations: p.head.generations,
		cachedReader: s.accessCache.readerFor(&v.Principal),
		dict:         s.dictionary(p.kv),
		view:         v,
		position:     Position{Epoch: s.dir.Epoch, Revision: v.At, Index: EndOfCommit},
		past:         past,
		oldest:       &s.oldest,
		commit:       s.tailer.commitAt,
		runs:         s.runs,
		release:      sync.OnceFunc(release),
	}, nil
}

// WaitFor waits until the newest revision is at least r, or ctx is done.
func (s *Store) WaitFor(ctx context.Context, r Revision) error {
	for {
		s.mu.Lock()
		moved, closed := s.moved, s.closed
		s.mu.Unlock()
		if s.head.Load().revision >= r {
			return nil
		}
		if closed {
			return base.ErrClosed()
		}
		select {
		case <-moved:
		case <-s.stop:
			return base.ErrClosed()
		case <-ctx.Done():
			return Errorf(CodeTimeout, "timed out waiting for revision %d: %w", r, ctx.Err())
		}
	}
}

// dictionary returns the dictionary of a view of the index.
func (s *Store) dictionary(kv index.KV) index.Dictionary {
	return index.Dictionary{KV: kv, Cache: s.cache, HashedTerms: s.hashedTerms, Unranked: s.unranked}
}

// newKV returns a snapshot of the index in Badger.
func (s *Store) newKV(at Revision) *index.BadgerKV { return index.NewBadgerKV(s.db, at, &s.keysRead) }

func sprintfTrim(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}
