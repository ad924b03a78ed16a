package kg

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"

	"koine/kg/base"
	"koine/kg/internal/datadir"
	"koine/kg/internal/erasure"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
	"koine/kg/internal/logentry"
	"koine/kg/internal/wal"
)

// Faults are the injectable failures below a store.
type Faults struct {
	LogFiles        types.VFS          // stands in for the file system under the log
	LogSegmentBytes int                // size of the log's files, so that a test has several
	AfterAppend     func() error       // called when a group is in the log and not yet in the index
	AfterRetain     func(string)       // called after each part of a round of the history option
	RetainEvery     time.Duration      // time between two of these rounds
	OverlapFrom     int                // updates that have to wait for the next group to be executed while the log takes one
	SummedFirst     int64              // how much of an index is summed before it is opened
	BulkFrom        int                // from how many quads on a load is one in bulk
	BulkChunk       int                // statements of a bulk load that are in memory
	BulkTableBytes  int                // of the tables of a bulk load, before another round
	BulkStep        func(string)       // called before each step of a bulk load
	UpgradeStep     func(string) error // called before each part of an upgrade of the index is completed
	GroupBytes      int                // from how many bytes for the log on a group takes no further update
	LoadCommitBytes int                // of text in a commit of a load
	BulkFromBytes   int                // from how many bytes of text on a load is one in bulk
	WholeFrom       int                // how many statements a graph may hold that is replaced in one ordinary commit
	WholeCommit     int                // statements of a commit of a larger one
	LoseAppend      func(first Revision) bool
	GatherFrom      time.Duration // how long an append has to take for others to run before a group is taken
}

// WithFaults gives the options with the faults in them.
func (o Options) WithFaults(f Faults) Options {
	o.logFiles, o.logSegmentBytes, o.afterAppend = f.LogFiles, f.LogSegmentBytes, f.AfterAppend
	o.afterRetain, o.retainEvery = f.AfterRetain, f.RetainEvery
	o.overlapFrom, o.gatherFrom = f.OverlapFrom, f.GatherFrom
	o.indexSummedFirst = f.SummedFirst
	o.bulkFrom, o.bulkChunk, o.bulkTableBytes, o.bulkStep = f.BulkFrom, f.BulkChunk, f.BulkTableBytes, f.BulkStep
	o.upgradeStep = f.UpgradeStep
	o.groupBytes, o.loadCommitBytes, o.bulkFromBytes = f.GroupBytes, f.LoadCommitBytes, f.BulkFromBytes
	o.wholeFrom, o.wholeCommit = f.WholeFrom, f.WholeCommit
	if f.LoseAppend != nil {
		o.wrapLog = func(l commitLog) commitLog { return losingLog{l, f.LoseAppend} }
	}
	return o
}

// FlattenIndex compacts the index into one level.
func (s *Store) FlattenIndex() error { return s.db.Flatten(1) }

// DataDir returns the data directory.
func (s *Store) DataDir() string { return s.dir.Path }

// losingLog loses appends.
type losingLog struct {
	commitLog
	lose func(first Revision) bool
}

func (l losingLog) AppendPrepared(first uint64, entries []wal.Prepared) error {
	if l.lose(Revision(first)) {
		return errAppendLost
	}
	return l.commitLog.AppendPrepared(first, entries)
}

// IndexRows lists all keys and values of the index as readers see them. How far
// Badger is, under the prefix 0, is left out.
func (s *Store) IndexRows() ([]string, error) {
	p, err := s.pin(context.Background())
	if err != nil {
		return nil, err
	}
	defer s.unpin(p)
	kv := p.kv
	var rows []string
	for prefix := 1; prefix < 256; prefix++ {
		c := kv.Scan([]byte{byte(prefix)})
		for ; c.Valid(); c.Next() {
			err := c.Value(func(v []byte) error {
				rows = append(rows, fmt.Sprintf("%x = %x", c.Key(), v))
				return nil
			})
			if err != nil {
				c.Close()
				return rows, err
			}
		}
		c.Close()
	}
	return rows, nil
}

// BackupUpTo writes a backup for which the newest entry had a hash when it began.
func (s *Store) BackupUpTo(ctx context.Context, hash string) error {
	b, err := s.beginBackup(ctx, BackupOptions{})
	if err != nil {
		return err
	}
	defer b.close()
	b.info.ToHash = hash
	out := newBackupWriter(io.Discard, b.info)
	err = b.writeTo(ctx, out, &BackupOptions{})
	return errors.Join(err, out.writeEnd(err))
}

// PruneStep is the number of intervals that a round of retention removes in a step.
const PruneStep = pruneStep

// StrayRows counts the rows that the index has in any order, of the present and the past,
// of content of graphs that counts at no revision, and the graphs of which one is being
// written.
func (s *Store) StrayRows() (rows, writing int, err error) {
	p, err := s.pin(context.Background())
	if err != nil {
		return 0, 0, err
	}
	defer s.unpin(p)
	t := p.head.generations
	stray := func(prefix []byte, graph func(key []byte) (ID, bool)) {
		c := p.kv.Scan(prefix)
		defer c.Close()
		for ; c.Valid(); c.Next() {
			id, ok := graph(c.Key())
			if !ok {
				err = errors.Join(err, fmt.Errorf("a key that cannot be read: %x", c.Key()))
			} else if !t.IsKept(id) {
				rows++
			}
		}
	}
	for _, o := range keys.Orders {
		for _, o := range []keys.Order{o, o.Past()} {
			stray([]byte{byte(o)}, func(key []byte) (ID, bool) {
				q, ok := o.Parse(key)
				return q.Graph, ok
			})
		}
	}
	for _, prefix := range [][]byte{keys.LastPrefix(), {keys.PrefixPredicate}, {keys.PrefixClass}} {
		stray(prefix, func(key []byte) (ID, bool) {
			graph, _, ok := keys.ParsePair(key)
			return graph, ok
		})
	}
	if t != nil {
		writing = len(t.Writing)
	}
	// An index rebuilt from the log has the entries of superseded generations
	// again until its first purge.
	for _, g := range t.Superseded() {
		if !p.head.catalogue.EverCounted(g.ID()) {
			rows++
		}
	}
	return rows, writing, err
}

// SpoilMarker makes the index one of another layout.
func (s *Store) SpoilMarker() error {
	w := &indexTxn{db: s.db, at: uint64(s.head.Load().revision)}
	w.setKey(index.MarkerKey, []byte{99})
	return w.commit()
}

// ApplyRows writes rows of IndexRows into the index of a closed data directory under a
// version, and deletes those of gone: the effect of an apply that was interrupted before it
// wrote its marker.
func ApplyRows(dir string, o Options, rows, gone []string, version Revision) error {
	if err := datadir.RemoveFile(filepath.Join(dir, datadir.IndexName, datadir.CleanName)); err != nil {
		return err
	}
	s := &Store{options: o.withDefaults(), log: slog.New(slog.DiscardHandler)}
	db, err := badger.OpenManaged(s.badgerOptions(filepath.Join(dir, datadir.IndexName)))
	if err != nil {
		return err
	}
	w := &indexTxn{db: db, at: uint64(version)}
	for _, row := range gone {
		w.setKey(parseRow(row)[0], nil)
	}
	for _, row := range rows {
		kv := parseRow(row)
		w.setKey(kv[0], kv[1])
	}
	return errors.Join(w.commit(), db.Close())
}

// HashTerms gives the index of a closed data directory the layout of keys.VersionHashed.
func HashTerms(dir string, o Options) (n int, err error) {
	return n, toLayout(dir, o, keys.VersionHashed, func(w *indexTxn, kv index.KV) error {
		if _, err := removeRanks(w, kv); err != nil {
			return err
		}
		records := kv.Scan(keys.NumberPrefix())
		defer records.Close()
		for ; records.Valid(); records.Next() {
			number, _ := keys.ParseNumber(records.Key())
			if err := records.Value(func(record []byte) error {
				if key, hashed := keys.Term(record, base.Hash16); hashed {
					n++
					w.setKey(key, nil)
					w.setKey(keys.HashedTerm(record, base.Hash16), binary.AppendUvarint(nil, number))
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// UnrankTerms gives the index of a closed data directory the layout of keys.VersionUnranked. It returns
// the number of removed keys.
func UnrankTerms(dir string, o Options) (n int, err error) {
	return n, toLayout(dir, o, keys.VersionUnranked, func(w *indexTxn, kv index.KV) (err error) {
		n, err = removeRanks(w, kv)
		return err
	})
}

// removeRanks removes the keys of values.
func removeRanks(w *indexTxn, kv index.KV) (n int, err error) {
	for _, prefix := range [][]byte{keys.RankedPrefix(), keys.Values(ID{}, 0)[:1]} {
		c := kv.Scan(prefix)
		for ; c.Valid(); c.Next() {
			n++
			w.setKey(bytes.Clone(c.Key()), nil)
		}
		c.Close()
	}
	return n, w.err
}

// toLayout changes the index of a closed data directory and gives it another version.
func toLayout(dir string, o Options, version byte, change func(*indexTxn, index.KV) error) error {
	if err := datadir.RemoveFile(filepath.Join(dir, datadir.IndexName, datadir.CleanName)); err != nil {
		return err
	}
	s := &Store{options: o.withDefaults(), log: slog.New(slog.DiscardHandler)}
	db, err := badger.OpenManaged(s.badgerOptions(filepath.Join(dir, datadir.IndexName)))
	if err != nil {
		return err
	}
	s.db = db
	kv := s.newKV(math.MaxUint64)
	w := &indexTxn{db: s.db, at: s.db.MaxVersion()}
	err = change(w, kv)
	_, failed := kv.Get(index.MarkerKey, func(v []byte) error {
		w.setKey(index.MarkerKey, append([]byte{version}, v[1:]...))
		return nil
	})
	kv.Close()
	return errors.Join(err, failed, w.commit(), s.db.Close())
}

// DropOldVersions compacts the index of a closed data directory with no reader of a revision
// before the given one: the index of a process that has written everything up to there, not
// all of it to tables.
func DropOldVersions(dir string, o Options, before Revision) error {
	s := &Store{options: o.withDefaults(), log: slog.New(slog.DiscardHandler)}
	// Badger flattens tables only if they are on two levels, or too many for the first.
	db, err := badger.OpenManaged(s.badgerOptions(filepath.Join(dir, datadir.IndexName)).WithNumCompactors(0).WithNumLevelZeroTables(1))
	if err != nil {
		return err
	}
	db.SetDiscardTs(uint64(before))
	return errors.Join(db.Flatten(1), db.Close())
}

func parseRow(row string) (kv [2][]byte) {
	key, value, _ := strings.Cut(row, " = ")
	kv[0], _ = hex.DecodeString(key)
	kv[1], _ = hex.DecodeString(value)
	return kv
}

// Scrubbed is closed when the log has been read through after opening.
func (s *Store) Scrubbed() <-chan struct{} { return s.scrubbed }

// CheckpointText is the whole content of a checkpoint, uncompressed.
func CheckpointText(path string) (string, error) {
	var b strings.Builder
	err := erasure.EachRecord(path, func(r erasure.CheckpointRecord) error {
		b.Write(r.Key)
		b.Write(r.Value)
		b.WriteByte('\n')
		return nil
	})
	return b.String(), err
}

// ErrStopped ends an erasing that a test has stop.
var ErrStopped = errors.New("stopped")

// EraseStopped is Erase, stopped after so many steps of putting the new store in
// the place of the old one; 0 is before the first.
func EraseStopped(ctx context.Context, dir string, o EraseOptions, after int) error {
	step := 0
	o.Step = func() error {
		if step++; step > after {
			return ErrStopped
		}
		return nil
	}
	_, err := Erase(ctx, dir, o)
	return err
}

// ShareLock gives the store's lock to a second file descriptor, as a child
// process has it between its fork and its exec.
func (s *Store) ShareLock() (closeShared func() error, err error) {
	fd, err := unix.Dup(int(s.dir.Lock.Fd()))
	return func() error { return unix.Close(fd) }, err
}

// Kept is of how many readers answers are kept, and of how many graphs of the one
// with the most.
func (s *Store) Kept() (readers, graphs int) {
	kept := s.accessCache.generation.Load()
	for i := range kept.places {
		if r := kept.places[i].Load(); r != nil {
			r.mu.Lock()
			readers, graphs = readers+1, max(graphs, r.used)
			r.mu.Unlock()
		}
	}
	return readers, graphs
}

// Exclusive runs fn as a bulk load's indexing is run, and Between as a step of the
// history option is: between two groups of the committer.
func (s *Store) Exclusive(fn func()) { runIn(s.exclusive, fn) }

// Between is beside Exclusive.
func (s *Store) Between(fn func()) { runIn(s.between, fn) }

func runIn(committer chan func(), fn func()) {
	done := make(chan struct{})
	committer <- func() { defer close(done); fn() }
	<-done
}

// CheckStep is how many keys or changes a check reads between two calls of Progress.
const CheckStep = checkStep

// WithBounds gives the options with other bounds on the memory of a check.
func (o CheckOptions) WithBounds(SortBytes, counted int) CheckOptions {
	o.SortBytes, o.counted = SortBytes, counted
	return o
}

// AppendCommit writes a commit to the log of a closed data directory, as the next.
func AppendCommit(dir string, c *Commit) error {
	l, err := wal.Open(filepath.Join(dir, datadir.LogName), wal.Options{SegmentBytes: 1 << 10})
	if err != nil {
		return err
	}
	return errors.Join(l.Append(l.Last()+1, [][]byte{logentry.AppendEntry(nil, c)}), l.Close())
}

// WithTailBytes gives the options with another bound on the memory of a read-only store.
func (o Options) WithTailBytes(bytes int) Options {
	o.tailBytes = bytes
	return o
}

// Aside is the temporary directory of a read-only store's index, "" for none.
const AsideGrace = temporaryIndexGrace

func (s *Store) Aside() string { return s.temporaryIndex }
