package kg

import (
	"context"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"koine/kg/base"
	"koine/kg/internal/keys"
)

// Bounds of the access cache. Beyond either, a new entry replaces an old one.
const (
	MaxCachedReaders = 256  // principals
	MaxCachedGraphs  = 8192 // graphs for each of them
)

// accessCache keeps the read decisions of a VersionedAccess: which principal may read which
// graph. It is safe for concurrent use. Only a new entry takes a lock.
type accessCache struct {
	version    *atomic.Uint64 // nil: nothing is cached
	seed       maphash.Seed
	generation atomic.Pointer[accessGeneration]
}

// accessGeneration holds the readers of one version of the policies. A new version replaces
// all.
type accessGeneration struct {
	version uint64
	places  [MaxCachedReaders]atomic.Pointer[cachedReader]
}

// ways is the number of places in which a reader may be.
const ways = 4

func newAccessCache(a Access) *accessCache {
	r := &accessCache{version: VersionOf(a), seed: maphash.MakeSeed()}
	r.generation.Store(new(accessGeneration))
	return r
}

// readerFor returns the cached decisions of the principal under the current version, or nil if
// nothing may be cached. A caller pins its revision first, so that the version is not older
// than the revision.
func (r *accessCache) readerFor(p *Principal) *cachedReader {
	if r.version == nil {
		return nil
	}
	version := r.version.Load()
	kept := r.generation.Load()
	for kept.version != version {
		if kept.version > version {
			return nil // another goroutine saw a newer version meanwhile
		}
		r.generation.CompareAndSwap(kept, &accessGeneration{version: version})
		kept = r.generation.Load()
	}
	place := maphash.String(r.seed, string(p.ID))
	for _, role := range p.Roles {
		place = place*31 + maphash.String(r.seed, role)
	}
	free := place % MaxCachedReaders
	for way := uint64(ways); way > 0; way-- {
		at := (place + way - 1) % MaxCachedReaders
		switch is := kept.places[at].Load(); {
		case is == nil:
			free = at
		case is.id == p.ID && is.method == p.Method && slices.Equal(is.roles, p.Roles):
			return is
		}
	}
	fresh := &cachedReader{id: p.ID, method: p.Method, roles: slices.Clone(p.Roles), version: version, newest: r.version}
	kept.places[free].Store(fresh)
	return fresh
}

// cachedReader holds the decisions on one principal under one version.
type cachedReader struct {
	id      AgentID
	method  string
	roles   []string
	version uint64
	newest  *atomic.Uint64

	slots atomic.Pointer[decisionTable]
	mu    sync.Mutex // held while the slots change
	used  int        // guarded by mu
}

// decisionTable is an open-addressing hash table of decisions by graph number. A published
// slot changes only from free to taken, so that readers need no lock.
type decisionTable struct {
	list  []atomic.Uint64 // number+1 and the decision; 0 is free
	shift int
}

// decision is the cached answer for a reader and a graph.
type decision uint64

const (
	unknown decision = iota
	readable
	unreadable
	ownGraph     // not cached: checked each time
	decisionBits = 2
	fewestSlots  = 16
)

// graphNumber returns the key of a graph in a decisionTable.
func graphNumber(graph ID) (n uint64, ok bool) {
	if graph == keys.DefaultGraph {
		return 0, true
	}
	// No graph has the number 0, and an IRI and a blank node never share one.
	return graph.Number(), graph.Tag() == keys.TagIRI || graph.Tag() == keys.TagBlank
}

// lookupDecision returns the cached decision on the graph, or unknown, also if the version has
// changed.
func (r *cachedReader) lookupDecision(graph ID) decision {
	if r == nil || r.version != r.newest.Load() {
		return unknown
	}
	number, ok := graphNumber(graph)
	t := r.slots.Load()
	if !ok || t == nil {
		return unknown
	}
	for at := t.firstSlot(number); ; at++ {
		switch slot := t.list[at&(len(t.list)-1)].Load(); {
		case slot == 0:
			return unknown
		case slot>>decisionBits == number+1:
			return decision(slot & (1<<decisionBits - 1))
		}
	}
}

// cacheDecision stores a decision. It returns false if the decision cannot be cached.
func (r *cachedReader) cacheDecision(graph ID, d decision) bool {
	number, ok := graphNumber(graph)
	if r == nil || !ok || r.version != r.newest.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.slots.Load()
	switch {
	case t == nil || r.used == MaxCachedGraphs:
		t, r.used = newDecisionTable(fewestSlots), 0
	case 2*(r.used+1) > len(t.list):
		t = t.doubled()
	}
	if t.putDecision(number, d) {
		r.used++
	}
	r.slots.Store(t)
	return true
}

func newDecisionTable(n int) *decisionTable {
	return &decisionTable{list: make([]atomic.Uint64, n), shift: 64 - bits.TrailingZeros(uint(n))}
}

// firstSlot returns the slot at which the probing for a number begins. It spreads consecutive
// numbers.
func (t *decisionTable) firstSlot(number uint64) int {
	return int(number * 0x9e3779b97f4a7c15 >> t.shift)
}

// putDecision stores a decision and reports whether the number is new.
func (t *decisionTable) putDecision(number uint64, d decision) bool {
	for at := t.firstSlot(number); ; at++ {
		slot := &t.list[at&(len(t.list)-1)]
		switch v := slot.Load(); {
		case v == 0:
			slot.Store((number+1)<<decisionBits | uint64(d))
			return true
		case v>>decisionBits == number+1:
			return false
		}
	}
}

// doubled returns a copy with twice the slots.
func (t *decisionTable) doubled() *decisionTable {
	next := newDecisionTable(2 * len(t.list))
	for i := range t.list {
		if slot := t.list[i].Load(); slot != 0 {
			next.putDecision(slot>>decisionBits-1, decision(slot&(1<<decisionBits-1)))
		}
	}
	return next
}

// lastAnswer caches the last decision for readers that examine one statement after the other:
// consecutive statements mostly share a graph. It belongs to one goroutine.
type lastAnswer struct {
	current *atomic.Uint64 // version of the Access; nil: nothing is cached
	version uint64
	graph   Term // zero: no answer yet
	answer  bool
}

// mayRead reports whether the principal may read the graph by the newest policies. All calls
// pass the same principal.
func (a *lastAnswer) mayRead(access Access, p *Principal, graph Term) bool {
	if a.current == nil {
		return access.Allowed(*p, graph, Read)
	}
	version := a.current.Load()
	if version == a.version && graph == a.graph {
		return a.answer
	}
	may := access.Allowed(*p, graph, Read)
	if !IsOwnGraph(graph) {
		a.version, a.graph, a.answer = version, graph, may
	}
	return may
}

// AccessChanges is an Access that knows when its answers change. Under any other Access a
// watcher is not told of a change: from the next event on it sees what the new answers permit,
// and earlier events stay.
type AccessChanges interface {
	Access
	// ReadChanged reports whether the read rights of the principal on any graph changed in a
	// commit after the revision, and up to which revision the answer holds, at least after.
	// Watchers call it at every commit: it must cost next to nothing while nothing changes.
	ReadChanged(p Principal, after Revision) (changed bool, upTo Revision)
}

// constantAccess is an Access whose answers never change.
type constantAccess struct{ Access }

func (constantAccess) ReadChanged(_ Principal, after Revision) (bool, Revision) { return false, after }

// ChangesOf returns the AccessChanges that access is or wraps: an Access that adds to another
// has an Unwrap method. Any other Access is taken to never change.
func ChangesOf(access Access) AccessChanges {
	for {
		switch a := access.(type) {
		case AccessChanges:
			return a
		case interface{ Unwrap() Access }:
			access = a.Unwrap()
		default:
			return constantAccess{access}
		}
	}
}

func (s *Store) errAccessChanged() *Error {
	e := Errorf(CodeAccessChanged, "the caller's access has changed")
	e.Hint = "read a new snapshot and watch from its position"
	oldest := s.Oldest()
	e.Oldest = &oldest
	return e
}

// CheckAgent returns CodeInvalid for an id that is not WellFormed, unless the store knows the
// agent already: from a record, a key, a membership or a statement.
func (s *Store) CheckAgent(ctx context.Context, id AgentID) error {
	malformed := id.WellFormed()
	if malformed == nil || id.Valid() != nil {
		return malformed
	}
	snapshot, err := s.View(ctx, View{Principal: SystemPrincipal(), AllGraphs: true})
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if there, err := base.NamesAgent(snapshot.Match, id); there || err != nil {
		return err
	}
	if n, err := s.SourceStatements(id); err != nil || n > 0 {
		return err
	}
	return malformed
}

// CheckAgent is Store.CheckAgent within an update.
func (tx *Tx) CheckAgent(id AgentID) error {
	malformed := id.WellFormed()
	if malformed == nil || id.Valid() != nil {
		return malformed
	}
	if there, err := base.NamesAgent(tx.MatchOwn, id); there || err != nil {
		return err
	}
	term := base.AgentTerm(id)
	source, known, err := tx.w.ResolveTerm(&term, nil, nil)
	if err != nil || known && tx.catalog.SourceCount(string(keys.Source(source.Number()))) > 0 {
		return err
	}
	return malformed
}

// visibleAssertions returns the assertions of a statement in the graph that the view admits.
func (s *Snapshot) visibleAssertions(graph ID, all []Assertion) []Assertion {
	if s.view.Doubts != nil {
		if t, err := s.dict.Term(graph); err == nil && IsOwnGraph(t) {
			trusting := s.view
			trusting.Doubts = nil
			return trusting.Visible(all)
		}
	}
	return s.view.Visible(all)
}

// isQuarantined reports whether the assertion is hidden because its source is in quarantine
// now.
func (f *watchFilter) isQuarantined(graph Term, a *Assertion) bool {
	doubts := f.distrust.Doubted()
	return doubts != nil && doubts.Excludes(a) && !IsOwnGraph(graph)
}

// unfollowed is greater than every revision.
const unfollowed Revision = math.MaxUint64

// isForgotten reports whether statements of the graph that ended at a revision are hidden
// (Forgetter).
func (s *Snapshot) isForgotten(graph ID, to Revision) (bool, error) {
	if s.forgets == nil || to > s.followed {
		return false, nil
	}
	if d, ok := s.forgottenGraphs.Load(graph); ok {
		return d.(bool), nil
	}
	t, err := s.dict.Term(graph)
	if err != nil {
		return false, err
	}
	forgot := s.forgets(t)
	s.forgottenGraphs.Store(graph, forgot)
	return forgot, nil
}

// isForgotten is Snapshot.isForgotten. An error ends the scan.
func (sc *scanner) isForgotten(graph ID, to uint64) (forgot bool) {
	if sc.s.forgets == nil {
		return false
	}
	forgot, sc.err = sc.s.isForgotten(graph, Revision(to))
	return forgot || sc.err != nil
}

// isForgotten reports whether the principal may not see removals of the commit in the graph,
// nor additions that are gone by now.
func (f *watchFilter) isForgotten(c *Commit, graph Term) bool {
	return f.forgets != nil && c.Revision <= f.followed && f.forgets(graph)
}

// noteUnreported notes that a statement which began to hold in a revision ended without an
// event.
func (f *watchFilter) noteUnreported(since Revision) {
	if f.Ops != nil && !slices.Contains(f.Ops, Remove) && !slices.Contains(f.Ops, Replace) {
		return
	}
	if since != 0 && since <= f.known {
		f.stale = true
	}
}

// isCurrent reports whether the assertion of a change is still in the store. An error ends the
// reading (endError).
func (f *watchFilter) isCurrent(ch *Change) bool {
	stands, err := f.hasAssertion(&ch.Quad, &ch.Assertion)
	if err != nil {
		f.err = err
	}
	return stands
}

// endError returns the error that ends the reading, or nil.
func (f *watchFilter) endError(s *Store) error {
	if f.err == nil && f.stale {
		return s.errAccessChanged()
	}
	return f.err
}

// hasAssertion reports whether the newest revision has the assertion of the statement.
func (s *Store) hasAssertion(q *Quad, a *Assertion) (bool, error) {
	p, err := s.pin(context.Background())
	if err != nil {
		return false, err
	}
	defer s.unpin(p)
	dict := s.dictionary(p.kv)
	var ids IDQuad
	for _, part := range base.QuadParts(q, &ids) {
		id, known, err := dict.ID(*part.Term)
		if !known || err != nil {
			return false, err
		}
		*part.ID = id
	}
	ids.Graph = p.head.generations.CurrentID(ids.Graph)
	var st base.State
	found, err := p.kv.Get(keys.SPOG.Append(nil, ids), func(v []byte) (err error) {
		st, err = base.ParseState(v, dict.Agent)
		return err
	})
	if !found || err != nil {
		return false, err
	}
	p.head.generations.SettleState(&st, ids.Graph)
	now, ok := base.FindSource(st.Assertions, a.Source)
	return ok && now.Revision == a.Revision, nil
}

// isDeletedAt reports whether the content of a graph at a revision is unreachable because the
// graph was deleted later.
func (s *Store) isDeletedAt(graph Term, at Revision) bool {
	return s.head.Load().generations.Hides(graph, at)
}

// View is Store.View for data that accompanies the watcher's events, under the watcher's
// principal. In graphs with a Forgetter it still shows, at past revisions, the statements
// removed since the watcher was registered.
func (w *Watcher) View(ctx context.Context, v View) (*Snapshot, error) {
	v.Principal = w.filter.View.Principal
	snapshot, err := w.s.View(ctx, v)
	if err == nil {
		snapshot.followed = w.filter.followed
	}
	return snapshot, err
}

// ReadLog is Store.ReadLog within the part of the log that the watcher covers, with the same
// visibility as its events.
func (w *Watcher) ReadLog(ctx context.Context, f Filter, part LogRange) (*LogReader, error) {
	f.View.Principal = w.filter.View.Principal
	l, err := w.s.ReadLog(ctx, f, part)
	if err == nil {
		l.filter.followed = w.filter.followed
	}
	return l, err
}

// withoutHiddenPast returns a copy of the commit without its changes in graphs whose past is hidden
// from the reader, except for statements that still hold as the commit left them. The
// justification stays: it is not content of those graphs.
func (s *Store) withoutHiddenPast(c *Commit, forgets func(graph Term) bool) (*Commit, error) {
	if !slices.ContainsFunc(c.Changes, func(ch Change) bool { return forgets(ch.Quad.Graph) }) {
		return c, nil
	}
	out := *c
	out.Changes, out.ContentHash = nil, [32]byte{} // the hash covers the removed changes too
	for _, ch := range c.Changes {
		ch.Replaces, ch.ReplacedBy = nil, -1
		if forgets(ch.Quad.Graph) {
			stands := false
			var err error
			if ch.Op != Remove {
				stands, err = s.hasAssertion(&ch.Quad, &ch.Assertion)
			}
			if err != nil {
				return nil, err
			}
			if !stands {
				continue
			}
			ch.Before, ch.Since = nil, 0
		}
		out.Changes = append(out.Changes, ch)
	}
	if len(out.Changes) == 0 {
		return nil, errNoRevision(c.Revision)
	}
	return &out, nil
}
