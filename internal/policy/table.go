package policy

import (
	"maps"

	"koine/kg"
)

// shards is the number of maps in the table. A change copies one of them.
const shards = 256

// table maps graph names to policies. A published table is immutable.
type table [shards]map[string]*compiledPolicy

// find returns the policy of a graph, or nil.
func (t *table) find(graph kg.Term) *compiledPolicy {
	name := graph.Value()
	return t[shardOf(name)][name]
}

// shardOf hashes the end of the name, where names differ. It need not be a good hash:
// an uneven distribution only makes changes slower.
func shardOf(name string) (h uint8) {
	for i := max(0, len(name)-4); i < len(name); i++ {
		h = h*31 + name[i]
	}
	return h
}

// withPolicies returns a table with the policies of these graphs replaced; nil removes
// a policy.
func (t *table) withPolicies(changed map[kg.Term]*Policy) *table {
	next := *t
	copied := map[uint8]bool{}
	for graph, p := range changed {
		name := graph.Value()
		at := shardOf(name)
		if !copied[at] {
			copied[at] = true
			if next[at] = maps.Clone(next[at]); next[at] == nil {
				next[at] = map[string]*compiledPolicy{}
			}
		}
		if p == nil {
			delete(next[at], name)
		} else {
			next[at][name] = p.compile()
		}
	}
	return &next
}

func (t *table) each(fn func(*compiledPolicy)) {
	for _, shard := range t {
		for _, p := range shard {
			fn(p)
		}
	}
}
