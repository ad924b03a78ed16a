package index

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

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
// own cursors. It keeps the cursors that were closed for the next scans, because opening
// one costs more than a seek.
type BadgerKV struct {
	txn  *badger.Txn
	read *base.Counter // keys that were looked up or passed; nil to disable counting

	mu      sync.Mutex // guards the fields below
	holders int        // until the last of them closes it
	idle    []idleCursor
	// round counts the calls of dropIdle, and timer is that of the next one.
	round int
	timer *time.Timer
	lasts bool // readers come and go: idle cursors are closed after IdleCursorTime
}

// idleCursor is a cursor without a scan.
type idleCursor struct {
	*badger.Cursor
	order byte // the first byte of its keys
	round int  // the last one that used it
}

const (
	// MaxIdleCursors bounds the cursors that a BadgerKV keeps.
	MaxIdleCursors = 64
	// IdleCursorTime is the time after which a cursor that nobody uses is closed: it keeps
	// tables that a compaction has replaced, and their files.
	IdleCursorTime = 2 * time.Second
)

// NewBadgerKV opens a snapshot at a revision. read counts the keys that are read and may
// be nil.
func NewBadgerKV(db *badger.DB, at base.Revision, read *base.Counter) *BadgerKV {
	return &BadgerKV{txn: db.NewTransactionAt(uint64(at), false), read: read, holders: 1}
}

// NewLastingKV is NewBadgerKV for a snapshot that many hold one after the other.
func NewLastingKV(db *badger.DB, at base.Revision, read *base.Counter) *BadgerKV {
	b := NewBadgerKV(db, at, read)
	b.lasts = true
	return b
}

// Hold adds a holder. It must close the snapshot, as its opener must. Hold returns false if
// all have closed it.
func (b *BadgerKV) Hold() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holders == 0 {
		return false
	}
	b.holders++
	return true
}

// Close closes the snapshot for one of its holders, after all cursors of that holder.
func (b *BadgerKV) Close() {
	b.mu.Lock()
	b.holders--
	if b.holders > 0 {
		b.mu.Unlock()
		return
	}
	idle := b.idle
	b.idle = nil
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
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
	at := b.takeIdle(prefix[0])
	if at == nil {
		// It retains its prefix, and the caller may reuse the slice.
		at = b.txn.NewCursor([]byte{prefix[0]})
	}
	at.Seek(prefix)
	return &badgerCursor{kv: b, Cursor: at, prefix: prefix, read: 1}
}

// takeIdle takes an idle cursor over the keys that begin with a byte, nil if there is none.
func (b *BadgerKV) takeIdle(order byte) *badger.Cursor {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.idle) - 1; i >= 0; i-- { // those used last are the warm ones
		if c := b.idle[i]; c.order == order {
			b.idle = slices.Delete(b.idle, i, i+1)
			return c.Cursor
		}
	}
	return nil
}

// keepIdle keeps a cursor for the next scan. It returns false if there are enough.
func (b *BadgerKV) keepIdle(c *badger.Cursor, order byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.idle) == MaxIdleCursors || b.holders == 0 {
		return false
	}
	b.idle = append(b.idle, idleCursor{c, order, b.round})
	if b.lasts && b.timer == nil {
		b.timer = time.AfterFunc(IdleCursorTime, b.dropIdle)
	}
	return true
}

// dropIdle closes the cursors that were not used since the last call. It holds mu, so that
// Close waits for it: nothing of a snapshot is open when Badger is closed.
func (b *BadgerKV) dropIdle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holders == 0 {
		return
	}
	b.idle = slices.DeleteFunc(b.idle, func(c idleCursor) bool {
		unused := c.round < b.round
		if unused {
			c.Close()
		}
		return unused
	})
	b.round++
	b.timer = nil
	if len(b.idle) > 0 {
		b.timer = time.AfterFunc(IdleCursorTime, b.dropIdle)
	}
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
	*badger.Cursor
	kv     *BadgerKV
	prefix []byte
	read   uint64 // keys; added to the shared counter by Close only, to avoid contention
}

func (c *badgerCursor) Seek(key []byte) { c.read++; c.Cursor.Seek(key) }
func (c *badgerCursor) Valid() bool     { return bytes.HasPrefix(c.Cursor.Key(), c.prefix) }
func (c *badgerCursor) Next()           { c.read++; c.Cursor.Next() }

// MaxStepsBeforeSeek is the number of keys that a cursor passes one by one before it
// seeks, which costs about as much.
const MaxStepsBeforeSeek = 8

func (c *badgerCursor) Move(prefix []byte) {
	ahead := isAhead(prefix, c.prefix)
	c.prefix = prefix
	for range MaxStepsBeforeSeek {
		if !c.Cursor.Valid() {
			break // behind all keys of the order
		}
		if bytes.Compare(c.Key(), prefix) >= 0 {
			if ahead {
				return
			}
			c.Seek(prefix)
			return
		}
		ahead = true // the passed key is less than the prefix
		c.Next()
	}
	if c.Cursor.Valid() || !ahead {
		c.Seek(prefix)
	}
}

// isAhead reports whether all keys with prefix sort after all keys with old, so that a
// cursor which has passed only keys up to those of old has passed none of prefix.
func isAhead(prefix, old []byte) bool {
	return bytes.Compare(prefix, old) > 0 && !bytes.HasPrefix(prefix, old)
}

func (c *badgerCursor) Close() {
	if c.Cursor == nil {
		return
	}
	c.kv.read.Add(c.read)
	if !c.kv.keepIdle(c.Cursor, c.prefix[0]) {
		c.Cursor.Close()
	}
	c.Cursor = nil
}

// PaceInterval is the number of keys (about a millisecond) after which a long scan calls
// its pace function.
const PaceInterval = 1024
