package index

import (
	"bytes"
	"errors"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"koine/kg/internal/base"
)

// KV reads the keys of the index as they stand at one revision: a Badger
// snapshot, or one with the changes of unfinished updates over it.
type KV interface {
	// Get calls fn with the value of the key, which is valid during the call
	// only. found is false, and fn not called, when there is none.
	Get(key []byte, fn func(value []byte) error) (found bool, err error)
	// Scan opens a cursor over the keys that begin with prefix (at least one
	// byte), standing before its first. It must be closed.
	Scan(prefix []byte) Cursor
}

// Cursor walks keys in order. It belongs to one goroutine.
type Cursor interface {
	// Seek moves to the first key at or behind this one, which must begin with
	// the prefix.
	Seek(key []byte)
	// Move goes on to the keys that begin with another prefix of the same
	// order, and stands before their first. It is cheap where that lies close
	// ahead. The prefix must stay as it is until the next move.
	Move(prefix []byte)
	Valid() bool
	Next()
	// Key is valid until the cursor moves.
	Key() []byte
	// Value calls fn with the value, valid during the call only.
	Value(fn func(value []byte) error) error
	Close()
}

// BadgerKV is a snapshot of Badger. It may be used by several goroutines, each
// with its own cursors. Iterators are kept for the next scan of the same index:
// opening one costs more than a seek.
type BadgerKV struct {
	txn  *badger.Txn
	read *base.Counter // of the keys that were looked up or passed; nil for who does not count

	mu     sync.Mutex // guards idle and closed
	idle   map[byte][]*badger.Iterator
	closed bool
}

func NewBadgerKV(db *badger.DB, at base.Revision, read *base.Counter) *BadgerKV {
	return &BadgerKV{txn: db.NewTransactionAt(uint64(at), false), read: read, idle: make(map[byte][]*badger.Iterator)}
}

// Close ends the snapshot. No cursor may be open.
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
		// The iterator keeps its prefix for as long as it lives, and the caller
		// may write another one in the same place.
		it = b.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefix[0]}})
	}
	it.Seek(prefix)
	return &badgerCursor{kv: b, it: it, prefix: prefix, read: 1}
}

type badgerCursor struct {
	kv     *BadgerKV
	it     *badger.Iterator
	prefix []byte
	read   uint64 // keys; handed on by close, which other processors need not hear of before
}

func (c *badgerCursor) Seek(key []byte)                   { c.read++; c.it.Seek(key) }
func (c *badgerCursor) Valid() bool                       { return c.it.ValidForPrefix(c.prefix) }
func (c *badgerCursor) Next()                             { c.read++; c.it.Next() }
func (c *badgerCursor) Key() []byte                       { return c.it.Item().Key() }
func (c *badgerCursor) Value(fn func([]byte) error) error { return c.it.Item().Value(fn) }

// MaxStepsBeforeSeek is how many keys a cursor passes one by one before it seeks, which
// costs about as much.
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
		ahead = true // what was passed is less than the prefix
		c.Next()
	}
	if c.it.Valid() || !ahead {
		c.Seek(prefix)
	}
}

// isAhead tells that all keys with the prefix lie behind all keys with the old
// one, so that a cursor which has passed only keys of the old one, and less,
// has passed none with the prefix.
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

// PaceInterval is after how many keys (about a millisecond) a long scan calls pace.
const PaceInterval = 1024

func CompareIDs(a, b base.ID) int { return bytes.Compare(a[:], b[:]) }
