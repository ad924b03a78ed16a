package kg

import (
	"bytes"
	"errors"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/tidwall/btree"
)

// kv reads the keys of the index as they stand at one revision: a Badger
// snapshot, or one with the changes of unfinished updates over it.
type kv interface {
	// get calls fn with the value of the key, which is valid during the call
	// only. found is false, and fn not called, when there is none.
	get(key []byte, fn func(value []byte) error) (found bool, err error)
	// scan opens a cursor over the keys that begin with prefix (at least one
	// byte), standing before its first. It must be closed.
	scan(prefix []byte) cursor
}

// cursor walks keys in order. It belongs to one goroutine.
type cursor interface {
	// seek moves to the first key at or behind this one, which must begin with
	// the prefix.
	seek(key []byte)
	valid() bool
	next()
	// key is valid until the cursor moves.
	key() []byte
	// value calls fn with the value, valid during the call only.
	value(fn func(value []byte) error) error
	close()
}

// badgerKV is a snapshot of Badger. It may be used by several goroutines, each
// with its own cursors. Iterators are kept for the next scan of the same index:
// opening one costs more than a seek.
type badgerKV struct {
	txn *badger.Txn

	mu     sync.Mutex // guards idle and closed
	idle   map[byte][]*badger.Iterator
	closed bool
}

func newBadgerKV(db *badger.DB, at Revision) *badgerKV {
	return &badgerKV{txn: db.NewTransactionAt(uint64(at), false), idle: make(map[byte][]*badger.Iterator)}
}

// close ends the snapshot. No cursor may be open.
func (b *badgerKV) close() {
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

func (b *badgerKV) get(key []byte, fn func([]byte) error) (bool, error) {
	item, err := b.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, item.Value(fn)
}

func (b *badgerKV) scan(prefix []byte) cursor {
	b.mu.Lock()
	var it *badger.Iterator
	if its := b.idle[prefix[0]]; len(its) > 0 {
		it = its[len(its)-1]
		b.idle[prefix[0]] = its[:len(its)-1]
	}
	b.mu.Unlock()
	if it == nil {
		// PrefetchValues off: it costs twice the time for rows this small.
		it = b.txn.NewIterator(badger.IteratorOptions{Prefix: prefix[:1]})
	}
	it.Seek(prefix)
	return &badgerCursor{kv: b, it: it, prefix: prefix}
}

type badgerCursor struct {
	kv     *badgerKV
	it     *badger.Iterator
	prefix []byte
}

func (c *badgerCursor) seek(key []byte)                   { c.it.Seek(key) }
func (c *badgerCursor) valid() bool                       { return c.it.ValidForPrefix(c.prefix) }
func (c *badgerCursor) next()                             { c.it.Next() }
func (c *badgerCursor) key() []byte                       { return c.it.Item().Key() }
func (c *badgerCursor) value(fn func([]byte) error) error { return c.it.Item().Value(fn) }

func (c *badgerCursor) close() {
	if c.it == nil {
		return
	}
	c.kv.mu.Lock()
	defer c.kv.mu.Unlock()
	if c.kv.closed {
		c.it.Close()
	} else {
		c.kv.idle[c.prefix[0]] = append(c.kv.idle[c.prefix[0]], c.it)
	}
	c.it = nil
}

// overlay is what unfinished updates have written, in key order, over a
// snapshot. It is not a Badger transaction: those are limited in size and sort
// all they hold at every scan. It belongs to one goroutine.
type overlay struct {
	base    kv
	written *btree.Map[string, []byte] // a nil value: deleted; only read once the group is executed
	undo    []undoStep                 // since the last mark
	steps   uint64                     // counts writes, for open cursors to notice
	bytes   int
}

type undoStep struct {
	key   string
	value []byte
	had   bool
}

func newOverlay(base kv) *overlay {
	return &overlay{base: base, written: new(btree.Map[string, []byte])}
}

// mark makes what was written so far final; rollback undoes all since.
func (o *overlay) mark() { o.undo = o.undo[:0] }

func (o *overlay) rollback() {
	for i := len(o.undo) - 1; i >= 0; i-- {
		u := o.undo[i]
		if u.had {
			o.written.Set(u.key, u.value)
		} else {
			o.written.Delete(u.key)
		}
	}
	o.undo = o.undo[:0]
	o.steps++
}

// put writes a value, which may be empty and is kept.
func (o *overlay) put(key, value []byte) {
	if value == nil {
		value = []byte{}
	}
	o.set(key, value)
}

func (o *overlay) delete(key []byte) { o.set(key, nil) }

func (o *overlay) set(key, value []byte) {
	k := string(key)
	old, had := o.written.Set(k, value)
	o.undo = append(o.undo, undoStep{k, old, had})
	o.steps++
	o.bytes += len(k) + len(value)
}

func (o *overlay) get(key []byte, fn func([]byte) error) (bool, error) {
	if v, ok := o.written.Get(string(key)); ok {
		if v == nil {
			return false, nil
		}
		return true, fn(v)
	}
	return o.base.get(key, fn)
}

func (o *overlay) scan(prefix []byte) cursor {
	c := &overlayCursor{o: o, prefix: prefix, base: o.base.scan(prefix)}
	c.position(prefix)
	return c
}

// overlayCursor merges what was written with the base.
type overlayCursor struct {
	o      *overlay
	prefix []byte
	base   cursor
	steps  uint64

	// the entry of the overlay that comes next, if any
	top      string
	topValue []byte
	hasTop   bool

	current []byte // key that the cursor stands on
	onTop   bool   // its value is the overlay's
}

// position finds the first key at or behind from, on both sides.
func (c *overlayCursor) position(from []byte) {
	c.base.seek(from)
	c.seekTop(string(from))
	c.settle()
}

func (c *overlayCursor) seekTop(from string) {
	c.hasTop, c.steps = false, c.o.steps
	c.o.written.Ascend(from, func(k string, v []byte) bool {
		if len(k) >= len(c.prefix) && k[:len(c.prefix)] == string(c.prefix) {
			c.top, c.topValue, c.hasTop = k, v, true
		}
		return false
	})
}

// settle chooses the smaller side, passing over what is deleted.
func (c *overlayCursor) settle() {
	for {
		c.current = nil
		baseValid := c.base.valid()
		switch {
		case !c.hasTop && !baseValid:
			return
		case !c.hasTop || baseValid && string(c.base.key()) < c.top:
			c.current, c.onTop = append([]byte(nil), c.base.key()...), false
			return
		}
		if baseValid && string(c.base.key()) == c.top {
			c.base.next() // hidden by the overlay
		}
		if c.topValue != nil {
			c.current, c.onTop = []byte(c.top), true
			return
		}
		c.seekTop(c.top + "\x00")
	}
}

func (c *overlayCursor) seek(key []byte) { c.position(key) }
func (c *overlayCursor) valid() bool     { return c.current != nil }
func (c *overlayCursor) key() []byte     { return c.current }

func (c *overlayCursor) next() {
	after := append(c.current, 0)
	if c.steps != c.o.steps { // somebody wrote while the cursor stood still
		c.position(bytes.Clone(after))
		return
	}
	if c.onTop {
		c.seekTop(string(after))
	} else {
		c.base.next()
	}
	c.settle()
}

func (c *overlayCursor) value(fn func([]byte) error) error {
	if c.onTop {
		return fn(c.topValue)
	}
	return c.base.value(fn)
}

func (c *overlayCursor) close() { c.base.close() }
