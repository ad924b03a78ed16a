package policy

import (
	"hash/maphash"
	"maps"

	"koine/kg"
)

// shards is into how many maps the table is divided: a change copies one of them.
const shards = 256

// table holds the policies by the names of their graphs. A published table is
// never changed.
type table [shards]map[string]*Policy

var seed = maphash.MakeSeed()

// find is the policy of a graph, nil when it has none.
func (t *table) find(graph kg.Term) *Policy {
	name := graph.Value()
	return t[shardOf(name)][name]
}

func shardOf(name string) uint64 { return maphash.String(seed, name) % shards }

// with is the table with the policies of these graphs instead of theirs; a nil
// one takes a graph's away.
func (t *table) with(changed map[kg.Term]*Policy) *table {
	next := *t
	copied := map[uint64]bool{}
	for graph, p := range changed {
		name := graph.Value()
		at := shardOf(name)
		if !copied[at] {
			copied[at] = true
			if next[at] = maps.Clone(next[at]); next[at] == nil {
				next[at] = map[string]*Policy{}
			}
		}
		if p == nil {
			delete(next[at], name)
		} else {
			next[at][name] = p
		}
	}
	return &next
}

// each calls fn for every policy.
func (t *table) each(fn func(*Policy)) {
	for _, shard := range t {
		for _, p := range shard {
			fn(p)
		}
	}
}
