package index

import (
	"bytes"

	"koine/kg/internal/memtree"
)

// MemTree holds keys of the index in memory, in order. A copy is cheap and
// shares what does not change.
type MemTree = memtree.Map[*MemValue]

// MemValue is what a layer in memory says of a key. It is never changed: layers and
// keys share it.
type MemValue struct {
	Value []byte // nil: deleted
	// Fresh tells that nothing below the layer has the key, so that deleting it
	// leaves nothing behind: a property that is replaced all the time does not
	// pile deletions up.
	Fresh bool
}

// Most keys have no value of their own.
var (
	DeletedKey = &MemValue{}
	PlainKey   = &MemValue{Value: NoValue}
	freshKey   = &MemValue{Value: NoValue, Fresh: true}
)

// Overlay is a layer of keys in memory over others. One that is written to
// belongs to one goroutine; one that is not may be read by many.
type Overlay struct {
	Base KV
	// Written is what was written, but for what nobody has read since: that is in
	// unread, in order. Most commits are about new things and are never read before
	// they go to the layer below, where the keys must be put in order anyway.
	Written *MemTree
	Pending []KeyWrite
	Marked  int        // how many of unread were there at the last mark
	Undo    []UndoStep // what was put in order, of what was written since the last mark
	steps   uint64     // counts writes, for open cursors to notice
	Bytes   int        // written, roughly
	// BaseUncertain says that the base may hold more than is known of it, as after an
	// apply that was cut short: nothing is taken for fresh.
	BaseUncertain bool
	latest        *MemValue  // that was made last: keys that come together often have the same
	room          []MemValue // for the next ones
}

// KeyWrite is a key with what was written under it.
type KeyWrite struct {
	Key   string
	Value *MemValue
}

// UndoStep is a key with what was written of it before, nil for nothing.
type UndoStep struct {
	key string
	old *MemValue
}

func NewOverlay(base KV) *Overlay { return &Overlay{Base: base, Written: new(MemTree)} }

// LayerOver puts a tree over a base, if it holds anything.
func LayerOver(base KV, t *MemTree) KV {
	if t == nil || t.Len() == 0 {
		return base
	}
	return &Overlay{Base: base, Written: t}
}

// Mark makes what was written so far final; rollback undoes all since.
func (o *Overlay) Mark() { o.Undo, o.Marked = o.Undo[:0], len(o.Pending) }

func (o *Overlay) Rollback() {
	clear(o.Pending[o.Marked:])
	o.Pending = o.Pending[:o.Marked]
	for i := len(o.Undo) - 1; i >= 0; i-- {
		u := o.Undo[i]
		if u.old != nil {
			o.Written.Set(u.key, u.old)
		} else {
			o.Written.Delete(u.key)
		}
	}
	o.Undo = o.Undo[:0]
	o.steps++
}

// Put writes a value, which may be empty and is kept.
func (o *Overlay) Put(key string, value []byte) { o.setValue(key, value, false) }

// PutNew is put for a key that does not exist.
func (o *Overlay) PutNew(key string, value []byte) { o.setValue(key, value, !o.BaseUncertain) }

// NoValue is that of a key without one; nil says that it was deleted.
var NoValue = []byte{}

func (o *Overlay) setValue(key string, value []byte, fresh bool) {
	o.appendWrite(key, o.valueOf(value, fresh))
}

func (o *Overlay) Delete(key string) { o.appendWrite(key, DeletedKey) }

func (o *Overlay) appendWrite(key string, v *MemValue) {
	o.Pending = append(o.Pending, KeyWrite{key, v})
	o.steps++
	o.Bytes += len(key) + len(v.Value)
}

// valueOf is what is kept of a value.
func (o *Overlay) valueOf(value []byte, fresh bool) *MemValue {
	switch v := o.latest; {
	case len(value) == 0 && fresh:
		return freshKey
	case len(value) == 0:
		return PlainKey
	case v != nil && v.Fresh == fresh && len(v.Value) == len(value) && &v.Value[0] == &value[0]:
		return v
	}
	if len(o.room) == 0 {
		o.room = make([]MemValue, valueChunk)
	}
	o.latest, o.room = &o.room[0], o.room[1:]
	*o.latest = MemValue{value, fresh}
	return o.latest
}

// valueChunk is how many values an overlay makes room for: one by one they cost
// more, and they go together, when the layer below has been written to Badger.
const valueChunk = 16

// Tree is all that was written, in order.
func (o *Overlay) Tree() *MemTree {
	for i, w := range o.Pending {
		old, _ := w.applyTo(o.Written)
		if i >= o.Marked {
			o.Undo = append(o.Undo, UndoStep{w.Key, old})
		}
	}
	if len(o.Pending) > 0 { // others may read one that is not written to
		clear(o.Pending)
		o.Pending, o.Marked = o.Pending[:0], 0
	}
	return o.Written
}

// FlushPending leaves nothing unread, here and in the layers below, so that many may read.
func (o *Overlay) FlushPending() {
	o.Tree()
	if below, ok := o.Base.(*Overlay); ok {
		below.FlushPending()
	}
}

// applyTo writes to a tree, over which nothing else was written. It gives what the tree
// had, nil for nothing, and by how many bytes it grew.
func (w KeyWrite) applyTo(t *MemTree) (old *MemValue, grown int) {
	if w.Value.Value == nil {
		if old, _ = t.Get(w.Key); old != nil && old.Fresh {
			t.Delete(w.Key)
			return old, -len(w.Key) - len(old.Value)
		}
	}
	at, had := t.GetOrInsert(w.Key)
	old = *at
	*at = w.Value
	if !had {
		return nil, len(w.Key) + len(w.Value.Value)
	}
	if w.Value.Fresh != old.Fresh {
		*at = &MemValue{w.Value.Value, old.Fresh} // what is below has not changed
	}
	return old, len(w.Value.Value) - len(old.Value)
}

// MergeInto writes a finished overlay into the tree right below it.
func (o *Overlay) MergeInto(t *MemTree) (grown int) {
	write := func(w KeyWrite) {
		_, by := w.applyTo(t)
		grown += by
	}
	o.Written.Scan(func(k string, v *MemValue) bool {
		write(KeyWrite{k, v})
		return true
	})
	for _, w := range o.Pending {
		write(w)
	}
	return grown
}

func (o *Overlay) Get(key []byte, fn func([]byte) error) (bool, error) {
	if v, ok := o.Tree().Get(string(key)); ok {
		return v.readValue(fn)
	}
	return o.Base.Get(key, fn)
}

// readValue is what kv.get answers where a layer has the key.
func (v *MemValue) readValue(fn func([]byte) error) (bool, error) {
	if v.Value == nil {
		return false, nil
	}
	return true, fn(v.Value)
}

// InMemory finds the keys that the layers in memory have, whatever is below these.
type InMemory struct{ KV }

func (m InMemory) Get(key []byte, fn func([]byte) error) (bool, error) {
	for o, ok := m.KV.(*Overlay); ok; o, ok = o.Base.(*Overlay) {
		if v, has := o.Tree().Get(string(key)); has {
			return v.readValue(fn)
		}
	}
	return false, nil
}

// getWritten is get of what was written here.
func (o *Overlay) getWritten(key string, fn func([]byte) error) (bool, error) {
	if v, ok := o.Tree().Get(key); ok && v.Value != nil {
		return true, fn(v.Value)
	}
	return false, nil
}

func (o *Overlay) Scan(prefix []byte) Cursor {
	c := &overlayCursor{o: o, prefix: prefix, base: o.Base.Scan(prefix), top: o.Tree().Iter()}
	c.seekTop(prefix)
	c.chooseSide()
	return c
}

// overlayCursor merges what was written with the base.
type overlayCursor struct {
	o      *Overlay
	prefix []byte
	base   Cursor
	steps  uint64

	top    memtree.Iter[*MemValue]
	topEnd bool // top has passed all keys
	hasTop bool // top stands on a key of the prefix

	// What it stands on, which stays although somebody writes meanwhile.
	on      layer
	scratch []byte // key of the top side
	found   *MemValue
}

// layer is where the cursor's current key is.
type layer uint8

const (
	onNone layer = iota
	onBase
	onTop
)

func (c *overlayCursor) seekTop(from []byte) {
	c.steps = c.o.steps
	c.o.Tree()
	c.setTop(c.top.Seek(string(from)))
}

func (c *overlayCursor) setTop(found bool) {
	c.topEnd = !found
	c.hasTop = found && len(c.top.Key()) >= len(c.prefix) && c.top.Key()[:len(c.prefix)] == string(c.prefix)
}

func (c *overlayCursor) Move(prefix []byte) {
	ahead := isAhead(prefix, c.prefix)
	c.prefix = prefix
	c.base.Move(prefix)
	if c.steps != c.o.steps || !ahead {
		c.seekTop(prefix)
	} else {
		c.moveTop()
	}
	c.chooseSide()
}

// moveTop goes ahead to the first key of the prefix.
func (c *overlayCursor) moveTop() {
	for range MaxStepsBeforeSeek {
		if c.topEnd || c.top.Key() >= string(c.prefix) {
			c.setTop(!c.topEnd)
			return
		}
		c.topEnd = !c.top.Next()
	}
	c.seekTop(c.prefix)
}

// chooseSide chooses the smaller side, passing over what is deleted.
func (c *overlayCursor) chooseSide() {
	for {
		baseValid := c.base.Valid()
		if !c.hasTop {
			c.on = onNone
			if baseValid {
				c.on = onBase
			}
			return
		}
		if baseValid {
			switch key := c.base.Key(); {
			case string(key) < c.top.Key():
				c.on = onBase
				return
			case string(key) == c.top.Key():
				c.base.Next() // hidden by the overlay
			}
		}
		if c.found = c.top.Value(); c.found.Value != nil {
			c.on, c.scratch = onTop, append(c.scratch[:0], c.top.Key()...)
			return
		}
		c.setTop(c.top.Next())
	}
}

func (c *overlayCursor) Seek(key []byte) {
	c.base.Seek(key)
	c.seekTop(key)
	c.chooseSide()
}

func (c *overlayCursor) Valid() bool { return c.on != onNone }

func (c *overlayCursor) Key() []byte {
	if c.on == onBase {
		return c.base.Key()
	}
	return c.scratch
}

func (c *overlayCursor) Next() {
	if c.steps != c.o.steps { // somebody wrote while the cursor stood still
		c.Seek(append(bytes.Clone(c.Key()), 0))
		return
	}
	if c.on == onTop {
		c.setTop(c.top.Next())
	} else {
		c.base.Next()
	}
	c.chooseSide()
}

func (c *overlayCursor) Value(fn func([]byte) error) error {
	if c.on == onTop {
		return fn(c.found.Value)
	}
	return c.base.Value(fn)
}

func (c *overlayCursor) Close() { c.base.Close() }
