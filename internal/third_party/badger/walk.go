/*
 * SPDX-FileCopyrightText: © 2017-2025 Istari Digital, Inc.
 * SPDX-License-Identifier: Apache-2.0
 */

package badger

import (
	"bytes"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// WalkKeys calls fn for each key with the prefix that a read-only transaction sees, in
// order, until fn returns false. A key is valid during the call. It is what an Iterator
// does without values, items and a merge of what has no key with the prefix, which costs
// a fraction of it.
func (txn *Txn) WalkKeys(prefix []byte, fn func(key []byte) bool) error {
	if txn.discarded {
		return ErrDiscardedTxn
	}
	if txn.db.IsClosed() {
		return ErrDBClosed
	}
	tables, decr := txn.db.getMemTables()
	defer decr()
	var all []y.Iterator
	for _, t := range tables {
		all = append(all, t.sl.NewUniIterator(false))
	}
	all = txn.db.lc.appendIterators(all, &IteratorOptions{Prefix: prefix})
	w := keyWalk{prefix: prefix, readTs: txn.readTs, fn: fn}
	from := y.KeyWithTs(prefix, txn.readTs)
	for _, it := range all {
		it.Seek(from)
		if it.Valid() && bytes.HasPrefix(it.Key(), prefix) {
			w.sources = append(w.sources, it)
		}
	}
	w.run()
	var failed error
	for _, it := range all {
		if err := it.Close(); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// keyWalk merges iterators, of which the first has precedence.
type keyWalk struct {
	sources []y.Iterator // each at a key with the prefix
	prefix  []byte
	readTs  uint64
	fn      func(key []byte) bool
	last    []byte // the newest key that the transaction sees, without its version
	meta    [3]byte
}

func (w *keyWalk) run() {
	for len(w.sources) > 0 {
		first, bound := w.pickSource()
		more, ended := w.drain(w.sources[first], bound)
		if !more {
			return
		}
		if ended {
			w.sources = append(w.sources[:first], w.sources[first+1:]...)
		}
	}
}

// pickSource returns the source with the least key, and the least key of the others, nil
// for none.
func (w *keyWalk) pickSource() (first int, bound []byte) {
	for i := 1; i < len(w.sources); i++ {
		key := w.sources[i].Key()
		switch {
		case y.CompareKeys(key, w.sources[first].Key()) < 0:
			first, bound = i, w.sources[first].Key()
		case bound == nil || y.CompareKeys(key, bound) < 0:
			bound = key
		}
	}
	return first, bound
}

// drain passes on the keys of a source that come before bound. It makes at least one step.
func (w *keyWalk) drain(it y.Iterator, bound []byte) (more, ended bool) {
	concat, _ := it.(*table.ConcatIterator)
	for {
		var key, value []byte
		if concat != nil {
			key, value = concat.Encoded()
		} else {
			vs := it.Value()
			w.meta = [3]byte{vs.Meta}
			if isDeletedOrExpired(vs.Meta, vs.ExpiresAt) {
				w.meta[0] |= bitDelete
			}
			key, value = it.Key(), w.meta[:]
		}
		if !bytes.HasPrefix(key, w.prefix) {
			return true, true
		}
		if !w.take(key, value) {
			return false, false
		}
		if concat != nil {
			concat.Next()
			if !concat.Valid() {
				return true, true
			}
		} else {
			it.Next()
			if !it.Valid() {
				return true, true
			}
		}
		if bound != nil {
			next := it.Key()
			if !bytes.HasPrefix(next, w.prefix) {
				return true, true
			}
			if y.CompareKeys(next, bound) >= 0 {
				return true, false
			}
		}
	}
}

// take passes a key on, unless it is too new, an older version, or deleted.
func (w *keyWalk) take(key, value []byte) bool {
	if y.ParseTs(key) > w.readTs {
		return true
	}
	name := y.ParseKey(key)
	if bytes.Equal(name, w.last) {
		return true
	}
	w.last = append(w.last[:0], name...)
	if value[0]&bitDelete != 0 || value[2] != 0 && w.isExpired(value) {
		return true
	}
	return w.fn(name)
}

func (w *keyWalk) isExpired(encoded []byte) bool {
	var vs y.ValueStruct
	vs.Decode(encoded)
	return isDeletedOrExpired(vs.Meta, vs.ExpiresAt)
}
