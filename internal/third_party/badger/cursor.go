package badger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/dgraph-io/badger/v4/skl"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// Cursor walks the keys of a prefix forward, as an Iterator does without prefetching. It
// copies neither keys nor values and reads no key ahead: that is most of the cost of an
// Iterator where a walk has a few keys. It belongs to one goroutine.
type Cursor struct {
	txn    *Txn
	prefix []byte
	all    []cursorSource
	// ahead are the sources that have keys left, in the order of their keys.
	ahead []*cursorSource

	key    []byte // without its version; nil at the end
	last   []byte // the key before: its older versions are skipped
	target []byte // of Seek
	value  y.ValueStruct
	closed bool
}

// cursorSource is one of the sorted runs that a Cursor merges: a memtable, a table of level
// 0, or another level.
type cursorSource struct {
	rank int // newer runs come first
	key  []byte

	memory *skl.Iterator
	table  *table.Iterator
	level  *table.ConcatIterator
}

// NewCursor returns a cursor over the keys with the prefix, except Badger's own. The caller
// closes it before the transaction, which must be read-only.
func (txn *Txn) NewCursor(prefix []byte) *Cursor {
	if txn.discarded {
		panic(ErrDiscardedTxn)
	}
	if txn.db.IsClosed() {
		panic(ErrDBClosed)
	}
	if txn.update || len(prefix) == 0 {
		panic(errors.New("badger: a Cursor needs a read-only transaction and a prefix"))
	}
	txn.numIterators.Add(1)
	txn.db.vlog.incrIteratorCount()
	memtables, release := txn.db.getMemTables()
	defer release()
	c := &Cursor{txn: txn, prefix: prefix}
	for _, t := range memtables {
		c.all = append(c.all, cursorSource{memory: t.sl.NewIterator()})
	}
	// As in appendIterators, from level 0 on: a compaction moves keys down.
	opt := IteratorOptions{Prefix: prefix}
	for _, level := range txn.db.lc.levels {
		for _, it := range level.appendIterators(nil, &opt) {
			switch it := it.(type) {
			case *table.Iterator:
				c.all = append(c.all, cursorSource{table: it})
			case *table.ConcatIterator:
				c.all = append(c.all, cursorSource{level: it})
			}
		}
	}
	for i := range c.all {
		c.all[i].rank = i
	}
	c.ahead = make([]*cursorSource, 0, len(c.all))
	return c
}

// Close releases the tables and memtables.
func (c *Cursor) Close() {
	if c.closed {
		return
	}
	c.closed, c.key = true, nil
	for i := range c.all {
		_ = c.all[i].close() // as Iterator.Close
	}
	_ = c.txn.db.vlog.decrIteratorCount()
	c.txn.numIterators.Add(-1)
}

// Seek moves to the first key at or behind key.
func (c *Cursor) Seek(key []byte) {
	c.target = binary.BigEndian.AppendUint64(append(c.target[:0], key...), math.MaxUint64-c.txn.readTs)
	c.last, c.ahead = c.last[:0], c.ahead[:0]
	for i := range c.all {
		s := &c.all[i]
		if s.seek(c.target) {
			c.ahead = append(c.ahead, s)
			c.place(len(c.ahead) - 1)
		}
	}
	c.settle()
}

// place moves the source at i forward to its place among those before it.
func (c *Cursor) place(i int) {
	for ; i > 0 && c.ahead[i].before(c.ahead[i-1]); i-- {
		c.ahead[i], c.ahead[i-1] = c.ahead[i-1], c.ahead[i]
	}
}

// before reports whether the source comes before another in the merge.
func (s *cursorSource) before(other *cursorSource) bool {
	c := y.CompareKeys(s.key, other.key)
	return c < 0 || c == 0 && s.rank < other.rank
}

// Valid reports whether the cursor is at a key.
func (c *Cursor) Valid() bool { return c.key != nil }

// Key returns the key, which is valid until the cursor moves.
func (c *Cursor) Key() []byte { return c.key }

// Value calls fn with the value, which is valid during the call.
func (c *Cursor) Value(fn func([]byte) error) error {
	if c.value.Meta&bitValuePointer == 0 {
		return fn(c.value.Value)
	}
	item, err := c.txn.Get(c.key) // of a value log
	if err != nil {
		return err
	}
	return item.Value(fn)
}

// Next moves to the next key.
func (c *Cursor) Next() {
	if c.key == nil {
		return
	}
	c.last = append(c.last[:0], c.key...)
	c.advance()
	c.settle()
}

// advance moves the first source by one entry.
func (c *Cursor) advance() {
	if !c.ahead[0].next() {
		c.ahead = append(c.ahead[:0], c.ahead[1:]...)
		return
	}
	for i := 1; i < len(c.ahead) && c.ahead[i].before(c.ahead[i-1]); i++ {
		c.ahead[i], c.ahead[i-1] = c.ahead[i-1], c.ahead[i]
	}
}

// settle moves to the first visible entry, if the cursor is not at one: of a version that
// the transaction reads, the newest of its key, and not a deletion.
func (c *Cursor) settle() {
	c.key = nil
	for ; len(c.ahead) > 0; c.advance() {
		s := c.ahead[0]
		key := s.key[:len(s.key)-8]
		if !bytes.HasPrefix(key, c.prefix) {
			return
		}
		if key[0] == badgerPrefix[0] && bytes.HasPrefix(key, badgerPrefix) {
			continue
		}
		if y.ParseTs(s.key) > c.txn.readTs || bytes.Equal(key, c.last) {
			continue
		}
		if c.value = s.value(); isDeletedOrExpired(c.value.Meta, c.value.ExpiresAt) || c.txn.db.isBanned(key) != nil {
			c.last = append(c.last[:0], key...)
			continue
		}
		c.key = key
		return
	}
}

func (s *cursorSource) seek(key []byte) bool {
	switch {
	case s.level != nil:
		s.level.Seek(key)
	case s.table != nil:
		s.table.Seek(key)
	default:
		s.memory.Seek(key)
	}
	return s.takeKey()
}

func (s *cursorSource) next() bool {
	switch {
	case s.level != nil:
		s.level.Next()
	case s.table != nil:
		s.table.Next()
	default:
		s.memory.Next()
	}
	return s.takeKey()
}

// takeKey notes the key at which the source is, and reports whether there is one.
func (s *cursorSource) takeKey() bool {
	switch {
	case s.level != nil:
		if !s.level.Valid() {
			return false
		}
		s.key = s.level.Key()
	case s.table != nil:
		if !s.table.Valid() {
			return false
		}
		s.key = s.table.Key()
	default:
		if !s.memory.Valid() {
			return false
		}
		s.key = s.memory.Key()
	}
	return true
}

func (s *cursorSource) value() y.ValueStruct {
	switch {
	case s.level != nil:
		return s.level.Value()
	case s.table != nil:
		return s.table.Value()
	}
	return s.memory.Value()
}

func (s *cursorSource) close() error {
	switch {
	case s.level != nil:
		return s.level.Close()
	case s.table != nil:
		return s.table.Close()
	}
	return s.memory.Close()
}
