package kg

import (
	"math"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"

	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// layers are the parts of the index: Badger up to a revision, a tree that is being written to
// it, and the newest keys in memory. The log has all of them, so memory is enough to make them
// visible, and a key that is added and removed in between never reaches Badger, where
// deletions slow scans down. Only the committer changes them, with Store.mu held.
type layers struct {
	flushed  Revision       // revision of Badger
	frozen   *index.MemTree // being written to Badger; nil for none
	mem      *index.MemTree
	memBytes int
	shared   *index.MemTree // a copy of mem for readers; nil after a change
	frozenAt index.Marker   // marker of frozen
	flushing bool           // a goroutine writes frozen to Badger
	stuck    bool           // Badger had no space for frozen, to be written again
}

// newKV returns all layers over a snapshot of Badger, with mem or a copy of it.
func (l *layers) newKV(base index.KV, mem *index.MemTree) index.KV {
	return index.LayerOver(index.LayerOver(base, l.frozen), mem)
}

// readerMem returns a copy of mem that later commits do not change. The caller holds Store.mu.
func (l *layers) readerMem() *index.MemTree {
	if l.shared == nil {
		l.shared = l.mem.Copy()
	}
	return l.shared
}

// flushIdle is the time without a commit after which memory is written to Badger, so that
// reads have one layer again.
const flushIdle = time.Second

// flushRetry is the time after which keys are written again that did not fit on the volume.
const flushRetry = 5 * time.Second

func (s *Store) flushAfter() time.Duration {
	if s.layers.stuck {
		return flushRetry
	}
	return flushIdle
}

// applied is a sequence of commits, all in the log, whose keys have been made by
// index.IndexWriter or, for those of a load, by bulkindex.
type applied struct {
	head *head
	// commits are told to observers; nil for commits that have none: those from before the
	// store was opened, and those of bulk loads, which write none of koine's own graphs.
	commits []*Commit
	system  bool // the last commit changes a graph that decisions depend on
	// One of these has the keys: an overlay that becomes part of memory, a tree that Badger had
	// no space for, or Badger itself if both are nil.
	overlay *index.Overlay
	stuck   *index.MemTree
}

// apply is the one way from the log to visible data, for a group of updates, for a replay
// and for a bulk load. It calls the observers, in the order of revisions, and then moves the
// head, which makes the keys, the catalogue and the generations visible together. No reader
// sees a commit that the observers have not seen. Nothing can fail: the fallible steps come before.
func (s *Store) apply(a applied) {
	s.notifyObservers(a.commits)
	if a.system {
		last := a.commits[len(a.commits)-1]
		s.followNames(last)
		s.options.OnSystemChange(last)
	}
	if len(a.commits) > 0 {
		s.tailer.addToRing(a.commits)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch l := &s.layers; {
	case a.overlay != nil:
		l.memBytes += a.overlay.MergeInto(l.mem)
		l.shared = nil
	case a.stuck != nil:
		l.frozen, l.frozenAt, l.stuck = a.stuck, s.markerOf(a.head), true
	default:
		s.showFlushed(a.head.revision)
		s.discardOld()
	}
	s.head.Store(a.head)
	close(s.moved)
	s.moved = make(chan struct{})
}

// markerOf returns the marker of a head, which the index stores with its keys.
func (s *Store) markerOf(h *head) index.Marker {
	return index.Marker{Epoch: s.dir.Epoch, Revision: h.revision, NextNumber: h.nextNumber, Millis: h.time.UnixMilli(), Hash: h.hash, HashedTerms: s.hashedTerms, Unranked: s.unranked}
}

// flushIfFull starts a flush of memory to Badger if memory is full. It waits for an earlier
// flush.
func (s *Store) flushIfFull() {
	if s.layers.memBytes < s.options.memBytes() {
		return
	}
	s.awaitFlush()
	s.flushIfAny()
}

// awaitFlush waits for the flush in progress, if any.
func (s *Store) awaitFlush() {
	if s.layers.flushing {
		s.endFlush(<-s.flushed)
	}
}

// flushIfAny starts a flush of memory to Badger unless one is in progress.
func (s *Store) flushIfAny() {
	l := &s.layers
	again := l.stuck && !l.flushing
	if !again && (l.frozen != nil || l.mem.Len() == 0) || s.refused.Load() != nil {
		return
	}
	s.mu.Lock()
	if !again {
		l.frozen, l.frozenAt = l.mem, s.markerOf(s.head.Load())
		l.mem, l.memBytes, l.shared = new(index.MemTree), 0, nil
	}
	l.flushing = true
	frozen, at := l.frozen, l.frozenAt
	s.mu.Unlock()
	go func() { s.flushed <- writeIndex(s.db, frozen, at, true) }() // the committer receives the result before it ends
}

// endFlush handles the result of a flush.
func (s *Store) endFlush(err error) {
	s.layers.flushing = false
	if s.layers.stuck = datadir.IsNoSpace(err); s.layers.stuck {
		return // frozen stays readable and is written again
	}
	if err != nil {
		s.setReadOnly(errReadOnly("the index could not be written: updates are refused until the store is reopened", err))
		return // frozen stays readable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showFlushed(s.layers.frozenAt.Revision)
	s.layers.frozen = nil
	s.discardOld()
}

// flushAll writes all keys in memory to Badger and waits for it.
func (s *Store) flushAll() {
	s.awaitFlush()
	s.flushIfAny()
	s.awaitFlush()
	if !s.layers.stuck && s.layers.mem.Len() > 0 { // the first flush retried frozen
		s.flushIfAny()
		s.awaitFlush()
	}
}

// writeIndex writes a tree to Badger under the marker's revision, and the marker last. counted
// means that the keys include the counts by source.
func writeIndex(db *badger.DB, t *index.MemTree, m index.Marker, counted bool) error {
	switch {
	case t.Len() >= tableKeys:
		return writeTable(db, t, m, counted)
	case t.Len() >= loaderKeys:
		return writeOrdered(db, t, m, counted)
	}
	w := &indexTxn{db: db, at: uint64(m.Revision)}
	t.Scan(func(key string, v *index.MemValue) bool {
		return w.setKey([]byte(key), v.Value)
	})
	return w.writeMarker(m, counted)
}

// tableKeys is the number of keys from which a tree becomes a table of its own. Smaller ones
// gather in a memtable of Badger, since many small tables have to be merged again.
const tableKeys = 1 << 16

// writeTable is writeIndex for a tree that is worth a table. It spares the way through
// Badger's memtables, and all keys become readable in one step with the marker.
func writeTable(db *badger.DB, t *index.MemTree, m index.Marker, counted bool) error {
	w := db.NewSortedWriter(t.Len() * 2 * keys.QuadKeySize)
	w.Add(string(index.MarkerKey), m.Encode(), false, uint64(m.Revision))
	if counted {
		w.Add(string(index.SourceCountsKey), []byte{1}, false, uint64(m.Revision))
	}
	t.Scan(func(key string, v *index.MemValue) bool {
		w.Add(key, v.Value, v.Value == nil, uint64(m.Revision))
		return true
	})
	return w.Commit()
}

// writeMarker writes the marker and commits.
func (w *indexTxn) writeMarker(m index.Marker, counted bool) error {
	if counted {
		w.setKey(index.SourceCountsKey, []byte{1})
	}
	w.setKey(index.MarkerKey, m.Encode())
	return w.commit()
}

// loaderKeys is the number of keys from which a KVLoader pays: it needs sorted keys and no map
// of a transaction, but allocates a large list each time.
const loaderKeys = 256

// deleted is the meta bit that marks a deletion in Badger, which does not export it.
var deleted = []byte{1 << 0}

// writeOrdered is writeIndex for many keys. Badger gets its batches in order, so that the
// marker is the last.
func writeOrdered(db *badger.DB, t *index.MemTree, m index.Marker, counted bool) error {
	const pendingBatches = 4
	loader := db.NewKVLoader(pendingBatches)
	e := pb.KV{Version: uint64(m.Revision)} // Set copies the key
	var err error
	t.Scan(func(key string, v *index.MemValue) bool {
		e.Key, e.Value, e.Meta = append(e.Key[:0], key...), v.Value, nil
		if v.Value == nil {
			e.Meta = deleted
		}
		err = loader.Set(&e)
		return err == nil
	})
	if err == nil {
		err = loader.Finish()
	}
	if err != nil {
		return err
	}
	w := &indexTxn{db: db, at: uint64(m.Revision)}
	return w.writeMarker(m, counted)
}

// indexTxn splits writes into as many transactions as Badger needs. They need not be atomic:
// the log is the source of truth.
type indexTxn struct {
	db    *badger.DB
	at    uint64
	txn   *badger.Txn
	empty bool // txn has no key yet: a key that does not fit now never fits
	err   error

	floor   uint64            // of a checkpoint that is restored: history before it is left out
	counted bool              // the checkpoint has the counts by source
	ranked  index.RankedTerms // those whose ranks were written
}

// setKey writes a key, or deletes it if value is nil. It returns false after an error.
func (w *indexTxn) setKey(key, value []byte) bool {
	for w.err == nil {
		if w.txn == nil {
			w.txn, w.empty = w.db.NewTransactionAt(math.MaxUint64, true), true
		}
		var err error
		if value == nil {
			err = w.txn.Delete(key)
		} else {
			err = w.txn.SetEntry(badger.NewEntry(key, value))
		}
		if err == nil {
			w.empty = false
			return true
		}
		if err != badger.ErrTxnTooBig || w.empty {
			w.txn.Discard()
			w.err = err
			return false
		}
		w.err = w.txn.CommitAt(w.at, nil)
		w.txn = nil
	}
	return false
}

func (w *indexTxn) commit() error {
	if w.err == nil && w.txn != nil {
		w.err = w.txn.CommitAt(w.at, nil)
		w.txn = nil
	}
	return w.err
}

// Observe calls fn with each commit from now on, in the order of revisions, when the commit is
// durable and before any reader sees it. Calling stop ends that. It serves in-memory state
// derived from journals, which Governor.OnSystemChange does not report. The committer calls fn:
// it must not block or call the store. Bulk loads are not reported: they write none of koine's
// own graphs.
func (s *Store) Observe(fn func(*Commit)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &observer{fn}
	s.observers.Store(new(append(slices.Clone(s.currentObservers()), o)))
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.observers.Store(new(slices.DeleteFunc(slices.Clone(s.currentObservers()), func(other *observer) bool { return other == o })))
	}
}

// observer is a registered function, compared by its address.
type observer struct{ fn func(*Commit) }

func (s *Store) currentObservers() []*observer {
	if list := s.observers.Load(); list != nil {
		return *list
	}
	return nil
}

func (s *Store) notifyObservers(commits []*Commit) {
	for _, o := range s.currentObservers() {
		for _, c := range commits {
			o.fn(c)
		}
	}
}
