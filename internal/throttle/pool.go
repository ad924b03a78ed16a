package throttle

import (
	"net/netip"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// Owner is the holder of a share of a Pool: a principal, or an address if the principal
// is unknown. It is comparable.
type Owner struct {
	principal kg.AgentID
	address   netip.Prefix
}

// OwnerOf returns the owner to which a caller's requests are charged. In open mode that
// is the name that the caller gives, or its address without one. Loopback addresses
// count like others.
func OwnerOf(by caller.Caller) Owner {
	p := by.Principal
	if p.Method == caller.MethodNone || p.Method == kg.MethodOpen && p.ID == kg.Anonymous {
		return OwnerAt(by.Address)
	}
	return Owner{principal: p.ID}
}

// OwnerAt returns the owner for unauthenticated requests from an address.
func OwnerAt(addr netip.Addr) Owner {
	return Owner{address: caller.OriginOf(addr)}
}

// OwnerFor returns the owner to which the work of this server for an agent is charged.
func OwnerFor(agent kg.AgentID) Owner { return Owner{principal: agent} }

// Known reports whether the owner is a principal.
func (o Owner) Known() bool { return o.principal != "" }

// Pool is a number of units (slots or bytes) shared by owners. An owner may hold at
// most half of the units that the others leave free, rounded up: a single owner gets
// half of the pool, k greedy owners get a (k+1)th part each, and a newcomer always
// finds free units. It is safe for concurrent use; a nil Pool imposes no limit.
type Pool struct {
	size int64

	mu    sync.Mutex // guards the following
	inUse int64
	held  map[Owner]int64
}

// NewPool returns a pool of size units.
func NewPool(size int64) *Pool { return &Pool{size: size, held: map[Owner]int64{}} }

// Acquire takes n units for the owner. It reports false, and takes none, if they exceed
// the owner's share.
func (p *Pool) Acquire(o Owner, n int64) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hasRoom(o, n) {
		return false
	}
	p.addHeld(o, n)
	return true
}

// HasRoom reports whether Acquire would take n units for the owner now.
func (p *Pool) HasRoom(o Owner, n int64) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasRoom(o, n)
}

// hasRoom is HasRoom for callers that hold p.mu.
func (p *Pool) hasRoom(o Owner, n int64) bool {
	held := p.held[o]
	return held+n <= (p.size-(p.inUse-held)+1)/2
}

// Charge takes n units for the owner, regardless of its share and of the size: the owner
// has them already, as after a restart.
func (p *Pool) Charge(o Owner, n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addHeld(o, n)
}

// AcquireFree takes n units for the owner if they are free, regardless of its share.
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

// Release returns n units of the owner.
func (p *Pool) Release(o Owner, n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addHeld(o, -n)
}

// Move transfers n units to another owner. It reports false if they exceed the share of
// that owner.
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

// addHeld changes the units of an owner. The caller holds p.mu.
func (p *Pool) addHeld(o Owner, n int64) {
	p.inUse += n
	if held := p.held[o] + n; held > 0 {
		p.held[o] = held
	} else {
		delete(p.held, o)
	}
}

// InUse returns the number of units in use.
func (p *Pool) InUse() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse
}

// Size returns the number of units.
func (p *Pool) Size() int64 { return p.size }
