package access

import (
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

// Scope is the in-memory entry of a scope. It is immutable; its cell points to the
// current one.
type Scope struct {
	scope.Scope
	parent   *scopeCell // nil for an intent
	now      func() time.Time
	decideAt time.Time // time of the decision; the zero time means now
}

// AtTime returns the scope for decisions at the time of a commit. The time matters only
// for grants that expire.
func (s *Scope) AtTime(t time.Time) *Scope {
	if s == nil {
		return nil
	}
	then := *s
	then.decideAt = t
	return &then
}

// scopeCell points to the current entry of a scope. Channels refer to the cell.
type scopeCell struct {
	now   atomic.Pointer[Scope]
	timer *time.Timer // of watchExpiry; guarded by the lock of the table
}

// scopeTable holds the scopes of the store in memory, with their channels. It is part
// of the table; the table's lock guards all fields that are not read without a lock.
type scopeTable struct {
	cells sync.Map // scope.ID → *scopeCell; read without a lock
	count atomic.Int64

	ids   btree.Set[scope.ID]
	parts map[scope.ID]*scopeParts
	now   func() time.Time
	// onGrant receives the time at which the first grant of a changed scope expires; the
	// zero time means none does.
	onGrant func(scope.ID, time.Time)
}

// scopeParts holds the channels and tasks of a scope.
type scopeParts struct {
	channels btree.Set[channel.ID] // without deleted ones
	// names has, for an intent, its channels and those of its tasks by name, sorted by id:
	// one of each name, but for those that had the name before names were unique in the
	// intent.
	names    map[string][]channel.ID
	tasks    btree.Set[scope.ID]
	external map[string]scope.ID // of the tasks, by external id
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
func (t *scopeTable) get(id scope.ID) *Scope { return t.lookupCell(id).get() }

// partsOf returns the parts of a scope and creates them if needed. The caller holds the
// lock of the table.
func (t *scopeTable) partsOf(id scope.ID) *scopeParts {
	p := t.parts[id]
	if p == nil {
		p = &scopeParts{names: map[string][]channel.ID{}, external: map[string]scope.ID{}}
		if t.parts == nil {
			t.parts = map[scope.ID]*scopeParts{}
		}
		t.parts[id] = p
	}
	return p
}

// putScope stores the entry of a scope. The caller holds the lock of the table.
func (t *scopeTable) putScope(s *scope.Scope) (before, now *Scope) {
	cell := t.lookupCell(s.ID)
	if cell == nil {
		cell = new(scopeCell)
		t.count.Add(1)
		t.ids.Insert(s.ID)
	}
	before = cell.get()
	now = &Scope{Scope: *s, parent: t.cellOrEmpty(s.Parent), now: t.now}
	if s.Parent != "" {
		parts := t.partsOf(s.Parent)
		parts.tasks.Insert(s.ID)
		if s.ExternalID != "" {
			parts.external[s.ExternalID] = s.ID
		}
	}
	if before == nil && len(s.Grants) > 0 || before != nil && !slices.Equal(before.Grants, s.Grants) {
		t.onGrant(s.ID, now.NextExpiry(time.Time{}))
	}
	cell.now.Store(now)
	t.cells.Store(s.ID, cell)
	return before, now
}

// placeChannel updates the channels and names of a scope for a changed channel. The
// caller holds the lock of the table.
func (t *scopeTable) placeChannel(before, now *Entry) {
	if now.Scope == "" {
		return
	}
	parts, names := t.partsOf(now.Scope), t.partsOf(t.intentOf(now.Scope)).names
	if before != nil {
		names[before.Name] = slices.DeleteFunc(names[before.Name], func(id channel.ID) bool { return id == now.ID })
		if len(names[before.Name]) == 0 {
			delete(names, before.Name)
		}
	}
	if now.Deleted {
		parts.channels.Delete(now.ID)
		return
	}
	parts.channels.Insert(now.ID)
	at, _ := slices.BinarySearch(names[now.Name], now.ID)
	names[now.Name] = slices.Insert(names[now.Name], at, now.ID)
}

// intentOf returns the intent of a task, and an intent itself.
func (t *scopeTable) intentOf(id scope.ID) scope.ID {
	if s := t.get(id); s != nil && s.Parent != "" {
		return s.Parent
	}
	return id
}

// applyScopeCommit applies the changes of a commit to the scopes. The caller holds the
// lock of the table.
func (t *Table) applyScopeCommit(c *kg.Commit) {
	changed := map[scope.ID]*scope.Scope{}
	var order []scope.ID // parents are created before their tasks
	for i := range c.Changes {
		ch := &c.Changes[i]
		id, record := scope.OfGraph(ch.Quad.Graph)
		if !record {
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
			now.RemoveStatement(ch.Quad.Subject, ch.Quad.Predicate, ch.Quad.Object)
		} else {
			now.ApplyStatement(ch.Quad.Subject, ch.Quad.Predicate, ch.Quad.Object)
		}
	}
	for _, id := range order {
		if before, now := t.scopes.putScope(changed[id]); before != nil {
			t.noteAccessChange(c.Revision, before.beforeExpiry(now), now)
		}
		t.watchExpiry(id)
	}
}

// beforeExpiry returns the scope as it was when the grants that the commit removed as
// expired were in force. The agents that they gave access lose it for its streams with that
// commit, although they lost the right to read when the time had come.
func (s *Scope) beforeExpiry(now *Scope) *Scope {
	at := s.decisionTime()
	for i := range s.Grants {
		if g := &s.Grants[i]; g.IsExpired(at) && now.Grant(g.ID) == nil {
			at = g.ExpiresAt.Add(-time.Millisecond)
		}
	}
	return s.AtTime(at)
}

// watchExpiry invalidates cached decisions of the Guard each time when a grant of the scope
// expires. The caller holds the lock of the table.
func (t *Table) watchExpiry(id scope.ID) {
	cell := t.scopes.lookupCell(id)
	if cell.timer != nil {
		cell.timer.Stop()
		cell.timer = nil
	}
	now := t.now()
	at := cell.get().NextExpiry(now)
	if t.version == nil || at.IsZero() {
		return
	}
	cell.timer = time.AfterFunc(at.Sub(now), func() {
		t.version.Add(1)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.watchExpiry(id)
	})
}

// ChannelByName returns the channel with a name in the scope or, for an intent, in one of
// its tasks, or "".
func (t *Table) ChannelByName(id scope.ID, name string) channel.ID {
	list := t.ChannelsNamed(id, name)
	if at := slices.IndexFunc(list, func(c channel.ID) bool { return t.Get(c).Scope == id }); at >= 0 {
		return list[at]
	}
	if len(list) > 0 && t.scopes.intentOf(id) == id {
		return list[0]
	}
	return ""
}

// ChannelsNamed returns the channels with a name in the intent of the scope, its tasks
// included: at most one, but for those from before names were unique in the intent.
func (t *Table) ChannelsNamed(id scope.ID, name string) []channel.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[t.scopes.intentOf(id)]; parts != nil {
		return slices.Clone(parts.names[name])
	}
	return nil
}

// TaskByExternalID returns the task of an intent with this external id, or "".
func (t *Table) TaskByExternalID(intent scope.ID, external string) scope.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[intent]; parts != nil {
		return parts.external[external]
	}
	return ""
}

// TasksOf lists the tasks of an intent.
func (t *Table) TasksOf(id scope.ID) []scope.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[id]; parts != nil {
		return parts.tasks.Keys()
	}
	return nil
}

// ChannelsOf lists the channels of a scope, without deleted ones.
func (t *Table) ChannelsOf(id scope.ID) []channel.ID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if parts := t.scopes.parts[id]; parts != nil {
		return parts.channels.Keys()
	}
	return nil
}

// ChannelsWithin lists the channels of a scope and of its tasks, without deleted ones.
func (t *Table) ChannelsWithin(id scope.ID) []channel.ID {
	list := t.ChannelsOf(id)
	for _, task := range t.TasksOf(id) {
		list = append(list, t.ChannelsOf(task)...)
	}
	return list
}

// ChannelsByScope lists the channels in which everyone with access to their scope takes part,
// without deleted ones.
func (t *Table) ChannelsByScope() (list []channel.ID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, parts := range t.scopes.parts {
		parts.channels.Scan(func(id channel.ID) bool {
			if t.Get(id).MemberPolicy == channel.ByScope {
				list = append(list, id)
			}
			return true
		})
	}
	return list
}

// CountIn returns the number of channels of the scope's intent, including its tasks.
func (t *Table) CountIn(id scope.ID) int {
	id = t.scopes.intentOf(id)
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

// MaxScannedScopes bounds the scopes examined for one page.
const MaxScannedScopes = 5000

// ListScopes returns up to n scopes behind behind, sorted by id, for which only reports
// true. With backward the greatest ids come first. It examines at most MaxScannedScopes scopes. next is the last scope examined if
// there may be more.
func (t *Table) ListScopes(behind scope.ID, backward bool, n int, only func(*Scope) bool) (out []*Scope, next scope.ID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	looked, last := 0, behind
	walkSet(&t.scopes.ids, behind, backward, func(id scope.ID) bool {
		if id == behind {
			return true
		}
		if len(out) == n || looked == MaxScannedScopes {
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

// loadScopes reads the scopes from the store. The caller holds the lock of the table.
func (t *Table) loadScopes(snapshot *kg.Snapshot, match systemgraph.Matcher) error {
	var tasks []*scope.Scope
	for st, err := range snapshot.Match(kg.Pattern{Predicate: vocab.Type, Object: vocab.ClassScope}) {
		if err != nil {
			return err
		}
		id, record := scope.OfGraph(st.Graph)
		if !record || st.Subject != id.Entity() {
			continue
		}
		sc := &scope.Scope{ID: id}
		for st, err := range match(kg.Pattern{Graph: id.RecordGraph()}) {
			if err != nil {
				return err
			}
			sc.ApplyStatement(st.Subject, st.Predicate, st.Object)
		}
		if sc.Parent != "" {
			tasks = append(tasks, sc)
			continue
		}
		t.loadScope(sc)
	}
	for _, task := range tasks { // their parents are loaded
		t.loadScope(task)
	}
	return nil
}

// loadScope stores the entry of a scope that was read from the store.
func (t *Table) loadScope(sc *scope.Scope) {
	t.scopes.putScope(sc)
	t.watchExpiry(sc.ID)
}

// get returns the current entry, or nil for a nil cell.
func (c *scopeCell) get() *Scope {
	if c == nil {
		return nil
	}
	return c.now.Load()
}

// AdmitsPrincipal reports whether the principal has access to the scope.
func (s *Scope) AdmitsPrincipal(p kg.Principal) bool { return s.LevelFor(p) != "" }

// ManagedBy reports whether the principal manages the scope: its creator and coordinator,
// those of its intent, and agents with a grant for that in either.
func (s *Scope) ManagedBy(p kg.Principal) bool { return s.LevelFor(p) == scope.Admin }

// LevelFor returns the level of access of the principal, or "" for none.
func (s *Scope) LevelFor(p kg.Principal) scope.Level {
	if s == nil {
		return ""
	}
	return s.levelAt(p, s.decisionTime)
}

// levelAt returns the level of access at a time, which is asked for only if it matters.
// Managing the intent includes managing its tasks. A task requires access to its intent,
// and gives everybody at most as much as its intent.
func (s *Scope) levelAt(p kg.Principal, at func() time.Time) scope.Level {
	if s == nil {
		return ""
	}
	upper := scope.Write
	if s.parent != nil {
		upper = s.parent.get().levelAt(p, at)
		if upper == scope.Admin || upper == "" {
			return upper
		}
	}
	var now time.Time
	if len(s.Grants) > 0 {
		now = at()
	}
	level, everybody := s.LevelOf(p, now)
	if everybody {
		level = level.Greater(upper)
	}
	return level
}

// decisionTime returns the time at which grants are evaluated.
func (s *Scope) decisionTime() time.Time {
	if s.decideAt.IsZero() {
		return s.now()
	}
	return s.decideAt
}

// readBy reports whether the principal may read the scope's record. In open mode, in
// which every principal is an administrator, administrators have no extra access.
func (s *Scope) readBy(p kg.Principal) bool {
	return s.AdmitsPrincipal(p) || s != nil && readsAll(p)
}
