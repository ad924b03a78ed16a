package kg

import (
	"bytes"

	"koine/kg/internal/memtree"
)

// memTree holds keys of the index in memory, in order. A copy is cheap and
// shares what does not change.
type memTree = memtree.Map[*memValue]

// memValue is what a layer in memory says of a key. It is never changed: layers and
// keys share it.
type memValue struct {
	value []byte // nil: deleted
	// fresh tells that nothing below the layer has the key, so that deleting it
	// leaves nothing behind: a property that is replaced all the time does not
	// pile deletions up.
	fresh bool
}

// Most keys have no value of their own.
var (
	deletedKey = &memValue{}
	plainKey   = &memValue{value: noValue}
	freshKey   = &memValue{value: noValue, fresh: true}
)

// overlay is a layer of keys in memory over others. One that is written to
// belongs to one goroutine; one that is not may be read by many.
type overlay struct {
	base kv
	// written is what was written, but for what nobody has read since: that is in
	// unread, in order. Most commits are about new things and are never read before
	// they go to the layer below, where the keys must be put in order anyway.
	written *memTree
	unread  []keyWrite
	marked  int        // how many of unread were there at the last mark
	undo    []undoStep // what was put in order, of what was written since the last mark
	steps   uint64     // counts writes, for open cursors to notice
	bytes   int        // written, roughly
	// unsure says that the base may hold more than is known of it, as after an
	// apply that was cut short: nothing is taken for fresh.
	unsure bool
	latest *memValue  // that was made last: keys that come together often have the same
	room   []memValue // for the next ones
}

// keyWrite is a key with what was written under it.
type keyWrite struct {
	key   string
	value *memValue
}

// undoStep is a key with what was written of it before, nil for nothing.
type undoStep struct {
	key string
	old *memValue
}

func newOverlay(base kv) *overlay { return &overlay{base: base, written: new(memTree)} }

// layered puts a tree over a base, if it holds anything.
func layered(base kv, t *memTree) kv {
	if t == nil || t.Len() == 0 {
		return base
	}
	return &overlay{base: base, written: t}
}

// mark makes what was written so far final; rollback undoes all since.
func (o *overlay) mark() { o.undo, o.marked = o.undo[:0], len(o.unread) }

func (o *overlay) rollback() {
	clear(o.unread[o.marked:])
	o.unread = o.unread[:o.marked]
	for i := len(o.undo) - 1; i >= 0; i-- {
		u := o.undo[i]
		if u.old != nil {
			o.written.Set(u.key, u.old)
		} else {
			o.written.Delete(u.key)
		}
	}
	o.undo = o.undo[:0]
	o.steps++
}

// put writes a value, which may be empty and is kept.
func (o *overlay) put(key string, value []byte) { o.set(key, value, false) }

// putNew is put for a key that does not exist.
func (o *overlay) putNew(key string, value []byte) { o.set(key, value, !o.unsure) }

// noValue is that of a key without one; nil says that it was deleted.
var noValue = []byte{}

func (o *overlay) set(key string, value []byte, fresh bool) {
	o.write(key, o.valueOf(value, fresh))
}

func (o *overlay) delete(key string) { o.write(key, deletedKey) }

func (o *overlay) write(key string, v *memValue) {
	o.unread = append(o.unread, keyWrite{key, v})
	o.steps++
	o.bytes += len(key) + len(v.value)
}

// valueOf is what is kept of a value.
func (o *overlay) valueOf(value []byte, fresh bool) *memValue {
	switch v := o.latest; {
	case len(value) == 0 && fresh:
		return freshKey
	case len(value) == 0:
		return plainKey
	case v != nil && v.fresh == fresh && len(v.value) == len(value) && &v.value[0] == &value[0]:
		return v
	}
	if len(o.room) == 0 {
		o.room = make([]memValue, valuesAtOnce)
	}
	o.latest, o.room = &o.room[0], o.room[1:]
	*o.latest = memValue{value, fresh}
	return o.latest
}

// valuesAtOnce is how many values an overlay makes room for: one by one they cost
// more, and they go together, when the layer below has been written to Badger.
const valuesAtOnce = 16

// tree is all that was written, in order.
func (o *overlay) tree() *memTree {
	for i, w := range o.unread {
		old, _ := w.into(o.written)
		if i >= o.marked {
			o.undo = append(o.undo, undoStep{w.key, old})
		}
	}
	if len(o.unread) > 0 { // others may read one that is not written to
		clear(o.unread)
		o.unread, o.marked = o.unread[:0], 0
	}
	return o.written
}

// settle leaves nothing unread, here and in the layers below, so that many may read.
func (o *overlay) settle() {
	o.tree()
	if below, ok := o.base.(*overlay); ok {
		below.settle()
	}
}

// into writes to a tree, over which nothing else was written. It gives what the tree
// had, nil for nothing, and by how many bytes it grew.
func (w keyWrite) into(t *memTree) (old *memValue, grown int) {
	if w.value.value == nil {
		if old, _ = t.Get(w.key); old != nil && old.fresh {
			t.Delete(w.key)
			return old, -len(w.key) - len(old.value)
		}
	}
	at, had := t.GetOrInsert(w.key)
	old = *at
	*at = w.value
	if !had {
		return nil, len(w.key) + len(w.value.value)
	}
	if w.value.fresh != old.fresh {
		*at = &memValue{w.value.value, old.fresh} // what is below has not changed
	}
	return old, len(w.value.value) - len(old.value)
}

// mergeInto writes a finished overlay into the tree right below it.
func (o *overlay) mergeInto(t *memTree) (grown int) {
	write := func(w keyWrite) {
		_, by := w.into(t)
		grown += by
	}
	o.written.Scan(func(k string, v *memValue) bool {
		write(keyWrite{k, v})
		return true
	})
	for _, w := range o.unread {
		write(w)
	}
	return grown
}

func (o *overlay) get(key []byte, fn func([]byte) error) (bool, error) {
	if v, ok := o.tree().Get(string(key)); ok {
		return v.read(fn)
	}
	return o.base.get(key, fn)
}

// read is what kv.get answers where a layer has the key.
func (v *memValue) read(fn func([]byte) error) (bool, error) {
	if v.value == nil {
		return false, nil
	}
	return true, fn(v.value)
}

// inMemory finds the keys that the layers in memory have, whatever is below these.
type inMemory struct{ kv }

func (m inMemory) get(key []byte, fn func([]byte) error) (bool, error) {
	for o, ok := m.kv.(*overlay); ok; o, ok = o.base.(*overlay) {
		if v, has := o.tree().Get(string(key)); has {
			return v.read(fn)
		}
	}
	return false, nil
}

// getWritten is get of what was written here.
func (o *overlay) getWritten(key string, fn func([]byte) error) (bool, error) {
	if v, ok := o.tree().Get(key); ok && v.value != nil {
		return true, fn(v.value)
	}
	return false, nil
}

func (o *overlay) scan(prefix []byte) cursor {
	c := &overlayCursor{o: o, prefix: prefix, base: o.base.scan(prefix), top: o.tree().Iter()}
	c.seekTop(prefix)
	c.settle()
	return c
}

// overlayCursor merges what was written with the base.
type overlayCursor struct {
	o      *overlay
	prefix []byte
	base   cursor
	steps  uint64

	top    memtree.Iter[*memValue]
	topEnd bool // top has passed all keys
	hasTop bool // top stands on a key of the prefix

	// What it stands on, which stays although somebody writes meanwhile.
	on      layer
	scratch []byte // key of the top side
	found   *memValue
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
	c.o.tree()
	c.holdTop(c.top.Seek(string(from)))
}

func (c *overlayCursor) holdTop(found bool) {
	c.topEnd = !found
	c.hasTop = found && len(c.top.Key()) >= len(c.prefix) && c.top.Key()[:len(c.prefix)] == string(c.prefix)
}

func (c *overlayCursor) move(prefix []byte) {
	ahead := isAhead(prefix, c.prefix)
	c.prefix = prefix
	c.base.move(prefix)
	if c.steps != c.o.steps || !ahead {
		c.seekTop(prefix)
	} else {
		c.moveTop()
	}
	c.settle()
}

// moveTop goes ahead to the first key of the prefix.
func (c *overlayCursor) moveTop() {
	for range maxSteps {
		if c.topEnd || c.top.Key() >= string(c.prefix) {
			c.holdTop(!c.topEnd)
			return
		}
		c.topEnd = !c.top.Next()
	}
	c.seekTop(c.prefix)
}

// settle chooses the smaller side, passing over what is deleted.
func (c *overlayCursor) settle() {
	for {
		baseValid := c.base.valid()
		if !c.hasTop {
			c.on = onNone
			if baseValid {
				c.on = onBase
			}
			return
		}
		if baseValid {
			switch key := c.base.key(); {
			case string(key) < c.top.Key():
				c.on = onBase
				return
			case string(key) == c.top.Key():
				c.base.next() // hidden by the overlay
			}
		}
		if c.found = c.top.Value(); c.found.value != nil {
			c.on, c.scratch = onTop, append(c.scratch[:0], c.top.Key()...)
			return
		}
		c.holdTop(c.top.Next())
	}
}

func (c *overlayCursor) seek(key []byte) {
	c.base.seek(key)
	c.seekTop(key)
	c.settle()
}

func (c *overlayCursor) valid() bool { return c.on != onNone }

func (c *overlayCursor) key() []byte {
	if c.on == onBase {
		return c.base.key()
	}
	return c.scratch
}

func (c *overlayCursor) next() {
	if c.steps != c.o.steps { // somebody wrote while the cursor stood still
		c.seek(append(bytes.Clone(c.key()), 0))
		return
	}
	if c.on == onTop {
		c.holdTop(c.top.Next())
	} else {
		c.base.next()
	}
	c.settle()
}

func (c *overlayCursor) value(fn func([]byte) error) error {
	if c.on == onTop {
		return fn(c.found.value)
	}
	return c.base.value(fn)
}

func (c *overlayCursor) close() { c.base.close() }
