package access

import (
	"maps"
	"slices"

	"github.com/tidwall/btree"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/kg"
)

// partitionReaders maps partition graphs to their readers.
type partitionReaders map[kg.Term][]kg.AgentID

// applyStatement adds a statement of a channel's record.
func (l partitionReaders) applyStatement(q kg.Quad) {
	if q.Predicate != vocab.LaneReader {
		return
	}
	id, part := channel.OfGraph(q.Subject)
	if part == channel.PartitionPart && q.Graph == id.RecordGraph() {
		l[q.Subject] = append(l[q.Subject], kg.AgentID(q.Object.Value()))
	}
}

// addPartitions adds partitions to the table. Until then, no agent can read them. The
// caller holds the lock of the table.
func (t *Table) addPartitions(lanes partitionReaders) {
	for graph, readers := range lanes {
		slices.Sort(readers)
		t.partitions.Store(graph, readers)
		id, _ := channel.OfGraph(graph)
		reindex(t.byPartition, id, nil, readers, func(a kg.AgentID) kg.AgentID { return a })
	}
}

// InboxChannels lists the channels that the agent is a member of or has a partition in,
// sorted by id.
func (t *Table) InboxChannels(agent kg.AgentID) []channel.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var list []channel.ID
	for _, index := range []map[kg.AgentID]*btree.Set[channel.ID]{t.byMember, t.byPartition} {
		if set := index[agent]; set != nil {
			list = append(list, set.Keys()...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// HasPartition reports whether the agent reads a partition of the channel.
func (t *Table) HasPartition(agent kg.AgentID, id channel.ID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	set := t.byPartition[agent]
	return set != nil && set.Contains(id)
}

// ChannelsOfAgent lists the channels that an agent is a member of or invited to, except
// direct channels.
func (t *Table) ChannelsOfAgent(agent kg.AgentID) (ids []channel.ID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, index := range []map[kg.AgentID]*btree.Set[channel.ID]{t.byMember, t.invited} {
		if set := index[agent]; set != nil {
			set.Scan(func(id channel.ID) bool {
				if !id.IsDirect() {
					ids = append(ids, id)
				}
				return true
			})
		}
	}
	return ids
}

// reindex replaces the agents of a channel in an index.
func reindex[T any](index map[kg.AgentID]*btree.Set[channel.ID], id channel.ID, before, now []T, agent func(T) kg.AgentID) {
	for _, one := range before {
		a := agent(one)
		if set := index[a]; set != nil {
			if set.Delete(id); set.Len() == 0 {
				delete(index, a)
			}
		}
	}
	for _, one := range now {
		a := agent(one)
		if index[a] == nil {
			index[a] = new(btree.Set[channel.ID])
		}
		index[a].Insert(id)
	}
}

// ChannelsJoinedBy lists the channels that the agent is a member of, sorted by id.
func (t *Table) ChannelsJoinedBy(agent kg.AgentID) []channel.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if set := t.byMember[agent]; set != nil {
		return set.Keys()
	}
	return nil
}

// eachMember calls fn for each agent that is a member of any channel until fn returns
// false.
func (t *Table) eachMember(fn func(kg.AgentID) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for agent := range t.byMember {
		if !fn(agent) {
			return
		}
	}
}

// walkSet calls step for the ids from one on, in ascending or descending order, until it
// returns false.
func walkSet[ID ~string](set *btree.Set[ID], from ID, backward bool, step func(ID) bool) {
	switch {
	case !backward:
		set.Ascend(from, step)
	case from != "":
		set.Descend(from, step)
	default:
		set.Reverse(step)
	}
}

// ListChannels returns up to n channels behind behind, sorted by id, for which only
// reports true: the channels that the reader is a member of or invited to and those
// that everyone can find (all for an overseer), or the channels of the scope in. With backward the greatest
// ids come first; behind "" is the beginning of either order. more reports that there
// are others.
func (t *Table) ListChannels(reader kg.Principal, in scope.ID, behind channel.ID, backward bool, n int, only func(*Entry) bool) (out []*Entry, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ids := map[channel.ID]bool{}
	take := func(set *btree.Set[channel.ID]) {
		if set == nil {
			return
		}
		found := 0
		walkSet(set, behind, backward, func(id channel.ID) bool {
			if e := t.Get(id).AsPrincipal(reader); id != behind && (e.CanDiscover(reader.ID) || CanOversee(e, reader.ID)) && only(e) {
				ids[id] = true
				found++
			}
			return found <= n
		})
	}
	if in == "" && t.IsOverseer(reader) {
		take(&t.all)
	} else if in == "" {
		take(t.byMember[reader.ID])
		take(t.invited[reader.ID])
		take(&t.discoverable)
	} else if parts := t.scopes.parts[in]; parts != nil {
		take(&parts.channels)
	}
	sorted := slices.Sorted(maps.Keys(ids))
	if backward {
		slices.Reverse(sorted)
	}
	for _, id := range sorted {
		if len(out) == n {
			return out, true
		}
		out = append(out, t.Get(id).AsPrincipal(reader))
	}
	return out, false
}
