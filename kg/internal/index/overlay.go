package index

import (
	"bytes"
	"strings"

	"koine/kg/internal/memtree"
)

// MemTree holds index keys in memory, in order. A copy is cheap and shares unchanged
// parts.
type MemTree = memtree.Map[*MemValue]

// MemValue is the entry of a key in an in-memory layer. It is immutable and shared by
// layers and keys.
type MemValue struct {
	Value []byte // nil: deleted
	// Fresh tells that no layer below has the key. Deleting it then removes the entry, so
	// that a property that is replaced all the time leaves no deletions behind.
	Fresh bool
}

// Shared entries: most keys have no value.
var (
	DeletedKey = &MemValue{}
	PlainKey   = &MemValue{Value: NoValue}
	freshKey   = &MemValue{Value: NoValue, Fresh: true}
)

// Overlay is a layer of keys in memory over another KV. While it is written to it belongs
// to one goroutine; afterwards many may read it.
type Overlay struct {
	Base KV
	// Written has the writes in order of keys, except those in Pending, which are in order
	// of time. A read merges Pending first. Most commits add new things that are not read
	// before they are merged into the layer below, which sorts them anyway.
	Written *MemTree
	Pending []KeyWrite
	Marked  int        // length of Pending at the last mark
	Undo    []UndoStep // merged writes since the last mark
	steps   uint64     // counts writes, for open cursors to notice
	Bytes   int        // written, roughly
	// BaseUncertain tells that the base may hold more keys than the marker says, as after
	// an interrupted apply. No key is treated as fresh then.
	BaseUncertain bool
	latest        *MemValue  // the last entry: consecutive keys often have the same value
	room          []MemValue // preallocated entries
}

// KeyWrite is the write of an entry under a key.
type KeyWrite struct {
	Key   string
	Value *MemValue
}

// UndoStep is a key with its entry before a write, nil if there was none.
type UndoStep struct {
	key string
	old *MemValue
}

// NewOverlay returns an empty layer over base.
func NewOverlay(base KV) *Overlay { return &Overlay{Base: base, Written: new(MemTree)} }

// LayerOver returns base under the tree t, or base itself if t is empty.
func LayerOver(base KV, t *MemTree) KV {
	if t == nil || t.Len() == 0 {
		return base
	}
	return &Overlay{Base: base, Written: t}
}

// Mark makes the writes so far final. Rollback undoes all writes since the last Mark.
func (o *Overlay) Mark() { o.Undo, o.Marked = o.Undo[:0], len(o.Pending) }

// Rollback undoes all writes since the last Mark.
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

// Put writes a value, which may be empty. The overlay retains it.
func (o *Overlay) Put(key string, value []byte) { o.setValue(key, value, false) }

// PutNew is Put for a key that does not exist.
func (o *Overlay) PutNew(key string, value []byte) { o.setValue(key, value, !o.BaseUncertain) }

// NoValue is the value of a key without one. A nil value is a deletion.
var NoValue = []byte{}

func (o *Overlay) setValue(key string, value []byte, fresh bool) {
	o.appendWrite(key, o.valueOf(value, fresh))
}

// Delete removes a key.
func (o *Overlay) Delete(key string) { o.appendWrite(key, DeletedKey) }

func (o *Overlay) appendWrite(key string, v *MemValue) {
	o.Pending = append(o.Pending, KeyWrite{key, v})
	o.steps++
	o.Bytes += len(key) + len(v.Value)
}

// valueOf returns the entry of a value, shared if possible.
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

// valueChunk is the number of entries allocated at once. They are freed together, when the
// layer below has been written to Badger.
const valueChunk = 16

// Tree merges the pending writes and returns all writes in order.
func (o *Overlay) Tree() *MemTree {
	for i, w := range o.Pending {
		old, _ := w.applyTo(o.Written)
		if i >= o.Marked {
			o.Undo = append(o.Undo, UndoStep{w.Key, old})
		}
	}
	if len(o.Pending) > 0 { // without pending writes the overlay may be shared: do not write
		clear(o.Pending)
		o.Pending, o.Marked = o.Pending[:0], 0
	}
	return o.Written
}

// FlushPending merges the pending writes of this layer and those below, so that concurrent
// reads are safe.
func (o *Overlay) FlushPending() {
	o.Tree()
	if below, ok := o.Base.(*Overlay); ok {
		below.FlushPending()
	}
}

// applyTo applies the write to a tree. It returns the previous entry, nil for none, and
// the growth in bytes.
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
		*at = &MemValue{w.Value.Value, old.Fresh} // the layers below have not changed
	}
	return old, len(w.Value.Value) - len(old.Value)
}

// MergeInto writes a finished overlay into the tree of the layer below it. It returns the
// growth in bytes.
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

// Get implements KV.
func (o *Overlay) Get(key []byte, fn func([]byte) error) (bool, error) {
	if v, ok := o.Tree().Get(string(key)); ok {
		return v.readValue(fn)
	}
	return o.Base.Get(key, fn)
}

// readValue completes KV.Get for a layer that has the key.
func (v *MemValue) readValue(fn func([]byte) error) (bool, error) {
	if v.Value == nil {
		return false, nil
	}
	return true, fn(v.Value)
}

// InMemory restricts Get to the layers in memory.
type InMemory struct{ KV }

// Get searches the overlays only.
func (m InMemory) Get(key []byte, fn func([]byte) error) (bool, error) {
	for o, ok := m.KV.(*Overlay); ok; o, ok = o.Base.(*Overlay) {
		if v, has := o.Tree().Get(string(key)); has {
			return v.readValue(fn)
		}
	}
	return false, nil
}

// getWritten is Get restricted to the writes of this layer.
func (o *Overlay) getWritten(key string, fn func([]byte) error) (bool, error) {
	if v, ok := o.Tree().Get(key); ok && v.Value != nil {
		return true, fn(v.Value)
	}
	return false, nil
}

// Scan implements KV.
func (o *Overlay) Scan(prefix []byte) Cursor {
	c := &overlayCursor{o: o, prefix: prefix, base: o.Base.Scan(prefix), top: o.Tree().Iter()}
	c.seekTop(prefix)
	c.chooseSide()
	return c
}

// Walk implements KV.
func (o *Overlay) Walk(prefix []byte, fn func(key []byte) bool) error {
	top := o.Tree().Iter()
	more := true
	hasTop := top.Seek(string(prefix)) && strings.HasPrefix(top.Key(), string(prefix))
	if !hasTop {
		return o.Base.Walk(prefix, fn)
	}
	// takeTop passes the writes before a key on.
	takeTop := func(before []byte) {
		for more && hasTop && (before == nil || top.Key() < string(before)) {
			if top.Value().Value != nil {
				more = fn([]byte(top.Key()))
			}
			hasTop = top.Next() && strings.HasPrefix(top.Key(), string(prefix))
		}
	}
	err := o.Base.Walk(prefix, func(key []byte) bool {
		if hasTop {
			takeTop(key)
		}
		if more && (!hasTop || top.Key() != string(key)) { // else the overlay hides it
			more = fn(key)
		}
		return more
	})
	if err == nil {
		takeTop(nil)
	}
	return err
}

// overlayCursor merges the writes of an overlay with its base.
type overlayCursor struct {
	o      *Overlay
	prefix []byte
	base   Cursor
	steps  uint64

	top    memtree.Iter[*MemValue]
	topEnd bool // top has passed all keys
	hasTop bool // top stands on a key of the prefix

	// The current key, which stays the same if the overlay is written to meanwhile.
	on      layer
	scratch []byte // key of the top side
	found   *MemValue
}

// layer is the side of the merge that has the cursor's current key.
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

// moveTop moves ahead to the first key of the prefix.
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

// chooseSide selects the side with the smaller key and skips deleted keys.
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
	if c.steps != c.o.steps { // the overlay was written to since the last move
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
