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

	"koine/kg/internal/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// Store is an open data directory. Its methods may be called concurrently.
type Store struct {
	options       Options
	log           *slog.Logger
	dir           *datadir.Directory
	wal           *wal.Log
	db            *badger.DB
	aside         string   // the temporary directory of a read-only store's index; "" for none
	asideLock     *os.File // of it, held
	cache         *index.TermCache
	accessCache   *accessCache
	sealer        *sealer
	tailer        *tailer
	recentCommits recentCommits
	steady        *steadyClock // nil without Options.History
	names         names

	// head is what readers see: moved forward only once log and index have it.
	head atomic.Pointer[head]
	// oldest is the oldest revision that can be read, 0 while all can.
	oldest atomic.Uint64
	// refused says why updates are refused until the store is reopened.
	refused atomic.Pointer[Error]
	// unindexed is a load whose index the volume had no room for; nil for none.
	unindexed atomic.Pointer[bulk]
	// diskFull tells that the last group was refused for lack of space.
	diskFull atomic.Bool

	queue     chan *update
	exclusive chan func()          // runs between two groups, with nothing left in memory
	between   chan func()          // runs between two groups
	purge     chan struct{}        // of one; there may be something to remove
	abandoned abandonedGenerations // generations that are still to be given up
	appended  chan error           // the append of the group ahead has ended
	flushed   chan error           // a write of memory to Badger has ended
	scrubbed  chan struct{}        // closed when the log has been read through
	stop      chan struct{}
	stopped   sync.WaitGroup
	closeOnce sync.Once
	closeErr  error

	checkpointing sync.Mutex // held while a checkpoint is written
	retaining     sync.Mutex // held by a round of the history option; before checkpointing

	updateQueues updateQueues
	// observers are written with mu held.
	observers atomic.Pointer[[]*observer]
	// judging ends with the judgements.
	judging    context.Context
	endJudging context.CancelFunc
	recently   recentChanges // the committer's alone, as the next four
	scratch    scratch
	met        index.MetTerms
	tempo      pacing
	ahead      *group                // executed, and on its way to the log; nil for none
	entry      *logentry.EntryWriter // of the append under way
	frames     wal.Frames            // its entries
	measures   measures              // observed by the committer, read by Stats

	// door is held to queue an update and to foresee one, and taken whole to close the
	// store, so that nothing is queued behind the committer's last look and Badger is
	// not read any more. It is not mu: who asks for
	// an update does not wait for a group that is being applied.
	door sync.RWMutex

	mu     sync.Mutex // guards what follows
	pins   btree.Map[Revision, int]
	moved  chan struct{}  // closed when head moves
	closed bool           // written with door and mu held, read with one of them
	users  sync.WaitGroup // open snapshots; added to under mu

	reads     btree.Map[Revision, int] // revisions of the past that snapshots read
	readsLeft chan struct{}            // closed when one of reads goes

	holds btree.Map[Revision, int] // log entries from which backups and judged replacements still read on

	// counted tells that the catalogue has the counts by source: always, once the
	// store is open and takes updates.
	counted   bool
	overQuota base.Counter // updates that were refused for Options.MaxBacked
	keysRead  base.Counter // of the index, since the store is being opened

	layers layers // changed by the committer alone, under mu
	// flushedKV is what Badger has since the memory was last written there, for who does
	// not wait for mu. The next time makes another one of it: whoever has the same one
	// knows what it lacks.
	flushedKV   atomic.Pointer[index.BadgerKV]
	closedIndex closedIndex // that was opened
	replayed    uint64      // commits that opening had to apply again
	rebuilt     string      // why opening had to make the index anew; "" when it did not
}

// head is the newest revision as readers see it.
type head struct {
	revision  Revision
	time      time.Time
	catalogue *index.Catalogue
	// generations of graphs, nil where there are none.
	generations *index.Generations
	nextNumber  uint64   // of the dictionary's next term
	hash        [32]byte // of the log entry
}

// Open opens the store in dir, making one where there is none, unless o.MustExist
// forbids it. If making one fails, what was made of it is removed. It fails with CodeDataDirInUse and CodeFormatUnknown, which wraps
// ErrNoStore where the directory is not one of koine's. A store whose log is damaged opens
// for reading only: see Ready.
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
		accessCache: newReaders(o.Access),
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
		moved:       make(chan struct{}),
		entry:       logentry.NewEntryWriter(),
		names:       names{prefixes: new(Prefixes)},
	}
	s.judging, s.endJudging = context.WithCancel(context.Background())
	if err := s.open(); err != nil {
		s.endJudging()
		return nil, errors.Join(d.New.Failed(err), s.closeContents(), d.New.Remove(), d.Close())
	}
	d.New = nil // it is made
	s.stopped.Add(3)
	go s.checkIndexFiles()
	go s.scrubLog()
	go s.tailer.run(&s.stopped)
	if !o.ReadOnly {
		s.stopped.Add(2)
		go s.commitLoop()
		go s.purgeLoop()
	}
	if s.options.History > 0 && !o.ReadOnly {
		s.steady = newSteadyClock(&s.options, s.head.Load())
		s.stopped.Add(1)
		go s.retainLoop()
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
	if err := s.openLog(); err != nil {
		return err
	}
	if err := s.openIndex(); err != nil {
		return err
	}
	if e := s.refused.Load(); e != nil && s.head.Load().revision == 0 {
		return e // neither log nor index is left to be read
	}
	s.tailer = newTailer(s)
	if err := s.loadNames(); err != nil {
		return err
	}
	if s.options.ReadOnly {
		return nil
	}
	if err := s.wal.Stalled(); err != nil {
		s.log.Warn("the log has no room to be opened for writing", "error", err)
	}
	if !s.wal.Allocates() {
		s.log.Warn("the file system of the data directory cannot allocate blocks ahead: only the reserve of free space keeps a full volume from stopping updates", "reserve bytes", s.options.ReserveBytes)
	}
	if err := s.hasRoom(0); err != nil && CodeOf(err) != CodeDiskFull {
		return err
	}
	return nil // below the reserve it is read, and that is said
}

// Close ends all watchers and refuses the updates that wait, waits for the one
// under way and for snapshots to be closed by who has them, and closes the
// directory. Calls that come later fail with CodeClosed.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.endJudging()
		s.door.Lock()
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.door.Unlock()
		close(s.stop)
		s.stopped.Wait()
		s.users.Wait()
		s.closeErr = s.closeFiles()
	})
	return s.closeErr
}

// closeFiles closes the store's files and lets the directory go.
func (s *Store) closeFiles() error { return errors.Join(s.closeContents(), s.dir.Close()) }

// closeContents closes whatever is open, the index first: what it holds must be in
// the log.
func (s *Store) closeContents() error {
	var errs []error
	s.closedIndex.close()
	if s.db != nil {
		errs = append(errs, s.closeIndex())
	}
	if s.wal != nil {
		errs = append(errs, s.wal.Close())
	}
	errs = append(errs, s.removeAside())
	return errors.Join(errs...)
}

// Ready is nil while updates are taken, and otherwise says why they are not.
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
		return s.hasRoom(0) // no update may have come since there is room
	}
	return nil
}

// refusedFor is why the store takes no updates until it is reopened, nil where it does.
func (s *Store) refusedFor() *Error {
	if e := s.refused.Load(); e != nil {
		return e
	}
	if s.options.ReadOnly {
		return errOpenedReadOnly()
	}
	return nil
}

// Sound is nil unless the store is closed, damaged, or has failed to write. Other than
// Ready it does not mind a full volume, nor Options.ReadOnly.
func (s *Store) Sound() error {
	if s.isClosed() {
		return base.ErrClosed()
	}
	if e := s.refused.Load(); e != nil && e.Code != CodeDiskFull {
		return e
	}
	return nil
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// isStopping tells that Close has begun.
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
		s.log.Error("no updates are taken until the store is reopened", "code", e.Code, "error", e, "cause", e.Err)
	}
}

// Head is behind the newest revision.
func (s *Store) Head() Position {
	return Position{s.dir.Epoch, s.head.Load().revision, EndOfCommit}
}

// LiteralBytes is how long a literal may be that is added (Options.LiteralBytes).
func (s *Store) LiteralBytes() int { return s.options.LiteralBytes }

// Oldest is before the oldest change that the log still holds.
func (s *Store) Oldest() Position {
	first := Revision(s.wal.First())
	if first == 0 {
		return Position{s.dir.Epoch, s.head.Load().revision, EndOfCommit}
	}
	return Position{s.dir.Epoch, first - 1, EndOfCommit}
}

// Epoch tells this store's log from any other.
func (s *Store) Epoch() Epoch { return s.dir.Epoch }

// View takes a snapshot of the store as the view shows it, which must be
// closed. Scans on it end with ctx. It fails with CodeRevisionAhead when the
// view asks for a revision that is not there yet.
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
		return nil, Errorf(CodeRevisionAhead, "revision %d is not there yet: the newest is %d", v.At, newest)
	}
	if v.Now.IsZero() {
		v.Now = s.options.Clock()
	}
	past := v.At != 0 && v.At < newest
	release := func() { s.unpin(p) }
	if past {
		// Noted before the floor is looked at: what it reads from here on stays.
		done := s.holdRevision(v.At)
		release = func() { s.unpin(p); done() }
	}
	if v.At != 0 && v.At < s.oldestReadable() {
		release()
		return nil, datadir.ErrRevisionGone(v.At, Position{s.dir.Epoch, s.oldestReadable(), EndOfCommit})
	}
	if v.At == 0 {
		v.At = newest
	}
	v.Principal.Normalise()
	if err := v.Doubting(s.options.Distrust); err != nil {
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
		dict:         index.Dictionary{KV: p.kv, Cache: s.cache},
		view:         v,
		position:     Position{s.dir.Epoch, v.At, EndOfCommit},
		past:         past,
		oldest:       &s.oldest,
		commit:       s.tailer.commitAt,
		release:      sync.OnceFunc(release),
	}, nil
}

// WaitFor waits until the newest revision is at least this one.
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
			return Errorf(CodeTimeout, "revision %d did not come in time: %w", r, ctx.Err())
		}
	}
}

// newKV is a snapshot of the store's index.
func (s *Store) newKV(at Revision) *index.BadgerKV { return index.NewBadgerKV(s.db, at, &s.keysRead) }

func sprintfTrim(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}
