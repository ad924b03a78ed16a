// Package memtree is a sorted in-memory map: a copy-on-write B+ tree with constant-time copies
// that share unchanged nodes. It is fast for keys that arrive in runs, as those of an index do:
// new keys of a predicate, a graph or the newest subject follow the previous ones.
package memtree

// width is the number of keys of a leaf and of children of an inner node. A shared node is copied
// when it is written to, so that it should not be large.
const width = 32

// A node that has lost an entry and has at most sparse entries left is joined with its neighbour
// if they have at most joined entries together: deletions do not leave many small nodes behind.
const (
	sparse = width / 4
	joined = width * 3 / 4
)

// Map is a sorted map. The zero value is empty. A map that is written to belongs to one goroutine;
// concurrent reads are safe without writes.
type Map[V any] struct {
	root *node[V]
	// owner marks the nodes that this map may write to. All others are shared with
	// copies.
	owner *owner
	len   int
	// leafCache caches the leaves written to last, each in the slot of its run of keys. Its
	// length is a power of two.
	leafCache []*node[V]
	missed    int // cache misses at the current size of near
}

// owner is compared by address.
type owner struct{ _ byte }

// node is a leaf, or an inner node if it has kids.
type node[V any] struct {
	owner *owner
	n     int
	// last is the index at which a leaf inserted its last new key.
	last int
	// low and high bound a leaf: keys in [low, high) belong here, others may as well. An
	// empty high is unbounded.
	low, high string
	// keys are the keys of a leaf. In an inner node keys[i] is at most the smallest key
	// below kids[i] and greater than all keys below kids[i-1]; keys[0] is unused.
	keys [width]string
	vals [width]V
	kids *[width]*node[V]
}

// Len returns the number of keys.
func (m *Map[V]) Len() int { return m.len }

// Copy returns a snapshot of the map that later writes to m do not change. Copy itself counts as
// a write to m.
func (m *Map[V]) Copy() *Map[V] {
	m.owner = nil // existing nodes are shared from now on
	return &Map[V]{root: m.root, len: m.len}
}

// Get returns the value of a key.
func (m *Map[V]) Get(key string) (value V, found bool) {
	n := m.root
	if n == nil {
		return value, false
	}
	for n.kids != nil {
		n = n.kids[n.childIndex(key)]
	}
	i, found := n.findKey(key)
	if found {
		value = n.vals[i]
	}
	return value, found
}

// Set sets the value of a key and returns the previous one.
func (m *Map[V]) Set(key string, value V) (old V, had bool) {
	at, had := m.GetOrInsert(key)
	old, *at = *at, value
	return old, had
}

// GetOrInsert returns the location of the value of a key. If the key is missing, it is
// inserted with the zero value and had is false. The location is valid until the next
// call on the map; a value must be stored before that if had is false.
func (m *Map[V]) GetOrInsert(key string) (value *V, had bool) {
	if m.owner == nil {
		m.takeOwnership()
	}
	near := m.cacheSlot(key)
	if leaf := *near; leaf != nil && leaf.owner == m.owner && leaf.n > 0 {
		if leaf.keys[leaf.n-1] < key { // the run continues
			if leaf.n < width && (key < leaf.high || leaf.high == "") {
				leaf.keys[leaf.n], leaf.last = key, leaf.n
				leaf.n++
				m.len++
				return &leaf.vals[leaf.n-1], false
			}
		} else if key >= leaf.low {
			i, had := leaf.findKey(key)
			if !had && leaf.n < width {
				leaf.insertAt(i, key)
				m.len++
				return &leaf.vals[i], false
			}
			if had {
				return &leaf.vals[i], true
			}
		}
	}
	leaf := m.ownedLeaf(key)
	i, had := leaf.findKey(key)
	if !had && leaf.n == width {
		leaf = m.splitFor(key, i)
		i, _ = leaf.findKey(key)
	}
	if m.missed++; m.missed > len(m.leafCache)*missesPerSlot && len(m.leafCache) < maxCacheSlots {
		m.leafCache, m.missed = make([]*node[V], 4*len(m.leafCache)), 0
		near = m.cacheSlot(key)
	}
	*near = leaf
	if !had {
		leaf.insertAt(i, key)
		m.len++
	}
	return &leaf.vals[i], had
}

// takeOwnership gives the map an owner, so that it writes to nodes of its own.
func (m *Map[V]) takeOwnership() {
	m.owner = new(owner)
	if m.leafCache == nil {
		m.leafCache = make([]*node[V], minCacheSlots)
	}
	if m.root == nil {
		m.root = &node[V]{owner: m.owner}
	}
}

// minCacheSlots is the initial size of the leaf cache, maxCacheSlots the largest. It
// grows after missesPerSlot misses per slot.
const (
	minCacheSlots = 16
	maxCacheSlots = 1 << 10
	missesPerSlot = 4
)

// cacheSlot returns the cache slot of the run of a key. A run is identified by the first ten bytes,
// which in index keys are the leading id, hashed by the bytes that vary most. Short keys are
// one run per first byte.
func (m *Map[V]) cacheSlot(key string) **node[V] {
	var run uint64
	switch {
	case len(key) >= 10:
		run = uint64(key[0]) | uint64(key[1])<<8 | uint64(key[7])<<16 | uint64(key[8])<<24 | uint64(key[9])<<32
	case key != "":
		run = uint64(key[0])
	}
	const golden = 0x9e3779b97f4a7c15
	return &m.leafCache[run*golden>>32&uint64(len(m.leafCache)-1)]
}

// contains reports whether the key belongs to the leaf.
func (n *node[V]) contains(key string) bool {
	return key >= n.low && (key < n.high || n.high == "")
}

// findKey returns the index of a key in a leaf, or the index at which to insert it.
func (n *node[V]) findKey(key string) (at int, found bool) {
	// Compare the last key first: most new keys follow it.
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

// childIndex returns the index of the child for a key.
func (n *node[V]) childIndex(key string) int {
	lo, hi := 0, n.n-1 // the last child with a key at most this one
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

// insertAt inserts a key with the zero value into a leaf that is not full.
func (n *node[V]) insertAt(i int, key string) {
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

// ownedLeaf returns the leaf for a key, after copying all shared nodes on the path.
func (m *Map[V]) ownedLeaf(key string) *node[V] {
	n := m.ownedNode(&m.root)
	var low, high string
	for n.kids != nil {
		i := n.childIndex(key)
		if i > 0 {
			low = n.keys[i]
		}
		if i+1 < n.n {
			high = n.keys[i+1]
		}
		n = m.ownedNode(&n.kids[i])
	}
	n.low, n.high = low, high
	return n
}

// ownedNode returns the node at a location, after replacing it by a copy if it is shared.
func (m *Map[V]) ownedNode(at **node[V]) *node[V] {
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

// splitFor makes room for a key at index i of its full leaf and returns the leaf for the key. Full
// nodes on the path are split first, so that each has room for a new child.
func (m *Map[V]) splitFor(key string, i int) *node[V] {
	if m.root.n == width {
		root := &node[V]{owner: m.owner, n: 1, kids: new([width]*node[V])}
		root.kids[0] = m.root
		m.root = root
	}
	n := m.root
	for n.kids != nil {
		at := n.childIndex(key)
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
		n.insertChild(at+1, right)
		right.owner = m.owner
		if key >= right.low {
			kid = right
		}
		n = kid
	}
	return n
}

// insertChild inserts a child at index i.
func (n *node[V]) insertChild(i int, kid *node[V]) {
	copy(n.keys[i+1:n.n+1], n.keys[i:n.n])
	copy(n.kids[i+1:n.n+1], n.kids[i:n.n])
	n.keys[i], n.kids[i] = kid.low, kid
	n.n++
}

// splitLeaf moves the keys from some index on to a new leaf. It keeps a run that continues
// together and leaves full leaves behind.
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

// splitInner splits an inner node. Both halves get children.
func (n *node[V]) splitInner(key string) *node[V] {
	from := width / 2
	if n.childIndex(key) == n.n-1 {
		from = width * 3 / 4 // likely a run that continues
	}
	right := &node[V]{n: n.n - from, kids: new([width]*node[V]), low: n.keys[from]}
	copy(right.keys[:], n.keys[from:])
	copy(right.kids[:], n.kids[from:])
	clear(n.keys[from:])
	clear(n.kids[from:])
	n.n = from
	return right
}

// Delete removes a key and returns its value.
func (m *Map[V]) Delete(key string) (old V, had bool) {
	if m.root == nil {
		return old, false
	}
	if m.owner == nil {
		m.takeOwnership()
	}
	if leaf := *m.cacheSlot(key); leaf != nil && leaf.owner == m.owner && leaf.n > sparse && leaf.contains(key) {
		old, had = leaf.removeKey(key)
	} else {
		old, had = m.deleteBelow(m.ownedNode(&m.root), key)
		for m.root.kids != nil && m.root.n == 1 {
			m.root = m.root.kids[0]
		}
	}
	if had {
		m.len--
	}
	return old, had
}

// removeKey removes a key from a leaf.
func (n *node[V]) removeKey(key string) (old V, had bool) {
	i, had := n.findKey(key)
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

// deleteBelow removes a key below a node that the map owns, and joins sparse nodes.
func (m *Map[V]) deleteBelow(n *node[V], key string) (old V, had bool) {
	if n.kids == nil {
		return n.removeKey(key)
	}
	i := n.childIndex(key)
	kid := m.ownedNode(&n.kids[i])
	if old, had = m.deleteBelow(kid, key); !had || kid.n > sparse {
		return old, had
	}
	switch {
	case kid.n == 0:
		n.removeChild(i)
	case i+1 < n.n && kid.n+n.kids[i+1].n <= joined:
		m.joinChildren(n, i)
	case i > 0 && kid.n+n.kids[i-1].n <= joined:
		m.joinChildren(n, i-1)
	}
	return old, had
}

// joinChildren moves the entries of the child at i+1 to the child at i.
func (m *Map[V]) joinChildren(n *node[V], i int) {
	left, right := m.ownedNode(&n.kids[i]), m.ownedNode(&n.kids[i+1])
	right.keys[0] = n.firstOf(i+1, right)
	copy(left.keys[left.n:], right.keys[:right.n])
	if left.kids == nil {
		copy(left.vals[left.n:], right.vals[:right.n])
	} else {
		copy(left.kids[left.n:], right.kids[:right.n])
	}
	left.n += right.n
	n.removeChild(i + 1)
}

// firstOf returns the first key of a leaf, or the lower bound of the first child of an inner node.
func (n *node[V]) firstOf(i int, kid *node[V]) string {
	if kid.kids == nil {
		return kid.keys[0]
	}
	return n.keys[i]
}

// removeChild removes a child. It clears the owner, so that a leaf in the cache is not written to.
func (n *node[V]) removeChild(i int) {
	n.kids[i].owner = nil
	copy(n.keys[i:n.n], n.keys[i+1:n.n])
	copy(n.kids[i:n.n], n.kids[i+1:n.n])
	n.n--
	n.keys[n.n], n.kids[n.n] = "", nil
}
