// Package memtree is a sorted map in memory: a B+ tree whose copies cost nothing and
// share what does not change, and which finds the place of a key quickly where keys
// come in runs. Those of an index do: what is new about a predicate, a graph or the
// newest subject goes behind what was new about it before.
package memtree

// width is how many keys a leaf holds, and how many children any other node. A node
// that is shared is copied when it is written to, so that it should not be large.
const width = 32

// sparse is up to how many keys or children a node that lost one is joined with its
// neighbour, and joined up to how many the two may have together: a tree whose keys
// come and go does not keep a node for each that stayed.
const (
	sparse = width / 4
	joined = width * 3 / 4
)

// Map holds values by their keys, in the order of these. The zero value is an empty
// one. A map that is written to belongs to one goroutine; one that is not, may be read
// by many.
type Map[V any] struct {
	root *node[V]
	// owner is who may write to the nodes that have it: all others are shared with
	// copies.
	owner *owner
	len   int
	// near are leaves that were written to last, each in the place of its keys' runs;
	// as many as a power of two.
	near   []*node[V]
	missed int // how often the leaf at hand was not the one, since there are so many places
}

// owner is told from others by its address.
type owner struct{ _ byte }

// node is a leaf, or an inner node if it has kids.
type node[V any] struct {
	owner *owner
	n     int
	// last is where a leaf took the last key that was new.
	last int
	// low and high are bounds of a leaf: keys from low on and below high belong here,
	// others perhaps do too. No high is "".
	low, high string
	// keys are those of the leaf's values. Of an inner node keys[i] is at most the
	// least key below kids[i], and more than all below kids[i-1]; keys[0] says nothing.
	keys [width]string
	vals [width]V
	kids *[width]*node[V]
}

// Len is how many keys there are.
func (m *Map[V]) Len() int { return m.len }

// Copy is a map that says the same, and goes on saying it whatever becomes of this
// one. It writes to the map that it is called of.
func (m *Map[V]) Copy() *Map[V] {
	m.owner = nil // what is there is shared from now on
	return &Map[V]{root: m.root, len: m.len}
}

// Get is the value of a key.
func (m *Map[V]) Get(key string) (value V, found bool) {
	n := m.root
	if n == nil {
		return value, false
	}
	for n.kids != nil {
		n = n.kids[n.child(key)]
	}
	i, found := n.find(key)
	if found {
		value = n.vals[i]
	}
	return value, found
}

// Set gives a key a value, and says which it had.
func (m *Map[V]) Set(key string, value V) (old V, had bool) {
	at, had := m.Place(key)
	old, *at = *at, value
	return old, had
}

// Place is where the value of a key is, which is made if there is none: had is false,
// and the value the zero one, which must be replaced before the map is asked for
// anything else. What is written there after that is lost, or worse.
func (m *Map[V]) Place(key string) (value *V, had bool) {
	if m.owner == nil {
		m.own()
	}
	near := m.place(key)
	if leaf := *near; leaf != nil && leaf.owner == m.owner && leaf.n > 0 {
		if leaf.keys[leaf.n-1] < key { // as in a run that goes on
			if leaf.n < width && (key < leaf.high || leaf.high == "") {
				leaf.keys[leaf.n], leaf.last = key, leaf.n
				leaf.n++
				m.len++
				return &leaf.vals[leaf.n-1], false
			}
		} else if key >= leaf.low {
			i, had := leaf.find(key)
			if !had && leaf.n < width {
				leaf.open(i, key)
				m.len++
				return &leaf.vals[i], false
			}
			if had {
				return &leaf.vals[i], true
			}
		}
	}
	leaf := m.descend(key)
	i, had := leaf.find(key)
	if !had && leaf.n == width {
		leaf = m.split(key, i)
		i, _ = leaf.find(key)
	}
	if m.missed++; m.missed > len(m.near)*perPlace && len(m.near) < manyPlaces {
		m.near, m.missed = make([]*node[V], 4*len(m.near)), 0
		near = m.place(key)
	}
	*near = leaf
	if !had {
		leaf.open(i, key)
		m.len++
	}
	return &leaf.vals[i], had
}

// own makes the map one that writes to nodes of its own.
func (m *Map[V]) own() {
	m.owner = new(owner)
	if m.near == nil {
		m.near = make([]*node[V], fewPlaces)
	}
	if m.root == nil {
		m.root = &node[V]{owner: m.owner}
	}
}

// fewPlaces is how many leaves a map keeps at hand at first, manyPlaces at most. It has
// more when they were missed more than perPlace times for each.
const (
	fewPlaces  = 16
	manyPlaces = 1 << 10
	perPlace   = 4
)

// place is where the leaf is kept that was last written to in the run of a key. A run
// is told by the first ten bytes, which in keys of an index are what it is about, and
// of these by those that differ most. Short keys are one run for each first byte.
func (m *Map[V]) place(key string) **node[V] {
	var run uint64
	switch {
	case len(key) >= 10:
		run = uint64(key[0]) | uint64(key[1])<<8 | uint64(key[7])<<16 | uint64(key[8])<<24 | uint64(key[9])<<32
	case key != "":
		run = uint64(key[0])
	}
	const golden = 0x9e3779b97f4a7c15
	return &m.near[run*golden>>32&uint64(len(m.near)-1)]
}

// covers tells that a key belongs in the leaf, if anywhere.
func (n *node[V]) covers(key string) bool {
	return key >= n.low && (key < n.high || n.high == "")
}

// find is where a key of a leaf is, or would be.
func (n *node[V]) find(key string) (at int, found bool) {
	// The last key is asked first: most that are new go behind it.
	if n.n == 0 || n.keys[n.n-1] < key {
		return n.n, false
	}
	lo, hi := 0, n.n-1
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if n.keys[mid&(width-1)] < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, n.keys[lo&(width-1)] == key
}

// child is below which of its kids a key belongs.
func (n *node[V]) child(key string) int {
	lo, hi := 0, n.n-1 // the last whose key is at most this one
	for lo < hi {
		mid := int(uint(lo+hi+1) / 2)
		if n.keys[mid&(width-1)] <= key {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// open makes place for a key in a leaf that is not full.
func (n *node[V]) open(i int, key string) {
	if i < n.n {
		copy(n.keys[i+1:n.n+1], n.keys[i:n.n])
		copy(n.vals[i+1:n.n+1], n.vals[i:n.n])
		var none V
		n.vals[i] = none
	}
	n.keys[i] = key
	n.n++
	n.last = i
}

// descend is the leaf that a key belongs to, all nodes on the way the map's own.
func (m *Map[V]) descend(key string) *node[V] {
	n := m.mine(&m.root)
	var low, high string
	for n.kids != nil {
		i := n.child(key)
		if i > 0 {
			low = n.keys[i]
		}
		if i+1 < n.n {
			high = n.keys[i+1]
		}
		n = m.mine(&n.kids[i])
	}
	n.low, n.high = low, high
	return n
}

// mine is the node at a place, which is replaced by a copy if it is shared.
func (m *Map[V]) mine(at **node[V]) *node[V] {
	if (*at).owner == m.owner {
		return *at
	}
	n := **at
	n.owner = m.owner
	if n.kids != nil {
		kids := *n.kids
		n.kids = &kids
	}
	*at = &n
	return &n
}

// split makes room for a key that would be at i of its leaf, which is full, and gives
// the leaf that it belongs to then. Full nodes on the way are split before, so that
// each has room for what comes from below.
func (m *Map[V]) split(key string, i int) *node[V] {
	if m.root.n == width {
		root := &node[V]{owner: m.owner, n: 1, kids: new([width]*node[V])}
		root.kids[0] = m.root
		m.root = root
	}
	n := m.root
	for n.kids != nil {
		at := n.child(key)
		kid := n.kids[at]
		if kid.n < width {
			n = kid
			continue
		}
		var right *node[V]
		if kid.kids == nil {
			right = kid.splitLeaf(key, i)
		} else {
			right = kid.splitInner(key)
		}
		n.adopt(at+1, right)
		right.owner = m.owner
		if key >= right.low {
			kid = right
		}
		n = kid
	}
	return n
}

// adopt takes a kid, whose low is the least that it may hold.
func (n *node[V]) adopt(i int, kid *node[V]) {
	copy(n.keys[i+1:n.n+1], n.keys[i:n.n])
	copy(n.kids[i+1:n.n+1], n.kids[i:n.n])
	n.keys[i], n.kids[i] = kid.low, kid
	n.n++
}

// splitLeaf moves the keys from some place on to a new leaf. A run that goes on stays
// together, and leaves full leaves behind.
func (n *node[V]) splitLeaf(key string, i int) *node[V] {
	from := width / 2
	if i == n.n || i > 0 && i == n.last+1 {
		from = i
	}
	right := &node[V]{n: n.n - from, high: n.high, last: -1}
	copy(right.keys[:], n.keys[from:])
	copy(right.vals[:], n.vals[from:])
	clear(n.keys[from:])
	clear(n.vals[from:])
	right.low = key
	if right.n > 0 {
		right.low = right.keys[0]
	}
	n.n, n.high = from, right.low
	return right
}

// splitInner is splitLeaf of an inner node, whose kids all have something.
func (n *node[V]) splitInner(key string) *node[V] {
	from := width / 2
	if n.child(key) == n.n-1 {
		from = width * 3 / 4 // likely a run that goes on
	}
	right := &node[V]{n: n.n - from, kids: new([width]*node[V]), low: n.keys[from]}
	copy(right.keys[:], n.keys[from:])
	copy(right.kids[:], n.kids[from:])
	clear(n.keys[from:])
	clear(n.kids[from:])
	n.n = from
	return right
}

// Delete takes a key out, and says what it had.
func (m *Map[V]) Delete(key string) (old V, had bool) {
	if m.root == nil {
		return old, false
	}
	if m.owner == nil {
		m.own()
	}
	if leaf := *m.place(key); leaf != nil && leaf.owner == m.owner && leaf.n > sparse && leaf.covers(key) {
		old, had = leaf.remove(key)
	} else {
		old, had = m.deleteBelow(m.mine(&m.root), key)
		for m.root.kids != nil && m.root.n == 1 {
			m.root = m.root.kids[0]
		}
	}
	if had {
		m.len--
	}
	return old, had
}

// remove takes a key out of a leaf.
func (n *node[V]) remove(key string) (old V, had bool) {
	i, had := n.find(key)
	if !had {
		return old, false
	}
	var none V
	old = n.vals[i]
	copy(n.keys[i:n.n], n.keys[i+1:n.n])
	copy(n.vals[i:n.n], n.vals[i+1:n.n])
	n.n--
	n.keys[n.n], n.vals[n.n] = "", none
	n.last = -1
	return old, true
}

// deleteBelow takes a key out below a node of the map's own, and joins what becomes
// sparse.
func (m *Map[V]) deleteBelow(n *node[V], key string) (old V, had bool) {
	if n.kids == nil {
		return n.remove(key)
	}
	i := n.child(key)
	kid := m.mine(&n.kids[i])
	if old, had = m.deleteBelow(kid, key); !had || kid.n > sparse {
		return old, had
	}
	switch {
	case kid.n == 0:
		n.disown(i)
	case i+1 < n.n && kid.n+n.kids[i+1].n <= joined:
		m.join(n, i)
	case i > 0 && kid.n+n.kids[i-1].n <= joined:
		m.join(n, i-1)
	}
	return old, had
}

// join moves what is below the kid behind i to that at i.
func (m *Map[V]) join(n *node[V], i int) {
	left, right := m.mine(&n.kids[i]), m.mine(&n.kids[i+1])
	right.keys[0] = n.firstOf(i+1, right)
	copy(left.keys[left.n:], right.keys[:right.n])
	if left.kids == nil {
		copy(left.vals[left.n:], right.vals[:right.n])
	} else {
		copy(left.kids[left.n:], right.kids[:right.n])
	}
	left.n += right.n
	n.disown(i + 1)
}

// firstOf is the first key of a leaf, and what bounds the first kid of an inner node
// from below.
func (n *node[V]) firstOf(i int, kid *node[V]) string {
	if kid.kids == nil {
		return kid.keys[0]
	}
	return n.keys[i]
}

// disown lets a kid go, which no place keeps at hand any more.
func (n *node[V]) disown(i int) {
	n.kids[i].owner = nil
	copy(n.keys[i:n.n], n.keys[i+1:n.n])
	copy(n.kids[i:n.n], n.kids[i+1:n.n])
	n.n--
	n.keys[n.n], n.kids[n.n] = "", nil
}
