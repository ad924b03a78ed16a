package kg

import (
	"hash/maphash"
	"math/bits"
	"time"
)

// retryWatch is when it may make sense to ask for a watcher again.
const retryWatch = 5 * time.Second

// filterIndex finds the watchers whose pattern a change fits without looking at
// all of them: by which terms of the pattern are bound, and their hash. Terms
// that the store has not seen can be watched like any other.
type filterIndex struct {
	seed  maphash.Seed
	masks [16]map[uint64][]*Watcher // by which parts are bound
	used  []uint8                   // masks that hold any
}

func newFilterIndex() filterIndex { return filterIndex{seed: maphash.MakeSeed()} }

const (
	boundSubject = 1 << iota
	boundPredicate
	boundObject
	boundGraph
)

func maskOf(p Pattern) (mask uint8) {
	if !p.Subject.IsZero() {
		mask |= boundSubject
	}
	if !p.Predicate.IsZero() {
		mask |= boundPredicate
	}
	if !p.Object.IsZero() {
		mask |= boundObject
	}
	if !p.Graph.IsZero() {
		mask |= boundGraph
	}
	return mask
}

// hashes are those of a quad's four terms.
type hashes [4]uint64

func (x *filterIndex) hash(q Quad) (h hashes) {
	for i, t := range [...]*Term{&q.Subject, &q.Predicate, &q.Object, &q.Graph} {
		h[i] = maphash.String(x.seed, t.value) + uint64(t.kind)
		if kind := t.datatype + t.lang; kind != "" { // one of them is empty
			h[i] = bits.RotateLeft64(h[i], 1) ^ maphash.String(x.seed, kind)
		}
	}
	return h
}

// key combines the hashes of the parts that the mask binds.
func (h *hashes) key(mask uint8) uint64 {
	var k uint64
	for i := range h {
		if mask&(1<<i) != 0 {
			k = (k ^ h[i]) * 0x9e3779b97f4a7c15
		}
	}
	return k
}

func (x *filterIndex) add(w *Watcher) {
	mask := maskOf(w.filter.Pattern)
	if x.masks[mask] == nil {
		x.masks[mask] = make(map[uint64][]*Watcher)
		x.used = append(x.used, mask)
	}
	h := x.hash(Quad(w.filter.Pattern))
	k := h.key(mask)
	x.masks[mask][k] = append(x.masks[mask][k], w)
}

func (x *filterIndex) remove(w *Watcher) {
	mask := maskOf(w.filter.Pattern)
	h := x.hash(Quad(w.filter.Pattern))
	k := h.key(mask)
	list := x.masks[mask][k]
	for i, other := range list {
		if other == w {
			last := len(list) - 1
			list[i], list[last] = list[last], nil
			list = list[:last]
			break
		}
	}
	if len(list) == 0 {
		delete(x.masks[mask], k)
		return
	}
	x.masks[mask][k] = list
}

// match calls fn once for every watcher that the commit may concern, and not for
// each change: many may wait for everything while many things change at once. A
// nil commit may concern everybody.
func (x *filterIndex) match(c *Commit, fn func(*Watcher)) {
	if c == nil {
		for _, byKey := range x.masks {
			for _, list := range byKey {
				for _, w := range list {
					fn(w)
				}
			}
		}
		return
	}
	if len(x.used) == 0 {
		return
	}
	type bound struct {
		mask uint8
		key  uint64
	}
	told := make(map[bound]bool)
	for i := range c.Changes {
		h := x.hash(c.Changes[i].Quad)
		for _, mask := range x.used {
			b := bound{mask, h.key(mask)}
			list := x.masks[mask][b.key]
			if len(list) == 0 || told[b] {
				continue
			}
			told[b] = true
			for _, w := range list {
				fn(w)
			}
		}
	}
}
