package memtree

// Iter iterates over a map. After a write to the map it must Seek again.
type Iter[V any] struct {
	m    *Map[V]
	leaf *node[V]
	at   int
	// path is the path of inner nodes above the leaf, each with the index of the child.
	path  [maxHeight]step[V]
	depth int
}

type step[V any] struct {
	n  *node[V]
	at int
}

// maxHeight exceeds the height of any tree: a tree grows when its root is full, and each child
// of an inner node resulted from filling a node that had width/4 children.
const maxHeight = 12

// Iter returns an unpositioned iterator; call Seek first.
func (m *Map[V]) Iter() Iter[V] { return Iter[V]{m: m} }

// Seek moves to the first key at or after key. It reports false if there is none.
func (it *Iter[V]) Seek(key string) bool {
	n := it.m.root
	if n == nil {
		it.leaf = nil
		return false
	}
	it.depth = 0
	for n.kids != nil {
		i := n.childIndex(key)
		it.path[it.depth] = step[V]{n, i}
		it.depth++
		n = n.kids[i]
	}
	it.leaf = n
	it.at, _ = n.findKey(key)
	return it.at < n.n || it.nextLeaf()
}

// Next moves to the next key. It reports false if there is none. The iterator must be valid.
func (it *Iter[V]) Next() bool {
	it.at++
	return it.at < it.leaf.n || it.nextLeaf()
}

// nextLeaf moves to the first key of the next leaf.
func (it *Iter[V]) nextLeaf() bool {
	for it.depth > 0 {
		s := &it.path[it.depth-1]
		if s.at++; s.at == s.n.n {
			it.depth--
			continue
		}
		n := s.n.kids[s.at]
		for n.kids != nil {
			it.path[it.depth] = step[V]{n, 0}
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

// Key returns the current key.
func (it *Iter[V]) Key() string { return it.leaf.keys[it.at] }

// Value returns the value of the current key.
func (it *Iter[V]) Value() V { return it.leaf.vals[it.at] }

// Ascend calls fn for all keys at or after from, in order, until fn returns false.
func (m *Map[V]) Ascend(from string, fn func(key string, value V) bool) {
	it := m.Iter()
	for ok := it.Seek(from); ok; ok = it.Next() {
		if !fn(it.Key(), it.Value()) {
			return
		}
	}
}

// Scan calls fn for all keys, in order, until fn returns false.
func (m *Map[V]) Scan(fn func(key string, value V) bool) { m.Ascend("", fn) }
