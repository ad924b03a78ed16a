package kg

import (
	"math"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
)

// applyLoop writes appended groups to the index in order, shows them to readers,
// and answers their callers.
func (s *Store) applyLoop() {
	defer s.stopped.Done()
	for g := range s.applying {
		if len(g.commits) > 0 && !g.failed {
			if err := s.apply(g); err != nil {
				s.writeFailed(g, err)
			}
		}
		close(g.applied)
		for _, u := range g.updates {
			close(u.done)
		}
		s.tailer.tell()
	}
}

// apply writes a group's keys to the index and shows it to readers.
func (s *Store) apply(g *group) error {
	if e := s.refused.Load(); e != nil {
		return e // the group before it failed: the index must not have a hole
	}
	last := g.commits[len(g.commits)-1]
	next := g.w.dict.fresh.next
	if s.options.beforeApply != nil {
		s.options.beforeApply(g.w.o)
	}
	if err := writeIndex(s.db, g.w.o, marker{s.dir.epoch, last.Revision, next, last.Time.UnixMilli(), g.hash}); err != nil {
		return err
	}
	for _, t := range g.w.dict.fresh.order {
		s.cache.add(t, g.w.dict.fresh.byTerm[t])
	}
	s.tailer.keep(g.commits)
	s.publish(&head{last.Revision, last.Time, g.catalogue, next})
	return nil
}

// writeIndex writes an overlay to Badger under the revision of the marker,
// which goes last.
func writeIndex(db *badger.DB, o *overlay, m marker) error {
	if o.written.Len() >= loaderKeys {
		return writeOrdered(db, o, m)
	}
	w := &indexTxn{db: db, at: uint64(m.revision)}
	o.written.Scan(func(key string, value []byte) bool {
		return w.set([]byte(key), value)
	})
	w.set(markerKey, m.encode())
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
func writeOrdered(db *badger.DB, o *overlay, m marker) error {
	const pendingBatches = 4
	loader := db.NewKVLoader(pendingBatches)
	version := uint64(m.revision)
	var err error
	o.written.Scan(func(key string, value []byte) bool {
		e := pb.KV{Key: []byte(key), Value: value, Version: version}
		if value == nil {
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
	w := &indexTxn{db: db, at: version}
	w.set(markerKey, m.encode())
	return w.commit()
}

// indexTxn splits what is written into as many transactions as Badger needs.
// The log is the truth, so they need not be one.
type indexTxn struct {
	db  *badger.DB
	at  uint64
	txn *badger.Txn
	err error
}

// set writes a key, or deletes it when value is nil; false after an error.
func (w *indexTxn) set(key, value []byte) bool {
	for w.err == nil {
		if w.txn == nil {
			w.txn = w.db.NewTransactionAt(math.MaxUint64, true)
		}
		var err error
		if value == nil {
			err = w.txn.Delete(key)
		} else {
			err = w.txn.SetEntry(badger.NewEntry(key, value))
		}
		if err == nil {
			return true
		}
		if err != badger.ErrTxnTooBig {
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
