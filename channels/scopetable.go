package channels

import (
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"koine/channels/channel"
	"koine/channels/scope"
	"koine/kg"
)

// scopeTable holds the scopes of the store in memory, with their channels. It is part
// of the table; the table's lock guards all fields that are not read without a lock.
type scopeTable struct {
	cells sync.Map // ScopeID → *scopeCell; read without a lock
	count atomic.Int64

	ids   btree.Set[scope.ID]
	parts map[scope.ID]*scopeParts
}

// scopeParts holds the channels and tasks of a scope.
type scopeParts struct {
	channels btree.Set[channel.ID] // without deleted ones
	names    map[string]channel.ID
	tasks    btree.Set[scope.ID]
}

// lookupCell returns the cell of a scope, or nil if the scope never existed.
func (t *scopeTable) lookupCell(id scope.ID) *scopeCell {
	c, ok := t.cells.Load(id)
	if !ok {
		return nil
	}
	return c.(*scopeCell)
}

// cellOrEmpty returns the cell of a parent or channel scope, or nil for "". If the
// scope does not exist, because it was erased, the cell is empty and admits no one.
func (t *scopeTable) cellOrEmpty(id scope.ID) *scopeCell {
	if id == "" {
		return nil
	}
	if c := t.lookupCell(id); c != nil {
		return c
	}
	return new(scopeCell)
}

// get returns the current entry of a scope, or nil.
func (t *scopeTable) get(id scope.ID) *scopeEntry { return t.lookupCell(id).get() }

// partsOf returns the parts of a scope and creates them if needed. The caller holds the
// lock of the table.
func (t *scopeTable) partsOf(id scope.ID) *scopeParts {
	p := t.parts[id]
	if p == nil {
		p = &scopeParts{names: map[string]channel.ID{}}
		if t.parts == nil {
			t.parts = map[scope.ID]*scopeParts{}
		}
		t.parts[id] = p
	}
	return p
}

// putScope stores the entry of a scope. The caller holds the lock of the table.
func (t *scopeTable) putScope(s *scope.Scope) (before, now *scopeEntry) {
	cell := t.lookupCell(s.ID)
	if cell == nil {
		cell = new(scopeCell)
		t.count.Add(1)
		t.ids.Insert(s.ID)
	}
	before = cell.get()
	now = &scopeEntry{Scope: *s, parent: t.cellOrEmpty(s.Parent)}
	if s.Parent != "" {
		t.partsOf(s.Parent).tasks.Insert(s.ID)
	}
	cell.now.Store(now)
	t.cells.Store(s.ID, cell)
	return before, now
}

// placeChannel updates the channels and names of a scope for a changed channel. The
// caller holds the lock of the table.
func (t *scopeTable) placeChannel(before, now *entry) {
	if now.Scope == "" {
		return
	}
	parts := t.partsOf(now.Scope)
	if before != nil && parts.names[before.Name] == now.ID {
		delete(parts.names, before.Name)
	}
	if now.Deleted {
		parts.channels.Delete(now.ID)
		return
	}
	parts.channels.Insert(now.ID)
	parts.names[now.Name] = now.ID
}

// applyScopeCommit applies the changes of a commit to the scopes. The caller holds the
// lock of the table.
func (t *table) applyScopeCommit(c *kg.Commit) {
	changed := map[scope.ID]*scope.Scope{}
	var order []scope.ID // parents are created before their tasks
	for i := range c.Changes {
		ch := &c.Changes[i]
		id, record := scope.OfGraph(ch.Quad.Graph)
		if !record || ch.Quad.Subject != id.Entity() {
			continue
		}
		now := changed[id]
		if now == nil {
			now = &scope.Scope{ID: id}
			if s := t.scopes.get(id); s != nil {
				now = s.Clone()
			}
			changed[id] = now
			order = append(order, id)
		}
		if len(ch.After) == 0 {
			now.RemoveStatement(ch.Quad.Predicate, ch.Quad.Object)
		} else {
			now.ApplyStatement(ch.Quad.Predicate, ch.Quad.Object)
		}
	}
	for _, id := range order {
		if before, now := t.scopes.putScope(changed[id]); before != nil {
			t.noteAccessChange(c.Revision, before, now)
		}
	}
}

// channelByName returns the channel with a name in the scope, or "".
func (t *table) channelByName(id scope.ID, name string) channel.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[id]; parts != nil {
		return parts.names[name]
	}
	return ""
}

// tasksOf lists the tasks of an intent.
func (t *table) tasksOf(id scope.ID) []scope.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[id]; parts != nil {
		return parts.tasks.Keys()
	}
	return nil
}

// channelsOf lists the channels of a scope, without deleted ones.
func (t *table) channelsOf(id scope.ID) []channel.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[id]; parts != nil {
		return parts.channels.Keys()
	}
	return nil
}

// channelsWithin lists the channels of a scope and of its tasks, without deleted ones.
func (t *table) channelsWithin(id scope.ID) []channel.ID {
	list := t.channelsOf(id)
	for _, task := range t.tasksOf(id) {
		list = append(list, t.channelsOf(task)...)
	}
	return list
}

// countIn returns the number of channels of the scope's intent, including its tasks.
func (t *table) countIn(id scope.ID) int {
	if s := t.scopes.get(id); s != nil && s.Parent != "" {
		id = s.Parent
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	parts := t.scopes.parts[id]
	if parts == nil {
		return 0
	}
	n := parts.channels.Len()
	for _, task := range parts.tasks.Keys() {
		if p := t.scopes.parts[task]; p != nil {
			n += p.channels.Len()
		}
	}
	return n
}

// listScopes returns up to n scopes after after, sorted by id, for which only reports
// true. It examines at most maxLookedAt scopes. next is the last scope examined if
// there may be more.
func (t *table) listScopes(after scope.ID, n int, only func(*scopeEntry) bool) (out []*scopeEntry, next scope.ID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	looked, last := 0, after
	t.scopes.ids.Ascend(after, func(id scope.ID) bool {
		if id == after {
			return true
		}
		if len(out) == n || looked == maxLookedAt {
			next = last
			return false
		}
		looked++
		last = id
		if s := t.scopes.get(id); only(s) {
			out = append(out, s)
		}
		return true
	})
	return out, next
}
