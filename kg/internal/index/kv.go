package index

import (
	"bytes"
	"errors"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"koine/kg/base"
)

// KV reads the keys of the index at one revision: from a Badger snapshot, or from one
// under the changes of unfinished updates.
type KV interface {
	// Get calls fn with the value of the key, which is valid during the call only. If the
	// key does not exist, found is false and fn is not called.
	Get(key []byte, fn func(value []byte) error) (found bool, err error)
	// Scan opens a cursor at the first key with the prefix, which has at least one byte.
	// The caller must close it.
	Scan(prefix []byte) Cursor
	// Walk calls fn for each key with the prefix, which has at least one byte, in order,
	// until it returns false. A key is valid during the call. It costs a fraction of a
	// cursor that goes the same way.
	Walk(prefix []byte, fn func(key []byte) bool) error
}

// Cursor walks keys in order. It belongs to one goroutine.
type Cursor interface {
	// Seek moves to the first key at or after key, which must begin with the prefix.
	Seek(key []byte)
	// Move changes the prefix to another one of the same order and moves to its first key.
	// It is cheap if that key is close ahead. The cursor retains prefix until the next
	// Move.
	Move(prefix []byte)
	// Valid reports whether the cursor is at a key with the prefix.
	Valid() bool
	// Next moves to the next key.
	Next()
	// Key returns the key, which is valid until the cursor moves.
	Key() []byte
	// Value calls fn with the value, valid during the call only.
	Value(fn func(value []byte) error) error
	Close()
}

// BadgerKV is a snapshot of Badger. It may be used by several goroutines, each with its
// own cursors. It reuses iterators of the same index, because opening one costs more than
// a seek.
type BadgerKV struct {
	txn  *badger.Txn
	read *base.Counter // keys that were looked up or passed; nil to disable counting

	mu     sync.Mutex // guards idle and closed
	idle   map[byte][]*badger.Iterator
	closed bool
}

// NewBadgerKV opens a snapshot at a revision. read counts the keys that are read and may
// be nil.
func NewBadgerKV(db *badger.DB, at base.Revision, read *base.Counter) *BadgerKV {
	return &BadgerKV{txn: db.NewTransactionAt(uint64(at), false), read: read, idle: make(map[byte][]*badger.Iterator)}
}

// Close closes the snapshot. All cursors must be closed before.
func (b *BadgerKV) Close() {
	b.mu.Lock()
	b.closed = true
	for _, its := range b.idle {
		for _, it := range its {
			it.Close()
		}
	}
	b.idle = nil
	b.mu.Unlock()
	b.txn.Discard()
}

// Get implements KV.
func (b *BadgerKV) Get(key []byte, fn func([]byte) error) (bool, error) {
	b.read.Add(1)
	item, err := b.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, item.Value(fn)
}

// Scan implements KV.
func (b *BadgerKV) Scan(prefix []byte) Cursor {
	b.mu.Lock()
	var it *badger.Iterator
	if its := b.idle[prefix[0]]; len(its) > 0 {
		it = its[len(its)-1]
		b.idle[prefix[0]] = its[:len(its)-1]
	}
	b.mu.Unlock()
	if it == nil {
		// PrefetchValues off: it costs twice the time for rows this small.
		// The iterator retains its prefix, and the caller may reuse the slice.
		it = b.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix[0]}})
	}
	it.Seek(prefix)
	return &badgerCursor{kv: b, it: it, prefix: prefix, read: 1}
}

// Walk implements KV.
func (b *BadgerKV) Walk(prefix []byte, fn func(key []byte) bool) error {
	var read uint64
	err := b.txn.WalkKeys(prefix, func(key []byte) bool {
		read++
		return fn(key)
	})
	b.read.Add(read)
	return err
}

type badgerCursor struct {
	kv     *BadgerKV
	it     *badger.Iterator
	prefix []byte
	read   uint64 // keys; added to the shared counter by Close only, to avoid contention
}

func (c *badgerCursor) Seek(key []byte)                   { c.read++; c.it.Seek(key) }
func (c *badgerCursor) Valid() bool                       { return c.it.ValidForPrefix(c.prefix) }
func (c *badgerCursor) Next()                             { c.read++; c.it.Next() }
func (c *badgerCursor) Key() []byte                       { return c.it.Item().Key() }
func (c *badgerCursor) Value(fn func([]byte) error) error { return c.it.Item().Value(fn) }

// MaxStepsBeforeSeek is the number of keys that a cursor passes one by one before it
// seeks, which costs about as much.
const MaxStepsBeforeSeek = 8

func (c *badgerCursor) Move(prefix []byte) {
	ahead := isAhead(prefix, c.prefix)
	c.prefix = prefix
	for range MaxStepsBeforeSeek {
		if !c.it.Valid() {
			break // behind all keys of the order
		}
		if bytes.Compare(c.it.Item().Key(), prefix) >= 0 {
			if ahead {
				return
			}
			c.Seek(prefix)
			return
		}
		ahead = true // the passed key is less than the prefix
		c.Next()
	}
	if c.it.Valid() || !ahead {
		c.Seek(prefix)
	}
}

// isAhead reports whether all keys with prefix sort after all keys with old, so that a
// cursor which has passed only keys up to those of old has passed none of prefix.
func isAhead(prefix, old []byte) bool {
	return bytes.Compare(prefix, old) > 0 && !bytes.HasPrefix(prefix, old)
}

func (c *badgerCursor) Close() {
	if c.it == nil {
		return
	}
	c.kv.read.Add(c.read)
	c.kv.mu.Lock()
	defer c.kv.mu.Unlock()
	if c.kv.closed {
		c.it.Close()
	} else {
		c.kv.idle[c.prefix[0]] = append(c.kv.idle[c.prefix[0]], c.it)
	}
	c.it = nil
}

// PaceInterval is the number of keys (about a millisecond) after which a long scan calls
// its pace function.
const PaceInterval = 1024
