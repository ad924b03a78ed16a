package channels

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"koine/internal/records"
	"koine/kg"
)

// entry is what is kept in memory of a channel: all by which is decided who may do
// what. An entry is never changed, another takes its place.
type entry struct {
	Channel        // without Metadata, Messages and LastMessageAt
	roles          map[kg.AgentID]Role
	policy         Rights     // all of them
	scope          *scopeCell // nil outside of a scope
	table          *table
	beforeDeletion *entry        // what a deleted channel was before; nil for one that was deleted before the start
	decideAt       time.Time     // by which is decided; the zero time for now
	caller         *kg.Principal // as whom its agent asks; nil for agents as such
}

// atTime is the entry as it is decided by inside a commit of a time. Where nobody is barred
// the time decides nothing.
func (e *entry) atTime(t time.Time) *entry {
	if e == nil || len(e.Restrictions) == 0 && len(e.table.serverRestrictions()) == 0 {
		return e
	}
	then := *e
	then.decideAt = t
	return &then
}

// newEntry makes an entry of what a channel's record says.
func (t *table) newEntry(c Channel) *entry {
	c.sortMembers()
	c.Metadata = nil
	e := &entry{Channel: c, roles: make(map[kg.AgentID]Role, len(c.Members)), policy: c.Policy(), table: t}
	for _, m := range c.Members {
		e.roles[m.Agent] = m.Role
	}
	return e
}

// table follows the channels of the store.
type table struct {
	entries sync.Map // ChannelID → *entry; readers take no lock
	count   atomic.Int64

	scopes     scopeTable
	now        func() time.Time
	serverWide atomic.Pointer[restrictions] // from the whole server
	partitions sync.Map                     // lane graph (kg.Term) → its readers ([]kg.AgentID, sorted); never changed

	idle    *idleQueue
	pending sync.Map // ChannelID → *entry of channels that are made with a first message
	recent  records.RecentChanges[accessChange]
	version *atomic.Uint64 // of the Guard; nil if its answers are not kept

	mu              sync.RWMutex // guards what follows
	byMember        map[kg.AgentID]*btree.Set[ChannelID]
	byPartition     map[kg.AgentID]*btree.Set[ChannelID] // readers of lanes
	invited         map[kg.AgentID]*btree.Set[ChannelID]
	discoverable    btree.Set[ChannelID] // what everybody may find
	appliedRevision kg.Revision
}

// get is what is known of a channel, nil for one that was never there.
func (t *table) get(id ChannelID) *entry {
	e, ok := t.entries.Load(id)
	if !ok {
		return nil
	}
	return e.(*entry)
}

// applyCommit takes in what a commit says about channels.
func (t *table) applyCommit(c *kg.Commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Revision <= t.appliedRevision {
		return
	}
	t.appliedRevision = c.Revision
	t.applyScopeCommit(c)
	changed, lanes := map[ChannelID]*Channel{}, partitionReaders{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Quad.Subject == serverEntity && ch.Quad.Graph == kg.SystemGraph {
			t.applyServerRestriction(c.Revision, ch)
			continue
		}
		id, part := channelOfGraph(ch.Quad.Graph)
		if part == recordPart && ch.Op == kg.Add {
			lanes.applyStatement(ch.Quad)
		}
		if part != recordPart || ch.Quad.Subject != id.Entity() {
			continue
		}
		now := changed[id]
		if now == nil {
			now = &Channel{ID: id}
			if e := t.get(id); e != nil {
				*now = e.Channel
				now.Members = slices.Clone(e.Members)
			}
			changed[id] = now
		}
		if len(ch.After) == 0 {
			now.removeStatement(ch.Quad.Predicate, ch.Quad.Object)
		} else {
			now.applyStatement(ch.Quad.Predicate, ch.Quad.Object, &ch.After[0])
		}
	}
	t.addPartitions(lanes)
	for id, now := range changed {
		before := t.get(id)
		if after := t.putChannel(now); before != nil { // there was something to be seen
			t.noteAccessChange(c.Revision, before, after)
		}
	}
}

// noteAccessChange remembers that what can be seen may have changed. The table is locked.
func (t *table) noteAccessChange(r kg.Revision, before, after accessView) {
	t.recent.Add(r, accessChange{before: before, after: after})
	if t.version != nil {
		t.version.Add(1)
	}
}

// applyServerRestriction takes in what is said of an agent in the whole server.
func (t *table) applyServerRestriction(r kg.Revision, ch *kg.Change) {
	now := t.serverRestrictions()
	if len(ch.After) == 0 {
		now.removeStatement(ch.Quad.Predicate, ch.Quad.Object)
	} else {
		now.applyStatement(ch.Quad.Predicate, ch.Quad.Object, &ch.After[0])
	}
	t.serverWide.Store(&now)
	t.scheduleRestrictionEnds(now)
	t.recent.Add(r, accessChange{agent: kg.AgentID(ch.Quad.Object.Value())})
	if t.version != nil {
		t.version.Add(1)
	}
}

// serverRestrictions are the bars of the whole server.
func (t *table) serverRestrictions() restrictions {
	if b := t.serverWide.Load(); b != nil {
		return *b
	}
	return nil
}

// scheduleRestrictionEnds sees to it that answers of the Guard that are kept do not outlast bars which
// end by themselves.
func (t *table) scheduleRestrictionEnds(list restrictions) {
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

// putChannel makes a channel what is given. The table is locked.
func (t *table) putChannel(c *Channel) *entry {
	before := t.get(c.ID)
	now := t.newEntry(*c)
	now.scope = t.scopes.cellOrEmpty(c.Scope)
	if now.deleted && before != nil && !before.deleted {
		now.beforeDeletion = before
	}
	t.entries.Store(c.ID, now)
	t.scopes.placeChannel(before, now)
	if now.ExpireAfter > 0 || before != nil && before.ExpireAfter > 0 {
		at := now.closesAt(time.Time{})
		if now.deleted {
			at = time.Time{}
		}
		t.idle.schedule(c.ID, at)
	}
	if before == nil {
		t.count.Add(1)
		before = &entry{}
	}
	reindex(t.byMember, c.ID, before.Members, now.Members, func(m Member) kg.AgentID { return m.Agent })
	reindex(t.invited, c.ID, before.Invited, now.Invited, func(i Invitation) kg.AgentID { return i.Agent })
	if !slices.Equal(before.Restrictions, now.Restrictions) {
		t.scheduleRestrictionEnds(now.Restrictions)
	}
	if now.policy.Discover == Everybody && now.scope == nil && !now.deleted {
		t.discoverable.Insert(c.ID)
	} else {
		t.discoverable.Delete(c.ID)
	}
	return now
}

// reindex notes for agents that a channel is theirs, and no longer that of others.
func reindex[T any](index map[kg.AgentID]*btree.Set[ChannelID], id ChannelID, before, now []T, agent func(T) kg.AgentID) {
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
			index[a] = new(btree.Set[ChannelID])
		}
		index[a].Insert(id)
	}
}

// channelsJoinedBy lists the channels that the agent is a member of, in the order of their ids.
func (t *table) channelsJoinedBy(agent kg.AgentID) []ChannelID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if set := t.byMember[agent]; set != nil {
		return set.Keys()
	}
	return nil
}

// eachMember calls fn for each agent that is a member of any channel, until it says
// stop.
func (t *table) eachMember(fn func(kg.AgentID) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for agent := range t.byMember {
		if !fn(agent) {
			return
		}
	}
}

// listChannels gives up to n channels behind one, in the order of their ids: those that
// the reader is a member of or invited to, and those that everybody may find; or
// those of a scope. only leaves others out.
func (t *table) listChannels(reader kg.Principal, in ScopeID, after ChannelID, n int, only func(*entry) bool) (out []*entry, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ids := map[ChannelID]bool{}
	take := func(set *btree.Set[ChannelID]) {
		if set == nil {
			return
		}
		found := 0
		set.Ascend(after, func(id ChannelID) bool {
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
