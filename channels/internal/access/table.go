// Package access decides the rights on channels, scopes and messages. Table holds in
// memory all that such a decision needs: the entry of each channel and scope, the
// restrictions and invitations, and the readers of partitions. It follows from commits
// alone: Load reads it from a snapshot, ApplyCommit adds a commit, and both make the same.
//
// Begin with Table.RequireReadable. The rights of an agent in a channel are methods of Entry
// (rights.go), and Guard puts them in front of the access control of the store.
package access

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/channels/scope"
	"koine/internal/systemgraph"
	"koine/kg"
)

// Entry is the in-memory state of a channel: everything that access decisions need. It
// is immutable; changes replace it in the table.
type Entry struct {
	channel.Channel // without Metadata and JournalState
	roles           map[kg.AgentID]channel.Role
	effective       channel.Rights // effective rights
	scope           *scopeCell     // nil without a scope
	table           *Table
	BeforeDeletion  *Entry        // entry before the deletion; nil if deleted before the start
	decideAt        time.Time     // time of the decision; the zero time means now
	caller          *kg.Principal // requesting principal, if any
}

// AtTime returns the entry for decisions at the time of a commit. The time matters only
// for restrictions and for the grants of its scope.
func (e *Entry) AtTime(t time.Time) *Entry {
	if e == nil || e.scope == nil && len(e.Restrictions) == 0 && len(e.table.ServerRestrictions()) == 0 {
		return e
	}
	then := *e
	then.decideAt = t
	return &then
}

// newEntry returns the entry of a channel record.
func (t *Table) newEntry(c channel.Channel) *Entry {
	channel.SortMembers(c.Members)
	c.Metadata = nil
	e := &Entry{Channel: c, roles: make(map[kg.AgentID]channel.Role, len(c.Members)), effective: c.Policy(), table: t}
	for _, m := range c.Members {
		e.roles[m.Agent] = m.Role
	}
	return e
}

// Table holds the channels of the store in memory.
type Table struct {
	entries sync.Map // channel.ID → *entry; read without a lock
	count   atomic.Int64

	scopes     scopeTable
	oversight  Oversight
	now        func() time.Time
	serverWide atomic.Pointer[channel.Restrictions]
	partitions sync.Map // partition graph (kg.Term) → sorted readers ([]kg.AgentID), immutable

	agents  func(fn func(kg.AgentID) bool) // Options.Agents
	onIdle  func(channel.ID, time.Time)    // called with the idle deadline of a changed channel; the zero time means none
	pending sync.Map                       // channel.ID → *entry of channels being created with their first message
	recent  systemgraph.RecentChanges[accessChange]
	version *atomic.Uint64 // version of the Guard; nil if its decisions are not cached

	mu              sync.RWMutex // guards the following
	byMember        map[kg.AgentID]*btree.Set[channel.ID]
	byPartition     map[kg.AgentID]*btree.Set[channel.ID] // readers of partitions
	invited         map[kg.AgentID]*btree.Set[channel.ID]
	discoverable    btree.Set[channel.ID] // channels that everyone can find
	all             btree.Set[channel.ID] // channels that are not deleted, for overseers; empty if there are none
	appliedRevision kg.Revision
}

// NewTable returns an empty table. clock returns the present time, agents calls its
// argument for each agent known to the server, onIdle receives the idle deadlines, and
// onGrant the time at which the first grant of a scope expires.
func NewTable(clock func() time.Time, agents func(func(kg.AgentID) bool), onIdle func(channel.ID, time.Time), onGrant func(scope.ID, time.Time)) *Table {
	return &Table{
		now: clock, agents: agents, onIdle: onIdle, scopes: scopeTable{now: clock, onGrant: onGrant},
		byMember:    map[kg.AgentID]*btree.Set[channel.ID]{},
		byPartition: map[kg.AgentID]*btree.Set[channel.ID]{},
		invited:     map[kg.AgentID]*btree.Set[channel.ID]{},
	}
}

// Load reads the channels, scopes and restrictions of the store. Their earlier changes
// are not known: a watch that begins before the last change of an existing record ends with
// ACCESS_CHANGED, even if its principal is not concerned.
func (t *Table) Load(snapshot *kg.Snapshot) error {
	var ids []channel.ID
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.Type, Object: vocab.ClassChannel}) {
		if err != nil {
			return err
		}
		if id, part := channel.OfGraph(st.Graph); part == channel.RecordPart && st.Subject == id.Entity() {
			ids = append(ids, id)
		}
	}
	partitions := partitionReaders{}
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.LaneReader}) {
		if err != nil {
			return err
		}
		partitions.applyStatement(st.Quad)
	}
	var serverWide channel.Restrictions
	var changed kg.Revision
	for st, err := range snapshot.Match(kg.Pattern{Subject: channel.ServerEntity, Graph: kg.SystemGraph}) {
		if err != nil {
			return err
		}
		serverWide.ApplyStatement(st.Predicate, st.Object, &st.Assertions[0])
		changed = max(changed, st.Revision())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addPartitions(partitions)
	t.serverWide.Store(&serverWide)
	t.scheduleRestrictionEnds(serverWide)
	t.appliedRevision = max(t.appliedRevision, snapshot.Revision())
	match := noteChanges(snapshot.Match, &changed)
	if err := t.loadScopes(snapshot, match); err != nil {
		return err
	}
	for _, id := range ids {
		c, err := channel.ReadRecord(match, id)
		if err != nil {
			return err
		}
		t.putChannel(c)
	}
	t.recent.AssumeChangedUpTo(changed)
	return nil
}

// noteChanges returns a matcher for whole records. It moves last to the newest revision of a
// record with statements from more than one commit.
func noteChanges(match systemgraph.Matcher, last *kg.Revision) systemgraph.Matcher {
	return func(p kg.Pattern) iter.Seq2[kg.Statement, error] {
		return func(yield func(kg.Statement, error) bool) {
			var oldest, newest kg.Revision
			for st, err := range match(p) {
				if err == nil {
					r := st.Revision()
					if oldest == 0 || r < oldest {
						oldest = r
					}
					newest = max(newest, r)
				}
				if !yield(st, err) {
					return
				}
			}
			if newest > oldest {
				*last = max(*last, newest)
			}
		}
	}
}

// ChannelCount returns the number of channels, including deleted ones.
func (t *Table) ChannelCount() int { return int(t.count.Load()) }

// ScopeCount returns the number of scopes, including ended ones.
func (t *Table) ScopeCount() int { return int(t.scopes.count.Load()) }

// Scope returns the entry of a scope, or nil if it never existed.
func (t *Table) Scope(id scope.ID) *Scope { return t.scopes.get(id) }

// EachChannel calls fn for each channel until fn returns false.
func (t *Table) EachChannel(fn func(channel.ID) bool) {
	t.entries.Range(func(key, _ any) bool { return fn(key.(channel.ID)) })
}

// Get returns the entry of a channel, or nil if it never existed.
func (t *Table) Get(id channel.ID) *Entry {
	e, ok := t.entries.Load(id)
	if !ok {
		return nil
	}
	return e.(*Entry)
}

// ApplyCommit applies the changes of a commit to the channels.
func (t *Table) ApplyCommit(c *kg.Commit) {
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
			if e := t.Get(id); e != nil {
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
		before := t.Get(id)
		if after := t.putChannel(now); before != nil { // a new channel has no cached decisions
			t.noteAccessChange(c.Revision, before, after)
		}
	}
}

// noteAccessChange records that access may have changed. The caller holds the lock of
// the table.
func (t *Table) noteAccessChange(r kg.Revision, before, after accessView) {
	t.recent.Add(r, accessChange{before: before, after: after})
	if t.version != nil {
		t.version.Add(1)
	}
}

// applyServerRestriction applies a change of a server-wide restriction.
func (t *Table) applyServerRestriction(r kg.Revision, ch *kg.Change) {
	now := t.ServerRestrictions()
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

// ServerRestrictions returns the server-wide restrictions.
func (t *Table) ServerRestrictions() channel.Restrictions {
	if b := t.serverWide.Load(); b != nil {
		return *b
	}
	return nil
}

// scheduleRestrictionEnds invalidates cached decisions of the Guard when restrictions
// end.
func (t *Table) scheduleRestrictionEnds(list channel.Restrictions) {
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
func (t *Table) putChannel(c *channel.Channel) *Entry {
	before := t.Get(c.ID)
	now := t.newEntry(*c)
	now.scope = t.scopes.cellOrEmpty(c.Scope)
	if now.Deleted && before != nil && !before.Deleted {
		now.BeforeDeletion = before
	}
	t.entries.Store(c.ID, now)
	t.scopes.placeChannel(before, now)
	if now.ExpireAfter > 0 || before != nil && before.ExpireAfter > 0 {
		at := now.ClosesAt(time.Time{})
		if now.Deleted {
			at = time.Time{}
		}
		t.onIdle(c.ID, at)
	}
	if before == nil {
		t.count.Add(1)
		before = &Entry{}
	}
	reindex(t.byMember, c.ID, before.Members, now.Members, func(m channel.Member) kg.AgentID { return m.Agent })
	reindex(t.invited, c.ID, before.Invited, now.Invited, func(i channel.Invitation) kg.AgentID { return i.Agent })
	if !slices.Equal(before.Restrictions, now.Restrictions) {
		t.scheduleRestrictionEnds(now.Restrictions)
	}
	if now.effective.Discover == channel.Everybody && now.scope == nil && !now.Deleted {
		t.discoverable.Insert(c.ID)
	} else {
		t.discoverable.Delete(c.ID)
	}
	if now.Deleted {
		t.all.Delete(c.ID)
	} else if t.oversight.Role != "" {
		t.all.Insert(c.ID)
	}
	return now
}
