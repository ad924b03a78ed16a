package memtree

// Leaves counts the leaves.
func (m *Map[V]) Leaves() int {
	var count func(n *node[V]) int
	count = func(n *node[V]) (sum int) {
		if n.kids == nil {
			return 1
		}
		for _, kid := range n.kids[:n.n] {
			sum += count(kid)
		}
		return sum
	}
	return count(m.root)
}
