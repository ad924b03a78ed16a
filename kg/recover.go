package kg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/logentry"
)

// openIndex opens the index and brings it up to the head of the log after any crash: it
// applies the missing commits or rebuilds the index.
func (s *Store) openIndex() error {
	if s.options.Rebuild || datadir.Exists(s.dir.Join(datadir.BuildingName)) {
		if err := s.checkRebuild(); err != nil {
			return err
		}
		return s.rebuildIndex("asked for, or an earlier one was cut short")
	}
	if err := s.openBadger(); err != nil {
		return s.rebuildIndex(err.Error())
	}
	m, err := readMarker(s.db)
	if err != nil {
		return s.rebuildIndex(err.Error())
	}
	if m.Revision == 0 && m.Epoch == (Epoch{}) {
		m.Epoch = s.dir.Epoch // the index is empty
	}
	if m.Epoch != s.dir.Epoch {
		return s.rebuildIndex("it belongs to another log")
	}
	if err := s.compareWithLog(m); err != nil {
		s.hashedTerms, s.unranked = m.HashedTerms, m.Unranked
		s.setReadOnly(base.ErrLogDamaged(err))
		return s.serveIndex(m)
	}
	if first := Revision(s.wal.First()); first > m.Revision+1 {
		return s.rebuildIndex("the log no longer holds what it lacks")
	}
	if err := s.upgradeLayout(&m); err != nil {
		return s.rebuildIndex(err.Error())
	}
	err = s.catchUp(m)
	if err == nil {
		err = s.countSourceStatements()
	} else if err != errTailTooLong {
		return err
	}
	if err != nil {
		return s.rebuildIndex(err.Error())
	}
	return nil
}

// compareWithLog returns an error if the index has commits that the log does not have.
func (s *Store) compareWithLog(m index.Marker) error {
	last := Revision(s.wal.Last())
	if seen := max(m.Revision, Revision(s.db.MaxVersion())); seen > last {
		return fmt.Errorf("the index has revision %d, and the log ends at %d", seen, last)
	}
	if m.Revision == 0 || uint64(m.Revision) < s.wal.First() {
		return nil
	}
	hash, err := s.wal.Hash(uint64(m.Revision))
	if err != nil {
		return err
	}
	if hash != m.Hash {
		return fmt.Errorf("the log's entry %d is not the one that the index was made from", m.Revision)
	}
	return nil
}

// openBadger opens the index directory. Badger writes tables only, in order, so that after any
// crash it has exactly the commits up to its marker.
func (s *Store) openBadger() error {
	path := s.indexPath()
	compare := compareUnchecked
	if datadir.Exists(filepath.Join(path, datadir.CleanName)) {
		compare = compareClean
	}
	was, err := compare(path, s.options.indexSummedFirst)
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errIndexChanged)) { // neither CLEAN nor UNCHECKED exists
		return err
	}
	s.closedIndex = was
	if !s.readsInPlace() {
		if err := s.prepareIndex(path); err != nil {
			return err
		}
	}
	db, err := badger.OpenManaged(s.badgerOptions(path))
	if err != nil {
		return err
	}
	s.db = db
	return nil
}

// indexPath returns the directory of the index.
func (s *Store) indexPath() string { return cmp.Or(s.temporaryIndex, s.dir.Join(datadir.IndexName)) }

// prepareIndex creates the directory of the index if necessary.
func (s *Store) prepareIndex(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	clean, unchecked := filepath.Join(path, datadir.CleanName), filepath.Join(path, uncheckedName)
	var err error
	switch {
	case len(s.closedIndex.unread) == 0:
		err = errors.Join(datadir.RemoveFile(clean), datadir.RemoveFile(unchecked))
	case datadir.Exists(clean):
		if err = os.Rename(clean, unchecked); err == nil {
			err = datadir.SyncDir(path)
		}
	}
	if err != nil {
		return err
	}
	return dropIndexLogs(path)
}

// baseLevelBytes and busyTables bound how often a key is written again. New keys belong to many
// places of the index, so that each compaction of level 0 merges its tables with nearly all of the
// level below; the more it has, the fewer there are. Reads of a busy store look into up to
// busyTables tables of level 0, of one at rest into four.
const (
	baseLevelBytes = 64 << 20
	busyTables     = 12
)

func (s *Store) badgerOptions(path string) badger.Options {
	return badger.DefaultOptions(path).
		WithLogger(badgerLogger{s.log}).
		WithBypassLockGuard(true). // the data directory has koine's lock
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false).                    // there is one writer
		WithSyncWrites(false).                         // the log is durable
		WithMemTableSize(s.options.MemTableBytes / 2). // of small trees only (writeIndex)
		WithBaseLevelSize(baseLevelBytes).
		WithBusyLevelZeroTables(busyTables).
		WithNumLevelZeroTablesStall(2 * busyTables).
		WithNumMemtables(s.options.MemTables).
		WithBaseTableSize(s.options.TableBytes).
		WithMaxEntrySize(index.MaxIndexValueBytes).
		WithBlockCacheSize(s.options.BlockCacheBytes).
		WithIndexMemory(s.options.IndexBytes).
		WithCompression(options.Snappy).
		WithNumCompactors(numCompactors()).
		WithTablesOnly(true). // everything else is in the log
		WithReadOnly(s.readsInPlace()).
		WithMetricsEnabled(false)
}

// dropIndexLogs removes files of earlier forms of the index: memtables, whose content is in
// the log, and a value log that never had a value.
func dropIndexLogs(path string) error {
	dropped := false
	for _, pattern := range []string{"*.mem", "*.vlog", "DISCARD"} {
		files, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				return err
			}
			dropped = true
		}
	}
	if !dropped {
		return nil
	}
	return datadir.SyncDir(path)
}

// closeIndex closes Badger, which flushes its memtables, and writes CLEAN. Keys that do not
// fit on a full volume are applied again from the log on the next open.
func (s *Store) closeIndex() error {
	err := s.closeBadger()
	if s.options.ReadOnly || s.temporaryIndex != "" {
		return err
	}
	path := s.indexPath()
	if err == nil && (s.isBroken() || s.layers.stuck || s.unindexed.Load() != nil) {
		return nil // the state of the index is unknown: the next open examines it
	}
	if err == nil {
		if damaged := s.closedIndex.compareRemoved(path); damaged != nil {
			s.log.Warn("the next start rebuilds the index", "error", damaged)
			return nil
		}
		if err = writeClean(path, s.closedIndex.sums); err == nil {
			err = datadir.RemoveFile(filepath.Join(path, uncheckedName))
		}
	}
	if datadir.IsNoSpace(err) {
		s.log.Warn("the volume of the data directory is full: the next start applies the newest commits to the index again", "error", err)
		return nil
	}
	return err
}

// closeBadger closes Badger after the snapshot that readers share.
func (s *Store) closeBadger() error {
	s.dropFlushed(nil)
	db := s.db
	s.db = nil
	return db.Close()
}

// isBroken reports whether a write failed half way.
func (s *Store) isBroken() bool {
	e := s.refused.Load()
	return e != nil && e.Code == CodeReadOnly
}

func readMarker(db *badger.DB) (m index.Marker, err error) {
	kv := index.NewBadgerKV(db, math.MaxUint64, nil)
	defer kv.Close()
	_, err = kv.Get(index.MarkerKey, func(v []byte) (err error) {
		m, err = index.ParseMarker(v)
		return err
	})
	return m, err
}

// serveIndex makes the index at the marker visible to readers.
//
// An interrupted flush leaves keys of later commits without a marker. It reads the newest
// version of each key, because Badger may have dropped the one of the marker's revision: a
// count holds the revision of its last commit, and a generation the one from which on it is
// current.
func (s *Store) serveIndex(m index.Marker) error {
	kv := s.newKV(math.MaxUint64)
	defer kv.Close()
	cat, err := index.ReadCatalogue(kv)
	if err != nil {
		return err
	}
	if s.counted, err = index.HasSourceCounts(kv, m); err != nil {
		return err
	}
	gens, err := index.ReadGenerations(s.dictionary(kv), m.Revision)
	if err != nil {
		return err
	}
	s.head.Store(&head{m.Revision, time.UnixMilli(m.Millis).UTC(), cat, gens, max(m.NextNumber, 1), m.Hash})
	s.layers = layers{mem: new(index.MemTree)}
	s.showFlushed(m.Revision)
	s.db.SetDiscardTs(uint64(m.Revision))
	return nil
}

// catchUp applies the commits of the log after the marker.
func (s *Store) catchUp(m index.Marker) error {
	if err := s.serveIndex(m); err != nil {
		return err
	}
	last := Revision(s.wal.Last())
	if m.Revision == last {
		return nil
	}
	s.log.Info("applying the log to the index", "from", m.Revision+1, "to", last)
	r := s.newReplay()
	r.keeps = s.counted && s.temporaryIndex == "" && !datadir.Exists(s.dir.Join(datadir.BuildingName))
	err := s.replayWith(r, m.Revision+1, last)
	s.replayed = uint64(s.head.Load().revision - m.Revision)
	if CodeOf(s.noteDamage(err)) == CodeLogDamaged {
		return nil // commits before the damage are visible
	}
	return err
}

// replayBytes is the amount of data that a replay gathers before it writes.
const replayBytes = 8 << 20

// replayLog applies the commits from … to of the log. It reads only the dictionary of the
// index, so that commits which are partly applied do no harm.
func (s *Store) replayLog(from, to Revision) error { return s.replayWith(s.newReplay(), from, to) }

func (s *Store) replayWith(r *replayer, from, to Revision) error {
	defer func() { r.giveUpBulk(); r.base.Close() }()
	progress := s.newProgress("applying the log to the index", uint64(to-from+1))
	for e, err := range s.wal.Entries(uint64(from), uint64(to)) {
		if err != nil {
			return errors.Join(base.ErrLog(err), r.endBulk(), r.finish())
		}
		c, err := logentry.ParseEntry(e.Payload, Revision(e.Index))
		inBulk := false
		if err == nil {
			if inBulk, err = r.replayInBulk(c); datadir.IsNoSpace(err) {
				// Commits that fit in memory are still served.
				r.giveUpBulk()
				r.reset()
				r.ordinary = true
				return s.replayWith(r, s.head.Load().revision+1, to)
			}
		}
		if err == nil && inBulk {
			progress.report(e.Index - uint64(from) + 1)
			continue
		}
		if err == nil {
			err = r.w.Replay(c, r.catalogue)
		}
		if err != nil {
			return err
		}
		r.last = c
		switch inMemory := s.readsInPlace() || r.full; {
		case inMemory && r.w.Overlay.Bytes >= s.options.tailBytes:
			return errTailTooLong
		case !inMemory && r.w.Overlay.Bytes >= replayBytes:
			if err := r.flush(); err != nil {
				return err
			}
		}
		progress.report(e.Index - uint64(from) + 1)
	}
	if err := r.endBulk(); datadir.IsNoSpace(err) {
		r.reset()
		r.ordinary = true
		return s.replayWith(r, s.head.Load().revision+1, to)
	} else if err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	progress.reportEnd(uint64(to - from + 1))
	return nil
}

type replayer struct {
	s         *Store
	base      *index.BadgerKV
	w         *index.IndexWriter
	catalogue *index.Catalogue
	last      *Commit

	bulk     *bulk // commits of loads that are not in the index yet; nil for none
	ordinary bool  // the bulk part did not fit on the volume

	keeps bool // keys that do not fit on the volume stay in memory
	full  bool // the volume is full
}

func (s *Store) newReplay() *replayer {
	// It reads the newest version of each key: the replay writes again what an interrupted
	// apply wrote.
	base := s.newKV(math.MaxUint64)
	o := index.NewOverlay(base)
	o.BaseUncertain = true
	w := index.NewIndexWriter(o, base, s.cache, s.head.Load().nextNumber)
	w.Dictionary.HashedTerms = s.hashedTerms
	w.Floor, w.WithoutSourceCounts, w.Generations = s.oldestReadable(), !s.counted, s.head.Load().generations
	return &replayer{s: s, base: base, w: w, catalogue: s.head.Load().catalogue.Copy()}
}

// flush writes the gathered keys and starts again.
func (r *replayer) flush() error {
	if r.last == nil {
		return nil
	}
	h, err := r.newHead()
	if err != nil {
		return err
	}
	if r.s.readsInPlace() {
		r.keepTail(h)
		return nil
	}
	err = writeIndex(r.s.db, r.w.Overlay.Tree(), r.s.markerOf(h), r.s.counted)
	if r.keeps && datadir.IsNoSpace(err) {
		r.full = true
		return nil
	}
	if err != nil {
		return err
	}
	r.s.apply(applied{head: h})
	r.reset()
	return nil
}

// finish ends a replay. Keys that do not fit on the volume are served from memory and written
// once there is space, as after a failed flush.
func (r *replayer) finish() error {
	if !r.full {
		if err := r.flush(); err != nil || !r.full {
			return err
		}
	}
	h, err := r.newHead()
	if err != nil {
		return err
	}
	r.s.log.Warn("the volume of the data directory is full: commits beyond the index stay in memory", "bytes", r.w.Overlay.Bytes)
	r.s.apply(applied{head: h, stuck: r.w.Overlay.Tree()})
	return nil
}

// newHead returns the head after the last commit replayed.
func (r *replayer) newHead() (*head, error) {
	hash, err := r.s.wal.Hash(uint64(r.last.Revision))
	return &head{r.last.Revision, r.last.Time, r.catalogue, r.w.Generations, r.w.Dictionary.Fresh.Next, hash}, err
}

// checkRebuild reads everything that a requested rebuild needs, so that the index is not
// discarded when it cannot be rebuilt.
func (s *Store) checkRebuild() error {
	if !s.options.Rebuild || datadir.Exists(s.dir.Join(datadir.BuildingName)) {
		return nil // there is no index to lose
	}
	if e := s.refused.Load(); e != nil {
		return e
	}
	if err := s.wal.Verify(context.Background(), nil); err != nil {
		return base.ErrLogDamaged(err)
	}
	return nil
}

// rebuildIndex rebuilds the index from the newest checkpoint and the log. It keeps the old
// index until the two are known to connect. If the index does not fit on the volume, it is
// built in a temporary directory, and the store is read-only.
func (s *Store) rebuildIndex(why string) error {
	err := s.rebuildIn(why, s.options.ReadOnly)
	if !datadir.IsNoSpace(err) || s.options.ReadOnly {
		return err
	}
	full := Errorf(CodeDiskFull, "the volume of the data directory %s is too full to rebuild the index", s.dir.Path)
	full.Hint = "free disk space and restart, or set TMPDIR to a directory on a volume with space, to build an index there for reading only"
	// The unfinished index is removed to free space. The mark that it must be rebuilt stays.
	if s.db != nil {
		_ = s.closeBadger() // it failed to write
	}
	if datadir.Exists(s.dir.Join(datadir.BuildingName)) {
		if err := os.RemoveAll(s.dir.Join(datadir.IndexName)); err != nil {
			return err
		}
	}
	aside := s.rebuildIn(why, true)
	if aside == nil {
		full.Message += ": it is in a temporary directory, updates are refused until the store is reopened with room, reads go on"
		full.Hint = "free disk space and restart"
		s.setReadOnly(full)
		return nil
	}
	full.Err = errors.Join(err, aside)
	return full
}

// rebuildIn rebuilds the index in its own directory or in a temporary one.
func (s *Store) rebuildIn(why string, aside bool) error {
	s.log.Warn("rebuilding the index", "why", why)
	s.rebuilt = why
	path, m, err := s.newestCheckpoint()
	if err != nil {
		return err
	}
	if first := Revision(s.wal.First()); first > m.Revision+1 {
		return base.ErrLogDamaged(fmt.Errorf("it begins at %d, and the newest checkpoint is of %d", first, m.Revision))
	}
	if s.db != nil {
		if err := s.closeBadger(); err != nil {
			s.log.Warn("closing the old index", "error", err)
		}
	}
	if err := s.clearIndex(aside); err != nil {
		return err
	}
	s.closedIndex.close()
	s.closedIndex = closedIndex{} // the new tables reuse the names
	s.cache, s.hashedTerms, s.unranked = index.NewTermCache(s.options.TermCache), false, false
	if err := s.openBadger(); err != nil {
		return err
	}
	if path != "" {
		if err := s.loadCheckpoint(path); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	if err := s.catchUp(m); err != nil {
		return err
	}
	if err := s.countSourceStatements(); err != nil || aside {
		return err
	}
	return datadir.RemoveFile(s.dir.Join(datadir.BuildingName))
}

// clearIndex removes the old index before a rebuild.
func (s *Store) clearIndex(aside bool) error {
	if aside {
		return s.useTemporaryIndex()
	}
	if err := datadir.WriteFile(s.dir.Join(datadir.BuildingName), nil); err != nil {
		return err
	}
	return os.RemoveAll(s.dir.Join(datadir.IndexName))
}

// progressEvery is the interval at which long parts of opening log their progress.
const progressEvery = time.Second

// progress logs the progress of a part of opening every progressEvery, and at its end the
// duration. It logs nothing of a shorter part.
type progress struct {
	log         *slog.Logger
	uptime      func() time.Duration
	what        string // the part
	of          uint64 // total; 0 if unknown
	began, said time.Duration
}

func (s *Store) newProgress(what string, of uint64) *progress {
	now := s.options.Uptime()
	return &progress{log: s.log, uptime: s.options.Uptime, what: what, of: of, began: now, said: now}
}

// report notes the amount of work done.
func (p *progress) report(done uint64) {
	now := p.uptime()
	if now-p.said < progressEvery {
		return
	}
	p.said = now
	p.logProgress(p.what, done, now)
}

// reportEnd notes that the part is complete.
func (p *progress) reportEnd(done uint64) {
	if now := p.uptime(); now-p.began >= progressEvery {
		p.logProgress(p.what+": done", done, now)
	}
}

func (p *progress) logProgress(message string, done uint64, now time.Duration) {
	args := []any{"done", done}
	if p.of > 0 {
		args = append(args, "of", p.of)
	}
	p.log.Info(message, append(args, "seconds", math.Round((now-p.began).Seconds()*10)/10)...)
}
