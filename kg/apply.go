package kg

import (
	"math"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"

	"koine/kg/internal/datadir"
	"koine/kg/internal/index"
)

// layers are where the index is: in Badger up to a revision, over it a tree that
// is being written there, and over that the newest keys in memory. The log has
// them all, so that memory is soon enough to be seen; and a key that comes and
// goes in between never reaches Badger, where deletions pile up under scans.
// The committer alone changes them, under Store.mu.
type layers struct {
	flushed  Revision       // Badger's
	frozen   *index.MemTree // being written to Badger; nil for none
	mem      *index.MemTree
	memBytes int
	shared   *index.MemTree // a copy of mem that readers have; nil after a change
	frozenAt index.Marker   // of frozen
	flushing bool           // a goroutine writes frozen to Badger
	stuck    bool           // Badger had no room for frozen, which is to be written again
}

// newKV is the layers over a snapshot of Badger, with mem or a copy of it.
func (l *layers) newKV(base index.KV, mem *index.MemTree) index.KV {
	return index.Layered(index.Layered(base, l.frozen), mem)
}

// readerMem is a copy of mem that no later commit changes. Called under Store.mu.
func (l *layers) readerMem() *index.MemTree {
	if l.shared == nil {
		l.shared = l.mem.Copy()
	}
	return l.shared
}

// flushIdle is after how long without a commit the memory is written to Badger,
// so that reads have one layer again.
const flushIdle = time.Second

// flushRetry is after how long keys for which Badger had no room are written again.
const flushRetry = 5 * time.Second

func (s *Store) flushAfter() time.Duration {
	if s.layers.stuck {
		return flushRetry
	}
	return flushIdle
}

// applyGroup shows an appended group to readers.
func (s *Store) applyGroup(g *group) {
	if s.options.beforeApply != nil {
		s.options.beforeApply(g.w.O)
	}
	s.tellObservers(g.commits)
	if g.system {
		last := g.commits[len(g.commits)-1]
		s.followNames(last)
		if s.options.OnSystemChange != nil {
			s.options.OnSystemChange(last)
		}
	}
	s.tailer.addToRing(g.commits)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layers.memBytes += g.w.O.MergeInto(s.layers.mem)
	s.scratch.takeList(g.w.O)
	s.layers.shared = nil
	h := g.newHead()
	h.hash = g.hash
	s.showHead(h)
}

// markerOf is how far the head is.
func (s *Store) markerOf(h *head) index.Marker {
	return index.Marker{s.dir.Epoch, h.revision, h.nextNumber, h.time.UnixMilli(), h.hash}
}

// flushIfFull begins to write the memory to Badger when it is full; when the one
// before is still on its way, it waits for it.
func (s *Store) flushIfFull() {
	if s.layers.memBytes < s.options.memBytes() {
		return
	}
	s.awaitFlush()
	s.flushIfAny()
}

// awaitFlush waits for a write to Badger that is under way.
func (s *Store) awaitFlush() {
	if s.layers.flushing {
		s.endFlush(<-s.flushed)
	}
}

// flushIfAny begins to write the memory to Badger, unless one is on its way.
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
	go func() { s.flushed <- writeIndex(s.db, frozen, at, true) }() // the committer waits for it before it ends
}

// endFlush takes note that Badger has what was frozen.
func (s *Store) endFlush(err error) {
	s.layers.flushing = false
	if s.layers.stuck = datadir.IsNoSpace(err); s.layers.stuck {
		return // frozen stays, is read, and is written again
	}
	if err != nil {
		s.setReadOnly(errReadOnly("the index could not be written: no updates are taken until the store is reopened", err))
		return // frozen stays and is read
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.showFlushed(s.layers.frozenAt.Revision)
	s.layers.frozen = nil
	s.discardOld()
}

// flushAll writes all that is in memory to Badger and waits for it.
func (s *Store) flushAll() {
	s.awaitFlush()
	s.flushIfAny()
	s.awaitFlush()
	if !s.layers.stuck && s.layers.mem.Len() > 0 { // frozen was written again first
		s.flushIfAny()
		s.awaitFlush()
	}
}

// writeIndex writes a tree to Badger under the revision of the marker, which
// goes last. counted says that the counts by source are among what it has.
func writeIndex(db *badger.DB, t *index.MemTree, m index.Marker, counted bool) error {
	if t.Len() >= loaderKeys {
		return writeOrdered(db, t, m, counted)
	}
	w := &indexTxn{db: db, at: uint64(m.Revision)}
	t.Scan(func(key string, v *index.MemValue) bool {
		return w.setKey([]byte(key), v.Value)
	})
	return w.writeMarker(m, counted)
}

// writeMarker ends what is written with the marker.
func (w *indexTxn) writeMarker(m index.Marker, counted bool) error {
	if counted {
		w.setKey(index.CountedKey, []byte{1})
	}
	w.setKey(index.MarkerKey, m.Encode())
	return w.commit()
}

// loaderKeys is from how many keys on it pays to make a KVLoader, which keeps
// keys in order and goes without a transaction's map, but allocates a large list
// each time.
const loaderKeys = 256

// deleted is the bit of an entry's meta by which Badger knows a deletion; it
// does not export it.
var deleted = []byte{1 << 0}

// writeOrdered is writeIndex for many keys. Its batches reach the index in
// order, so that the marker is the last.
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

// indexTxn splits what is written into as many transactions as Badger needs.
// The log is the truth, so they need not be one.
type indexTxn struct {
	db    *badger.DB
	at    uint64
	txn   *badger.Txn
	empty bool // txn has no key yet: one that is too large for it is too large for any
	err   error

	floor   uint64 // of a checkpoint that is restored: what ended by then is left out
	counted bool   // the checkpoint has the counts by source
}

// setKey writes a key, or deletes it when value is nil; false after an error.
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
	}
	return w.err
}

// Observe has fn called with each commit from now on, in the order of their revisions,
// when it is durable and before any reader sees it; stop ends that. It is for what is
// kept in memory of journals, of which Options.OnSystemChange does not tell. fn is
// called under the committer and must neither block nor call the store. A bulk load is
// not told: it writes no graph of koine's own.
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

// observer is one that is told of commits.
type observer struct{ fn func(*Commit) }

func (s *Store) currentObservers() []*observer {
	if list := s.observers.Load(); list != nil {
		return *list
	}
	return nil
}

func (s *Store) tellObservers(commits []*Commit) {
	for _, o := range s.currentObservers() {
		for _, c := range commits {
			o.fn(c)
		}
	}
}
