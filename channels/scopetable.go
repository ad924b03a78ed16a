package channels

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"koine/kg"
)

// scopeTable follows the scopes of the store, and which channels they have. It is
// part of the table, whose lock guards what is not read without one.
type scopeTable struct {
	cells sync.Map // ScopeID → *scopeCell; readers take no lock
	count atomic.Int64

	ids   btree.Set[ScopeID]
	parts map[ScopeID]*scopeParts
}

// scopeParts is what belongs to a scope.
type scopeParts struct {
	channels btree.Set[ChannelID] // but for deleted ones
	names    map[string]ChannelID
	tasks    btree.Set[ScopeID]
}

// lookupCell is where a scope stands, nil for one that was never there.
func (t *scopeTable) lookupCell(id ScopeID) *scopeCell {
	c, ok := t.cells.Load(id)
	if !ok {
		return nil
	}
	return c.(*scopeCell)
}

// cellOrEmpty is where the scope stands that something belongs to, nil for "". One that is not
// there, because it was erased, admits nobody.
func (t *scopeTable) cellOrEmpty(id ScopeID) *scopeCell {
	if id == "" {
		return nil
	}
	if c := t.lookupCell(id); c != nil {
		return c
	}
	return new(scopeCell)
}

// get is the scope as it is now, nil for one that was never there.
func (t *scopeTable) get(id ScopeID) *scope { return t.lookupCell(id).get() }

// partsOf is what belongs to a scope. The table is locked.
func (t *scopeTable) partsOf(id ScopeID) *scopeParts {
	p := t.parts[id]
	if p == nil {
		p = &scopeParts{names: map[string]ChannelID{}}
		if t.parts == nil {
			t.parts = map[ScopeID]*scopeParts{}
		}
		t.parts[id] = p
	}
	return p
}

// putScope makes a scope what is given. The table is locked.
func (t *scopeTable) putScope(s *Scope) (before, now *scope) {
	cell := t.lookupCell(s.ID)
	if cell == nil {
		cell = new(scopeCell)
		t.count.Add(1)
		t.ids.Insert(s.ID)
	}
	before = cell.get()
	now = &scope{Scope: *s, parent: t.cellOrEmpty(s.Parent)}
	if s.Parent != "" {
		t.partsOf(s.Parent).tasks.Insert(s.ID)
	}
	cell.now.Store(now)
	t.cells.Store(s.ID, cell)
	return before, now
}

// placeChannel notes where a channel belongs, under which name. The table is locked.
func (t *scopeTable) placeChannel(before, now *entry) {
	if now.Scope == "" {
		return
	}
	parts := t.partsOf(now.Scope)
	if before != nil && parts.names[before.Name] == now.ID {
		delete(parts.names, before.Name)
	}
	if now.deleted {
		parts.channels.Delete(now.ID)
		return
	}
	parts.channels.Insert(now.ID)
	parts.names[now.Name] = now.ID
}

// applyScopeCommit takes in what a commit says about scopes. The table is locked.
func (t *table) applyScopeCommit(c *kg.Commit) {
	changed := map[ScopeID]*Scope{}
	var order []ScopeID // a parent is made before its tasks
	for i := range c.Changes {
		ch := &c.Changes[i]
		id, part := scopeOfGraph(ch.Quad.Graph)
		if part != recordPart || ch.Quad.Subject != id.Entity() {
			continue
		}
		now := changed[id]
		if now == nil {
			now = &Scope{ID: id}
			if s := t.scopes.get(id); s != nil {
				now = s.clone()
			}
			changed[id] = now
			order = append(order, id)
		}
		if len(ch.After) == 0 {
			now.removeStatement(ch.Quad.Predicate, ch.Quad.Object)
		} else {
			now.applyStatement(ch.Quad.Predicate, ch.Quad.Object)
		}
	}
	for _, id := range order {
		if before, now := t.scopes.putScope(changed[id]); before != nil {
			t.noteAccessChange(c.Revision, before, now)
		}
	}
}

// channelByName is the channel that has the name in the scope, "" if none has.
func (t *table) channelByName(id ScopeID, name string) ChannelID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[id]; parts != nil {
		return parts.names[name]
	}
	return ""
}

// tasksOf lists the tasks of an intent.
func (t *table) tasksOf(id ScopeID) []ScopeID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[id]; parts != nil {
		return parts.tasks.Keys()
	}
	return nil
}

// channelsOf lists the channels of a scope, but for deleted ones.
func (t *table) channelsOf(id ScopeID) []ChannelID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[id]; parts != nil {
		return parts.channels.Keys()
	}
	return nil
}

// channelsWithin lists the channels of a scope and of its tasks, but for deleted ones.
func (t *table) channelsWithin(id ScopeID) []ChannelID {
	list := t.channelsOf(id)
	for _, task := range t.tasksOf(id) {
		list = append(list, t.channelsOf(task)...)
	}
	return list
}

// countIn is how many channels the intent of the scope has with all of its tasks.
func (t *table) countIn(id ScopeID) int {
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

// listScopes gives up to n scopes behind one, in the order of their ids, of those
// that only admits; it looks at maxLookedAt of them at most, and tells where it
// ended if there may be others.
func (t *table) listScopes(after ScopeID, n int, only func(*scope) bool) (out []*scope, next ScopeID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	looked, last := 0, after
	t.scopes.ids.Ascend(after, func(id ScopeID) bool {
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

// sortedTexts is the texts in order, each once.
func sortedTexts(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}

// sortedAgents brings agents into one form, each once.
func sortedAgents(list []kg.AgentID) []kg.AgentID {
	var out []kg.AgentID
	for _, a := range list {
		out = append(out, kg.CanonicalAgent(string(a)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
