package kg

import (
	"hash/maphash"
	"math/bits"
	"time"
)

// retryWatch is when it may make sense to ask for a watcher again.
const retryWatch = 5 * time.Second

// filterIndex finds the watchers any of whose patterns a change fits without
// looking at all of them: by which terms of the pattern are bound, and their
// hash. Terms that the store has not seen can be watched like any other.
type filterIndex struct {
	seed  maphash.Seed
	masks [16]map[uint64][]*Watcher // by which parts are bound
	used  []uint8                   // masks that hold any
	round uint64                    // of match, so that each watcher is told once
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
		if kind := t.of; kind != "" {
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

// everyQuad is what a filter without patterns admits.
var everyQuad = []Pattern{{}}

// keys calls fn for the mask and the key of each of the watcher's patterns.
func (x *filterIndex) keys(w *Watcher, fn func(mask uint8, key uint64)) {
	patterns := w.filter.Patterns
	if patterns == nil {
		patterns = everyQuad
	}
	for _, p := range patterns {
		mask := maskOf(p)
		h := x.hash(Quad(p))
		fn(mask, h.key(mask))
	}
}

func (x *filterIndex) add(w *Watcher) {
	x.keys(w, func(mask uint8, key uint64) {
		if x.masks[mask] == nil {
			x.masks[mask] = make(map[uint64][]*Watcher)
			x.used = append(x.used, mask)
		}
		x.masks[mask][key] = append(x.masks[mask][key], w)
	})
}

func (x *filterIndex) remove(w *Watcher) {
	x.keys(w, func(mask uint8, key uint64) {
		list := x.masks[mask][key]
		for i, other := range list {
			if other == w {
				last := len(list) - 1
				list[i], list[last] = list[last], nil
				list = list[:last]
				break
			}
		}
		if len(list) == 0 {
			delete(x.masks[mask], key)
			return
		}
		x.masks[mask][key] = list
	})
}

// match calls fn once for every watcher that the commit may concern, and not for
// each change or pattern: many may wait for everything while many things change
// at once. A nil commit may concern everybody.
func (x *filterIndex) match(c *Commit, fn func(*Watcher)) {
	x.round++
	tell := func(list []*Watcher) {
		for _, w := range list {
			if w.round != x.round {
				w.round = x.round
				fn(w)
			}
		}
	}
	if c == nil {
		for _, byKey := range x.masks {
			for _, list := range byKey {
				tell(list)
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
			tell(list)
		}
	}
}
