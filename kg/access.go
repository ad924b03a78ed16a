package kg

import (
	"context"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"koine/kg/internal/base"
	"koine/kg/internal/index"
	"koine/kg/internal/keys"
)

// Bounds on the answers that a store keeps of its Access. Past either of them the
// new takes the place of the old, which is asked for again when it is needed.
const (
	MaxCachedReaders = 256  // whose answers are kept
	MaxCachedGraphs  = 8192 // of each of them
)

// accessCache keeps who reads which graphs. It is safe for concurrent use; nothing
// but what was not known before takes a lock.
type accessCache struct {
	version    *atomic.Uint64 // nil: nothing is kept
	seed       maphash.Seed
	generation atomic.Pointer[accessGeneration]
}

// accessGeneration are the readers of one version. All are dropped with it.
type accessGeneration struct {
	version uint64
	places  [MaxCachedReaders]atomic.Pointer[cachedReader]
}

// ways is in how many places a reader may be.
const ways = 4

func newReaders(a Access) *accessCache {
	r := &accessCache{version: VersionOf(a), seed: maphash.MakeSeed()}
	r.generation.Store(new(accessGeneration))
	return r
}

// readerFor is what is kept of the principal's answers under the version of this moment,
// nil when nothing may be. Whoever reads pins its revision before, so that the
// version is not older than what is read.
func (r *accessCache) readerFor(p *Principal) *cachedReader {
	if r.version == nil {
		return nil
	}
	version := r.version.Load()
	kept := r.generation.Load()
	for kept.version != version {
		if kept.version > version {
			return nil // somebody saw a newer one meanwhile
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

// cachedReader keeps, of one principal and one version, which graphs it reads.
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

// decisionTable is a table of decisions by the numbers of the graphs. Once published it
// changes only from free to taken.
type decisionTable struct {
	list  []atomic.Uint64 // number+1 and the decision; 0 is free
	shift int
}

// decision is what is known of a reader and a graph.
type decision uint64

const (
	unknown decision = iota
	readable
	unreadable
	ownGraph     // is asked about each time
	decisionBits = 2
	fewestSlots  = 16
)

// graphNumber is the number by which a graph is kept.
func graphNumber(graph ID) (n uint64, ok bool) {
	if graph == keys.DefaultGraph {
		return 0, true
	}
	// None has the number 0, and an IRI and a blank node never share one.
	return graph.Number(), graph.Tag() == keys.TagIRI || graph.Tag() == keys.TagBlank
}

// lookupDecision is what is known of the graph; nothing once the version has moved on.
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

// cacheDecision notes a decision that was just made, and tells whether find gives it.
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
		t, r.used = newSlots(fewestSlots), 0
	case 2*(r.used+1) > len(t.list):
		t = t.doubled()
	}
	if t.putDecision(number, d) {
		r.used++
	}
	r.slots.Store(t)
	return true
}

func newSlots(n int) *decisionTable {
	return &decisionTable{list: make([]atomic.Uint64, n), shift: 64 - bits.TrailingZeros(uint(n))}
}

// firstSlot is where to look for the number first. Numbers that follow one another
// are spread.
func (t *decisionTable) firstSlot(number uint64) int {
	return int(number * 0x9e3779b97f4a7c15 >> t.shift)
}

// putDecision tells whether the number is a new one.
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

// doubled is the table with twice the slots.
func (t *decisionTable) doubled() *decisionTable {
	next := newSlots(2 * len(t.list))
	for i := range t.list {
		if slot := t.list[i].Load(); slot != 0 {
			next.putDecision(slot>>decisionBits-1, decision(slot&(1<<decisionBits-1)))
		}
	}
	return next
}

// lastAnswer keeps the last answer, for what looks at one statement after the
// other: most are in the graph of the one before. It belongs to one goroutine.
type lastAnswer struct {
	current *atomic.Uint64 // nil: nothing is kept
	version uint64
	graph   Term // zero: there is none yet
	answer  bool
}

// mayRead tells whether the principal, always the same, reads the graph by the newest
// answers.
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

// AccessChanges is an Access that knows when its answers became others. A watcher
// under one that is not this never learns of it: from the next event on it sees
// what it may, and what it was told before stays as it was.
type AccessChanges interface {
	Access
	// ReadChanged tells whether what the principal may read has changed in a commit
	// behind the revision, and up to which revision that is the answer, which is
	// not before after. It is asked at every commit that a watcher looks at: while
	// nothing changes it must cost next to nothing.
	ReadChanged(p Principal, after Revision) (changed bool, upTo Revision)
}

// constantAccess is an Access whose answers stay what they are.
type constantAccess struct{ Access }

func (constantAccess) ReadChanged(_ Principal, after Revision) (bool, Revision) { return false, after }

// ChangesOf is an Access as one that knows, or what it wraps: an Access that adds
// to another has Unwrap. One whose answers never change is made of any other.
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
	e := Errorf(CodeAccessChanged, "what you may see has changed")
	e.Hint = "read anew, then follow from there"
	oldest := s.Oldest()
	e.Oldest = &oldest
	return e
}

// CheckAgent returns CodeInvalid for an id that is not WellFormed, unless the agent is
// there already: on record, one that a key acts for, a member of a channel, or a source of
// statements.
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
	if err != nil || known && tx.catalog.Backed(string(keys.Source(source.Number()))) > 0 {
		return err
	}
	return malformed
}

// visibleAssertions gives the assertions of a statement in the graph that the view admits.
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

// isQuarantined tells whether a watcher leaves the assertion out for the doubts of the
// moment.
func (f *watchFilter) isQuarantined(graph Term, a *Assertion) bool {
	doubts := f.distrust.Doubted()
	return doubts != nil && doubts.Hide(a) && !IsOwnGraph(graph)
}

// unfollowed is behind every revision.
const unfollowed Revision = math.MaxUint64

// isForgotten tells whether what stood in the graph until a revision is not seen.
func (s *Snapshot) isForgotten(graph ID, to Revision) (bool, error) {
	if s.forgets == nil || to > s.followed {
		return false, nil
	}
	if d, ok := s.forgot.Load(graph); ok {
		return d.(bool), nil
	}
	t, err := s.dict.Term(graph)
	if err != nil {
		return false, err
	}
	forgot := s.forgets(t)
	s.forgot.Store(graph, forgot)
	return forgot, nil
}

// isForgotten is that of the snapshot; an error ends the scan.
func (sc *scanner) isForgotten(graph ID, to uint64) (forgot bool) {
	if sc.s.forgets == nil {
		return false
	}
	forgot, sc.err = sc.s.isForgotten(graph, Revision(to))
	return forgot || sc.err != nil
}

// isForgotten tells whether the principal does not see of the graph what a commit
// took away, or brought and is gone.
func (f *watchFilter) isForgotten(c *Commit, graph Term) bool {
	return f.forgets != nil && c.Revision <= f.followed && f.forgets(graph)
}

// noteUnreported notes that what began to stand in a revision went without a word.
func (f *watchFilter) noteUnreported(since Revision) {
	if f.Ops != nil && !slices.Contains(f.Ops, Remove) && !slices.Contains(f.Ops, Replace) {
		return
	}
	if since != 0 && since <= f.known {
		f.stale = true
	}
}

// isCurrent tells whether an assertion of a change is what stands now. An error
// ends the reading (broken).
func (f *watchFilter) isCurrent(ch *Change) bool {
	stands, err := f.hasAssertion(&ch.Quad, &ch.Assertion)
	if err != nil {
		f.err = err
	}
	return stands
}

// endError is why nothing more may be told.
func (f *watchFilter) endError(s *Store) error {
	if f.err == nil && f.stale {
		return s.errAccessChanged()
	}
	return f.err
}

// hasAssertion tells whether the newest revision has the assertion of the statement.
func (s *Store) hasAssertion(q *Quad, a *Assertion) (bool, error) {
	p, err := s.pin(context.Background())
	if err != nil {
		return false, err
	}
	defer s.unpin(p)
	dict := index.Dictionary{KV: p.kv, Cache: s.cache}
	var ids IDQuad
	for _, part := range base.QuadParts(q, &ids) {
		id, known, err := dict.ID(*part.Term)
		if !known || err != nil {
			return false, err
		}
		*part.ID = id
	}
	ids.Graph = p.head.generations.Current(ids.Graph)
	var st base.State
	found, err := p.kv.Get(keys.SPOG.Append(nil, ids), func(v []byte) (err error) {
		st, err = base.ParseState(v, dict.Agent)
		return err
	})
	if !found || err != nil {
		return false, err
	}
	p.head.generations.Settle(&st, ids.Graph)
	now, ok := base.FindSource(st.Assertions, a.Source)
	return ok && now.Revision == a.Revision, nil
}

// isDeletedAt tells that what a graph held at a revision is found by nobody: the graph of
// that name was deleted since.
func (s *Store) isDeletedAt(graph Term, at Revision) bool {
	return s.head.Load().generations.Hides(graph, at)
}

// View is Store.View for what the events of the watcher are told with, to the
// watcher's principal: of what a Forgetter forgets, it shows what went since the
// watcher was registered, as of when it stood.
func (w *Watcher) View(ctx context.Context, v View) (*Snapshot, error) {
	v.Principal = w.filter.View.Principal
	snapshot, err := w.s.View(ctx, v)
	if err == nil {
		snapshot.followed = w.filter.followed
	}
	return snapshot, err
}

// ReadLog is Store.ReadLog for a part of what the watcher tells, with what it tells
// of that.
func (w *Watcher) ReadLog(ctx context.Context, f Filter, part LogRange) (*LogReader, error) {
	f.View.Principal = w.filter.View.Principal
	l, err := w.s.ReadLog(ctx, f, part)
	if err == nil {
		l.filter.followed = w.filter.followed
	}
	return l, err
}

// withoutGone is a commit without what it changed in graphs whose past is kept from
// its reader, but for what still stands as the commit left it. Why it was made
// stays: that is not what they held.
func (s *Store) withoutGone(c *Commit, forgets func(graph Term) bool) (*Commit, error) {
	if !slices.ContainsFunc(c.Changes, func(ch Change) bool { return forgets(ch.Quad.Graph) }) {
		return c, nil
	}
	out := *c
	out.Changes, out.ContentHash = nil, [32]byte{} // a hash of what is gone too
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
