package policy

import (
	"maps"

	"koine/kg"
)

// shards is into how many maps the table is divided: a change copies one of them.
const shards = 256

// table holds the policies by the names of their graphs. A published table is
// never changed.
type table [shards]map[string]*compiledPolicy

// find is the policy of a graph, nil when it has none.
func (t *table) find(graph kg.Term) *compiledPolicy {
	name := graph.Value()
	return t[shardOf(name)][name]
}

// shardOf goes by the end of the name, in which names differ. It need not be a
// good hash: many names in one shard make changes slower, and nothing else.
func shardOf(name string) (h uint8) {
	for i := max(0, len(name)-4); i < len(name); i++ {
		h = h*31 + name[i]
	}
	return h
}

// withPolicies is the table with the policies of these graphs instead of theirs; a nil
// one takes a graph's away.
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

// each calls fn for every policy.
func (t *table) each(fn func(*compiledPolicy)) {
	for _, shard := range t {
		for _, p := range shard {
			fn(p)
		}
	}
}
