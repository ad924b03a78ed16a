package kg

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"koine/kg/internal/keys"
)

// VersionedAccess is an Access whose answers can be kept from one read to the
// next, so that a read of many graphs asks about none of them again.
//
// Its answers for Read depend on nothing of the principal but ID, Method and
// Roles, and stay what they are for as long as the version does; those for graphs
// of koine's own may change at any time and are never kept. Who changes the
// answers first lets Allowed give the new ones and then moves the version on,
// never back, and before the commit that changed them is shown to any reader
// (OnSystemChange is such a time).
type VersionedAccess interface {
	Access
	// Version is the counter of the versions, always the same one; nil when
	// answers may change without one, and are not kept.
	Version() *atomic.Uint64
}

// VersionOf is the version of an Access, for one that adds to it and keeps to the
// same rules; nil when it has none.
func VersionOf(a Access) *atomic.Uint64 {
	if v, ok := a.(VersionedAccess); ok {
		return v.Version()
	}
	return nil
}

// Bounds on the answers that a store keeps of its Access. Past either of them the
// new takes the place of the old, which is asked for again when it is needed.
const (
	MaxKeptReaders = 256  // whose answers are kept
	MaxKeptGraphs  = 8192 // of each of them
)

// readers keeps who reads which graphs. It is safe for concurrent use; nothing
// but what was not known before takes a lock.
type readers struct {
	version *atomic.Uint64 // nil: nothing is kept
	seed    maphash.Seed
	kept    atomic.Pointer[readersOf]
}

// readersOf are the readers of one version. All are dropped with it.
type readersOf struct {
	version uint64
	places  [MaxKeptReaders]atomic.Pointer[reader]
}

// ways is in how many places a reader may be.
const ways = 4

func newReaders(a Access) *readers {
	r := &readers{version: VersionOf(a), seed: maphash.MakeSeed()}
	r.kept.Store(new(readersOf))
	return r
}

// of is what is kept of the principal's answers under the version of this moment,
// nil when nothing may be. Whoever reads pins its revision before, so that the
// version is not older than what is read.
func (r *readers) of(p *Principal) *reader {
	if r.version == nil {
		return nil
	}
	version := r.version.Load()
	kept := r.kept.Load()
	for kept.version != version {
		if kept.version > version {
			return nil // somebody saw a newer one meanwhile
		}
		r.kept.CompareAndSwap(kept, &readersOf{version: version})
		kept = r.kept.Load()
	}
	place := maphash.String(r.seed, string(p.ID))
	for _, role := range p.Roles {
		place = place*31 + maphash.String(r.seed, role)
	}
	free := place % MaxKeptReaders
	for way := uint64(ways); way > 0; way-- {
		at := (place + way - 1) % MaxKeptReaders
		switch is := kept.places[at].Load(); {
		case is == nil:
			free = at
		case is.id == p.ID && is.method == p.Method && slices.Equal(is.roles, p.Roles):
			return is
		}
	}
	fresh := &reader{id: p.ID, method: p.Method, roles: slices.Clone(p.Roles), version: version, newest: r.version}
	kept.places[free].Store(fresh)
	return fresh
}

// reader keeps, of one principal and one version, which graphs it reads.
type reader struct {
	id      AgentID
	method  string
	roles   []string
	version uint64
	newest  *atomic.Uint64

	slots atomic.Pointer[slots]
	mu    sync.Mutex // held while the slots change
	used  int        // guarded by mu
}

// slots is a table of decisions by the numbers of the graphs. Once published it
// changes only from free to taken.
type slots struct {
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

// numberOf is the number by which a graph is kept.
func numberOf(graph ID) (n uint64, ok bool) {
	if graph == keys.DefaultGraph {
		return 0, true
	}
	// None has the number 0, and an IRI and a blank node never share one.
	return graph.Number(), graph.Tag() == keys.TagIRI || graph.Tag() == keys.TagBlank
}

// find is what is known of the graph; nothing once the version has moved on.
func (r *reader) find(graph ID) decision {
	if r == nil || r.version != r.newest.Load() {
		return unknown
	}
	number, ok := numberOf(graph)
	t := r.slots.Load()
	if !ok || t == nil {
		return unknown
	}
	for at := t.place(number); ; at++ {
		switch slot := t.list[at&(len(t.list)-1)].Load(); {
		case slot == 0:
			return unknown
		case slot>>decisionBits == number+1:
			return decision(slot & (1<<decisionBits - 1))
		}
	}
}

// keep notes a decision that was just made, and tells whether find gives it.
func (r *reader) keep(graph ID, d decision) bool {
	number, ok := numberOf(graph)
	if r == nil || !ok || r.version != r.newest.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.slots.Load()
	switch {
	case t == nil || r.used == MaxKeptGraphs:
		t, r.used = newSlots(fewestSlots), 0
	case 2*(r.used+1) > len(t.list):
		t = t.grown()
	}
	if t.put(number, d) {
		r.used++
	}
	r.slots.Store(t)
	return true
}

func newSlots(n int) *slots {
	return &slots{list: make([]atomic.Uint64, n), shift: 64 - bits.TrailingZeros(uint(n))}
}

// place is where to look for the number first. Numbers that follow one another
// are spread.
func (t *slots) place(number uint64) int { return int(number * 0x9e3779b97f4a7c15 >> t.shift) }

// put tells whether the number is a new one.
func (t *slots) put(number uint64, d decision) bool {
	for at := t.place(number); ; at++ {
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

// grown is the table with twice the slots.
func (t *slots) grown() *slots {
	next := newSlots(2 * len(t.list))
	for i := range t.list {
		if slot := t.list[i].Load(); slot != 0 {
			next.put(slot>>decisionBits-1, decision(slot&(1<<decisionBits-1)))
		}
	}
	return next
}

// graphAnswer keeps the last answer, for what looks at one statement after the
// other: most are in the graph of the one before. It belongs to one goroutine.
type graphAnswer struct {
	of      *atomic.Uint64 // nil: nothing is kept
	version uint64
	graph   Term // zero: there is none yet
	answer  bool
}

// may tells whether the principal, always the same, reads the graph by the newest
// answers.
func (a *graphAnswer) may(access Access, p *Principal, graph Term) bool {
	if a.of == nil {
		return access.Allowed(*p, graph, Read)
	}
	version := a.of.Load()
	if version == a.version && graph == a.graph {
		return a.answer
	}
	may := access.Allowed(*p, graph, Read)
	if !IsOwnGraph(graph) {
		a.version, a.graph, a.answer = version, graph, may
	}
	return may
}
