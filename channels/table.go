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
	Channel // without Metadata, Messages and LastMessageAt
	roles   map[kg.AgentID]Role
	policy  Rights     // all of them
	scope   *scopeCell // nil outside of a scope
	in      *table
	last    *entry        // what a deleted channel was before; nil for one that was deleted before the start
	time    time.Time     // by which is decided; the zero time for now
	caller  *kg.Principal // as whom its agent asks; nil for agents as such
}

// at is the entry as it is decided by inside a commit of a time. Where nobody is barred
// the time decides nothing.
func (e *entry) at(t time.Time) *entry {
	if e == nil || len(e.Restrictions) == 0 && len(e.in.everywhere()) == 0 {
		return e
	}
	then := *e
	then.time = t
	return &then
}

// newEntry makes an entry of what a channel's record says.
func (t *table) newEntry(c Channel) *entry {
	c.inOrder()
	c.Metadata = nil
	e := &entry{Channel: c, roles: make(map[kg.AgentID]Role, len(c.Members)), policy: c.Policy(), in: t}
	for _, m := range c.Members {
		e.roles[m.Agent] = m.Role
	}
	return e
}

// table follows the channels of the store.
type table struct {
	entries sync.Map // ChannelID → *entry; readers take no lock
	count   atomic.Int64

	scopes scopeTable
	now    func() time.Time
	barred atomic.Pointer[bars] // from the whole server
	lanes  sync.Map             // lane graph (kg.Term) → its readers ([]kg.AgentID, sorted); never changed

	lapses  *lapses
	coming  sync.Map // ChannelID → *entry of channels that are made with a first message
	lately  records.RecentChanges[change]
	version *atomic.Uint64 // of the Guard; nil if its answers are not kept

	mu       sync.RWMutex // guards what follows
	byMember map[kg.AgentID]*btree.Set[ChannelID]
	byLane   map[kg.AgentID]*btree.Set[ChannelID] // readers of lanes
	invited  map[kg.AgentID]*btree.Set[ChannelID]
	found    btree.Set[ChannelID] // what everybody may find
	followed kg.Revision
}

// get is what is known of a channel, nil for one that was never there.
func (t *table) get(id ChannelID) *entry {
	e, ok := t.entries.Load(id)
	if !ok {
		return nil
	}
	return e.(*entry)
}

// follow takes in what a commit says about channels.
func (t *table) follow(c *kg.Commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Revision <= t.followed {
		return
	}
	t.followed = c.Revision
	t.followScopes(c)
	changed, lanes := map[ChannelID]*Channel{}, laneReaders{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Quad.Subject == serverEntity && ch.Quad.Graph == kg.SystemGraph {
			t.bar(c.Revision, ch)
			continue
		}
		id, part := channelOf(ch.Quad.Graph)
		if part == recordPart && ch.Op == kg.Add {
			lanes.take(ch.Quad)
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
			now.drop(ch.Quad.Predicate, ch.Quad.Object)
		} else {
			now.take(ch.Quad.Predicate, ch.Quad.Object, &ch.After[0])
		}
	}
	t.keep(lanes)
	for id, now := range changed {
		before := t.get(id)
		if after := t.put(now); before != nil { // there was something to be seen
			t.note(c.Revision, before, after)
		}
	}
}

// note remembers that what can be seen may have changed. The table is locked.
func (t *table) note(r kg.Revision, before, after sight) {
	t.lately.Add(r, change{before: before, after: after})
	if t.version != nil {
		t.version.Add(1)
	}
}

// bar takes in what is said of an agent in the whole server.
func (t *table) bar(r kg.Revision, ch *kg.Change) {
	now := t.everywhere()
	if len(ch.After) == 0 {
		now.drop(ch.Quad.Predicate, ch.Quad.Object)
	} else {
		now.take(ch.Quad.Predicate, ch.Quad.Object, &ch.After[0])
	}
	t.barred.Store(&now)
	t.wake(now)
	t.lately.Add(r, change{agent: kg.AgentID(ch.Quad.Object.Value())})
	if t.version != nil {
		t.version.Add(1)
	}
}

// everywhere are the bars of the whole server.
func (t *table) everywhere() bars {
	if b := t.barred.Load(); b != nil {
		return *b
	}
	return nil
}

// wake sees to it that answers of the Guard that are kept do not outlast bars which
// end by themselves.
func (t *table) wake(list bars) {
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

// put makes a channel what is given. The table is locked.
func (t *table) put(c *Channel) *entry {
	before := t.get(c.ID)
	now := t.newEntry(*c)
	now.scope = t.scopes.home(c.Scope)
	if now.deleted && before != nil && !before.deleted {
		now.last = before
	}
	t.entries.Store(c.ID, now)
	t.scopes.place(before, now)
	if now.ExpireAfter > 0 || before != nil && before.ExpireAfter > 0 {
		at := now.due(time.Time{})
		if now.deleted {
			at = time.Time{}
		}
		t.lapses.put(c.ID, at)
	}
	if before == nil {
		t.count.Add(1)
		before = &entry{}
	}
	reindex(t.byMember, c.ID, before.Members, now.Members, func(m Member) kg.AgentID { return m.Agent })
	reindex(t.invited, c.ID, before.Invited, now.Invited, func(i Invitation) kg.AgentID { return i.Agent })
	if !slices.Equal(before.Restrictions, now.Restrictions) {
		t.wake(now.Restrictions)
	}
	if now.policy.Discover == Everybody && now.scope == nil && !now.deleted {
		t.found.Insert(c.ID)
	} else {
		t.found.Delete(c.ID)
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

// joined lists the channels that the agent is a member of, in the order of their ids.
func (t *table) joined(agent kg.AgentID) []ChannelID {
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

// listed gives up to n channels behind one, in the order of their ids: those that
// the reader is a member of or invited to, and those that everybody may find; or
// those of a scope. only leaves others out.
func (t *table) listed(reader kg.Principal, in ScopeID, after ChannelID, n int, only func(*entry) bool) (out []*entry, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ids := map[ChannelID]bool{}
	take := func(set *btree.Set[ChannelID]) {
		if set == nil {
			return
		}
		found := 0
		set.Ascend(after, func(id ChannelID) bool {
			if e := t.get(id).as(reader); id != after && e.discovers(reader.ID) && only(e) {
				ids[id] = true
				found++
			}
			return found <= n
		})
	}
	if in == "" {
		take(t.byMember[reader.ID])
		take(t.invited[reader.ID])
		take(&t.found)
	} else if parts := t.scopes.parts[in]; parts != nil {
		take(&parts.channels)
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if len(out) == n {
			return out, true
		}
		out = append(out, t.get(id).as(reader))
	}
	return out, false
}
