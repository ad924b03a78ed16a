package memtree

// Iter walks over a map that is not written to meanwhile: after a write it must seek
// anew.
type Iter[V any] struct {
	m    *Map[V]
	leaf *node[V]
	at   int
	// way are the inner nodes above the leaf, each with the kid that was taken.
	way   [maxHeight]step[V]
	depth int
}

type step[V any] struct {
	n  *node[V]
	at int
}

// maxHeight is more than how high a tree becomes: it grows when its root is full, and
// each kid of an inner node came by filling a node that had width/4 kids to begin with.
const maxHeight = 12

// Iter stands nowhere before its first Seek.
func (m *Map[V]) Iter() Iter[V] { return Iter[V]{m: m} }

// Seek goes to the first key from this one on; false if there is none.
func (it *Iter[V]) Seek(key string) bool {
	n := it.m.root
	if n == nil {
		it.leaf = nil
		return false
	}
	it.depth = 0
	for n.kids != nil {
		i := n.child(key)
		it.way[it.depth] = step[V]{n, i}
		it.depth++
		n = n.kids[i]
	}
	it.leaf = n
	it.at, _ = n.find(key)
	return it.at < n.n || it.nextLeaf()
}

// Next goes to the next key; false if there is none. It stands on one.
func (it *Iter[V]) Next() bool {
	it.at++
	return it.at < it.leaf.n || it.nextLeaf()
}

// nextLeaf goes to the first key of the leaf behind.
func (it *Iter[V]) nextLeaf() bool {
	for it.depth > 0 {
		s := &it.way[it.depth-1]
		if s.at++; s.at == s.n.n {
			it.depth--
			continue
		}
		n := s.n.kids[s.at]
		for n.kids != nil {
			it.way[it.depth] = step[V]{n, 0}
			it.depth++
			n = n.kids[0]
		}
		it.leaf, it.at = n, 0
		if n.n > 0 {
			return true
		}
	}
	it.leaf = nil
	return false
}

// Key and Value are of where it stands.
func (it *Iter[V]) Key() string { return it.leaf.keys[it.at] }

// Value: see Key.
func (it *Iter[V]) Value() V { return it.leaf.vals[it.at] }

// Ascend calls fn with all keys from this one on, in order, until it says false.
func (m *Map[V]) Ascend(from string, fn func(key string, value V) bool) {
	it := m.Iter()
	for ok := it.Seek(from); ok; ok = it.Next() {
		if !fn(it.Key(), it.Value()) {
			return
		}
	}
}

// Scan is Ascend of all keys.
func (m *Map[V]) Scan(fn func(key string, value V) bool) { m.Ascend("", fn) }
