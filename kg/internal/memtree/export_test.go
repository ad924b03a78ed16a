package memtree

import "fmt"

// Leaves counts the leaves.
func (m *Map[V]) Leaves() (n int) {
	m.eachLeaf(func(*node[V]) { n++ })
	return n
}

func (m *Map[V]) eachLeaf(fn func(*node[V])) {
	var walk func(n *node[V])
	walk = func(n *node[V]) {
		if n.kids == nil {
			fn(n)
			return
		}
		for _, kid := range n.kids[:n.n] {
			walk(kid)
		}
	}
	if m.root != nil {
		walk(m.root)
	}
}

// Check returns the fault of the nodes, nil for none.
func (m *Map[V]) Check() error {
	if m.root == nil {
		return nil
	}
	if len(m.leafCache) > maxCacheSlots {
		return fmt.Errorf("%d leaves are at hand", len(m.leafCache))
	}
	keys := 0
	var walk func(n *node[V], low, high string, depth int) error
	walk = func(n *node[V], low, high string, depth int) error {
		if depth > maxHeight {
			return fmt.Errorf("the tree is higher than an iterator can walk")
		}
		within := func(key string) bool { return key >= low && (high == "" || key < high) }
		for i, key := range n.keys[:n.n] {
			if n.kids != nil && i == 0 {
				continue
			}
			if !within(key) || i > 0 && !(n.kids != nil && i == 1) && key <= n.keys[i-1] {
				return fmt.Errorf("key %q is out of place", key)
			}
		}
		for _, key := range n.keys[n.n:] {
			if key != "" {
				return fmt.Errorf("key %q is left behind", key)
			}
		}
		if n.n == 0 && depth > 0 {
			return fmt.Errorf("there is a node without keys")
		}
		if n.kids == nil {
			keys += n.n
			if n.low < low || high != "" && (n.high == "" || n.high > high) {
				return fmt.Errorf("a leaf of %q to %q believes in %q to %q", low, high, n.low, n.high)
			}
			return nil
		}
		for i, kid := range n.kids[:n.n] {
			from, to := low, high
			if i > 0 {
				from = n.keys[i]
			}
			if i+1 < n.n {
				to = n.keys[i+1]
			}
			if err := walk(kid, from, to, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(m.root, "", "", 0); err != nil {
		return err
	}
	if keys != m.len {
		return fmt.Errorf("%d keys where %d are counted", keys, m.len)
	}
	for _, leaf := range m.leafCache {
		if leaf == nil || m.owner == nil || leaf.owner != m.owner {
			continue
		}
		found := false
		m.eachLeaf(func(n *node[V]) { found = found || n == leaf })
		if !found {
			return fmt.Errorf("a leaf at hand is not in the tree")
		}
	}
	return nil
}
