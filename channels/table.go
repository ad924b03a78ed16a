package channels

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"koine/channels/channel"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// entry is the in-memory state of a channel: everything that access decisions need. It
// is immutable; changes replace it in the table.
type entry struct {
	channel.Channel // without Metadata, Messages and LastMessageAt
	roles           map[kg.AgentID]channel.Role
	policy          channel.Rights // effective rights
	scope           *scopeCell     // nil without a scope
	table           *table
	beforeDeletion  *entry        // entry before the deletion; nil if deleted before the start
	decideAt        time.Time     // time of the decision; the zero time means now
	caller          *kg.Principal // requesting principal, if any
}

// atTime returns the entry for decisions at the time of a commit. The time matters only
// if there are restrictions.
func (e *entry) atTime(t time.Time) *entry {
	if e == nil || len(e.Restrictions) == 0 && len(e.table.serverRestrictions()) == 0 {
		return e
	}
	then := *e
	then.decideAt = t
	return &then
}

// newEntry returns the entry of a channel record.
func (t *table) newEntry(c channel.Channel) *entry {
	c.SortMembers()
	c.Metadata = nil
	e := &entry{Channel: c, roles: make(map[kg.AgentID]channel.Role, len(c.Members)), policy: c.Policy(), table: t}
	for _, m := range c.Members {
		e.roles[m.Agent] = m.Role
	}
	return e
}

// table holds the channels of the store in memory.
type table struct {
	entries sync.Map // ChannelID → *entry; read without a lock
	count   atomic.Int64

	scopes     scopeTable
	now        func() time.Time
	serverWide atomic.Pointer[channel.Restrictions]
	partitions sync.Map // partition graph (kg.Term) → sorted readers ([]kg.AgentID), immutable

	idle    *idleQueue
	pending sync.Map // ChannelID → *entry of channels being created with their first message
	recent  systemgraph.RecentChanges[accessChange]
	version *atomic.Uint64 // version of the Guard; nil if its decisions are not cached

	mu              sync.RWMutex // guards the following
	byMember        map[kg.AgentID]*btree.Set[channel.ID]
	byPartition     map[kg.AgentID]*btree.Set[channel.ID] // readers of partitions
	invited         map[kg.AgentID]*btree.Set[channel.ID]
	discoverable    btree.Set[channel.ID] // channels that everyone can find
	appliedRevision kg.Revision
}

// get returns the entry of a channel, or nil if it never existed.
func (t *table) get(id channel.ID) *entry {
	e, ok := t.entries.Load(id)
	if !ok {
		return nil
	}
	return e.(*entry)
}

// applyCommit applies the changes of a commit to the channels.
func (t *table) applyCommit(c *kg.Commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Revision <= t.appliedRevision {
		return
	}
	t.appliedRevision = c.Revision
	t.applyScopeCommit(c)
	changed, partitions := map[channel.ID]*channel.Channel{}, partitionReaders{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Quad.Subject == channel.ServerEntity && ch.Quad.Graph == kg.SystemGraph {
			t.applyServerRestriction(c.Revision, ch)
			continue
		}
		id, part := channel.OfGraph(ch.Quad.Graph)
		if part == channel.RecordPart && ch.Op == kg.Add {
			partitions.applyStatement(ch.Quad)
		}
		if part != channel.RecordPart || ch.Quad.Subject != id.Entity() {
			continue
		}
		now := changed[id]
		if now == nil {
			now = &channel.Channel{ID: id}
			if e := t.get(id); e != nil {
				*now = e.Channel
				now.Members = slices.Clone(e.Members)
			}
			changed[id] = now
		}
		if len(ch.After) == 0 {
			now.RemoveStatement(ch.Quad.Predicate, ch.Quad.Object)
		} else {
			now.ApplyStatement(ch.Quad.Predicate, ch.Quad.Object, &ch.After[0])
		}
	}
	t.addPartitions(partitions)
	for id, now := range changed {
		before := t.get(id)
		if after := t.putChannel(now); before != nil { // a new channel has no cached decisions
			t.noteAccessChange(c.Revision, before, after)
		}
	}
}

// noteAccessChange records that access may have changed. The caller holds the lock of
// the table.
func (t *table) noteAccessChange(r kg.Revision, before, after accessView) {
	t.recent.Add(r, accessChange{before: before, after: after})
	if t.version != nil {
		t.version.Add(1)
	}
}

// applyServerRestriction applies a change of a server-wide restriction.
func (t *table) applyServerRestriction(r kg.Revision, ch *kg.Change) {
	now := t.serverRestrictions()
	if len(ch.After) == 0 {
		now.RemoveStatement(ch.Quad.Predicate, ch.Quad.Object)
	} else {
		now.ApplyStatement(ch.Quad.Predicate, ch.Quad.Object, &ch.After[0])
	}
	t.serverWide.Store(&now)
	t.scheduleRestrictionEnds(now)
	t.recent.Add(r, accessChange{agent: kg.AgentID(ch.Quad.Object.Value())})
	if t.version != nil {
		t.version.Add(1)
	}
}

// serverRestrictions returns the server-wide restrictions.
func (t *table) serverRestrictions() channel.Restrictions {
	if b := t.serverWide.Load(); b != nil {
		return *b
	}
	return nil
}

// scheduleRestrictionEnds invalidates cached decisions of the Guard when restrictions
// end.
func (t *table) scheduleRestrictionEnds(list channel.Restrictions) {
	if t.version == nil {
		return
	}
	now := t.now()
	for i := range list {
		if left := list[i].Until.Sub(now); left > 0 {
			time.AfterFunc(left, func() { t.version.Add(1) })
		}
	}
}

// putChannel stores the entry of a channel. The caller holds the lock of the table.
func (t *table) putChannel(c *channel.Channel) *entry {
	before := t.get(c.ID)
	now := t.newEntry(*c)
	now.scope = t.scopes.cellOrEmpty(c.Scope)
	if now.Deleted && before != nil && !before.Deleted {
		now.beforeDeletion = before
	}
	t.entries.Store(c.ID, now)
	t.scopes.placeChannel(before, now)
	if now.ExpireAfter > 0 || before != nil && before.ExpireAfter > 0 {
		at := now.ClosesAt(time.Time{})
		if now.Deleted {
			at = time.Time{}
		}
		t.idle.schedule(c.ID, at)
	}
	if before == nil {
		t.count.Add(1)
		before = &entry{}
	}
	reindex(t.byMember, c.ID, before.Members, now.Members, func(m channel.Member) kg.AgentID { return m.Agent })
	reindex(t.invited, c.ID, before.Invited, now.Invited, func(i channel.Invitation) kg.AgentID { return i.Agent })
	if !slices.Equal(before.Restrictions, now.Restrictions) {
		t.scheduleRestrictionEnds(now.Restrictions)
	}
	if now.policy.Discover == channel.Everybody && now.scope == nil && !now.Deleted {
		t.discoverable.Insert(c.ID)
	} else {
		t.discoverable.Delete(c.ID)
	}
	return now
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

// channelsJoinedBy lists the channels that the agent is a member of, sorted by id.
func (t *table) channelsJoinedBy(agent kg.AgentID) []channel.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if set := t.byMember[agent]; set != nil {
		return set.Keys()
	}
	return nil
}

// eachMember calls fn for each agent that is a member of any channel until fn returns
// false.
func (t *table) eachMember(fn func(kg.AgentID) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for agent := range t.byMember {
		if !fn(agent) {
			return
		}
	}
}

// listChannels returns up to n channels after after, sorted by id, for which only
// reports true: the channels that the reader is a member of or invited to and those
// that everyone can find, or the channels of the scope in. more reports that there are
// others.
func (t *table) listChannels(reader kg.Principal, in scope.ID, after channel.ID, n int, only func(*entry) bool) (out []*entry, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ids := map[channel.ID]bool{}
	take := func(set *btree.Set[channel.ID]) {
		if set == nil {
			return
		}
		found := 0
		set.Ascend(after, func(id channel.ID) bool {
			if e := t.get(id).asPrincipal(reader); id != after && e.canDiscover(reader.ID) && only(e) {
				ids[id] = true
				found++
			}
			return found <= n
		})
	}
	if in == "" {
		take(t.byMember[reader.ID])
		take(t.invited[reader.ID])
		take(&t.discoverable)
	} else if parts := t.scopes.parts[in]; parts != nil {
		take(&parts.channels)
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if len(out) == n {
			return out, true
		}
		out = append(out, t.get(id).asPrincipal(reader))
	}
	return out, false
}
