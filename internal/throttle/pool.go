package throttle

import (
	"net/netip"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// Owner is whom a share of a Pool belongs to: a principal, or an address where
// nobody is known. It is comparable.
type Owner struct {
	principal kg.AgentID
	address   netip.Prefix
}

// OwnerOf returns the owner that a caller's requests count for. In open mode a
// caller is known by the name that it gives; one that gives none counts for its
// address. Loopback addresses count like others.
func OwnerOf(who caller.Caller) Owner {
	p := who.Principal
	if p.Method == caller.MethodNone || p.Method == kg.MethodOpen && p.ID == kg.Anonymous {
		return OwnerAt(who.Address)
	}
	return Owner{principal: p.ID}
}

// OwnerAt returns the owner of what comes from an address and from nobody known.
func OwnerAt(addr netip.Addr) Owner {
	key, _ := prefixOf(addr)
	return Owner{address: key}
}

// Known reports whether the owner is a principal.
func (o Owner) Known() bool { return o.principal != "" }

// Pool is a number of places, or of bytes, that owners share. An owner may hold
// at most half of what the others leave free, rounded up: one owner alone gets
// half of the pool, k greedy ones get a (k+1)th part each, and a newcomer finds
// something free. It is safe for concurrent use; a nil Pool bounds nothing.
type Pool struct {
	size int64

	mu    sync.Mutex // guards what follows
	inUse int64
	held  map[Owner]int64
}

// NewPool makes a pool of size places.
func NewPool(size int64) *Pool { return &Pool{size: size, held: map[Owner]int64{}} }

// Acquire takes n places for the owner, or none and returns false.
func (p *Pool) Acquire(o Owner, n int64) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.held[o]
	if held+n > (p.size-(p.inUse-held)+1)/2 {
		return false
	}
	p.addHeld(o, n)
	return true
}

// AcquireFree takes n places for the owner if they are free, whatever its share.
func (p *Pool) AcquireFree(o Owner, n int64) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inUse+n > p.size {
		return false
	}
	p.addHeld(o, n)
	return true
}

// Release gives n places back that the owner took.
func (p *Pool) Release(o Owner, n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addHeld(o, -n)
}

// Move makes n places of one owner those of another, or returns false if they do
// not fit into the other's share.
func (p *Pool) Move(from, to Owner, n int64) bool {
	if p == nil || from == to {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.held[to]; held+n > (p.size-(p.inUse-n-held)+1)/2 {
		return false
	}
	p.addHeld(from, -n)
	p.addHeld(to, n)
	return true
}

// addHeld is called with p.mu held.
func (p *Pool) addHeld(o Owner, n int64) {
	p.inUse += n
	if held := p.held[o] + n; held > 0 {
		p.held[o] = held
	} else {
		delete(p.held, o)
	}
}

// InUse returns how many places are taken.
func (p *Pool) InUse() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse
}

// Size returns how many places there are.
func (p *Pool) Size() int64 { return p.size }
