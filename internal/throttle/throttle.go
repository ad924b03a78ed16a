package throttle

import (
	"net/netip"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// Throttle holds the limits of all callers. It is safe for concurrent use. A nil
// Throttle imposes no limits.
type Throttle struct {
	options Options

	requests, updates struct {
		principal *buckets[kg.AgentID]
		address   *buckets[netip.Prefix]
	}
	histories *buckets[kg.AgentID]
	streams   struct {
		principal *slotCounter[kg.AgentID]
		address   *slotCounter[netip.Prefix]
		shared    *Pool
	}
}

// New returns a Throttle.
func New(options Options) *Throttle {
	o := options.withDefaults()
	t := &Throttle{options: o}
	t.requests.principal = newBuckets[kg.AgentID](o.Principal.Requests, o.Burst, o.MaxBuckets)
	t.requests.address = newBuckets[netip.Prefix](o.Address.Requests, o.Burst, o.MaxBuckets)
	t.updates.principal = newBuckets[kg.AgentID](o.Principal.Updates, o.Burst, o.MaxBuckets)
	t.updates.address = newBuckets[netip.Prefix](o.Address.Updates, o.Burst, o.MaxBuckets)
	t.histories = newBuckets[kg.AgentID](o.Principal.Histories, o.Burst, o.MaxBuckets)
	t.streams.principal = newSlotCounter[kg.AgentID](o.Principal.Streams)
	t.streams.address = newSlotCounter[netip.Prefix](o.Address.Streams)
	if o.MaxStreams > 0 {
		t.streams.shared = NewPool(int64(o.MaxStreams))
	}
	return t
}

// AllowAddress takes a request from the limit of an address. Call it before
// authentication, so that it also limits guessing of credentials.
func (t *Throttle) AllowAddress(addr netip.Addr) error {
	if t == nil {
		return nil
	}
	return t.takeFromAddress(t.requests.address, Requests, addr)
}

// AllowRequest takes a request, or a further operation of a request or socket, from the
// limit of a principal.
func (t *Throttle) AllowRequest(principal kg.AgentID) error {
	if t == nil {
		return nil
	}
	return t.takeFromPrincipal(t.requests.principal, Requests, principal)
}

// AllowHistory takes a read of a channel's history from the limit of a principal.
func (t *Throttle) AllowHistory(principal kg.AgentID) error {
	if t == nil {
		return nil
	}
	return t.takeFromPrincipal(t.histories, Histories, principal)
}

// AllowUpdate takes an update from the limits of the principal and the address. An
// update refused for the principal does not count for the address.
func (t *Throttle) AllowUpdate(principal kg.AgentID, addr netip.Addr) error {
	if t == nil {
		return nil
	}
	if err := t.takeFromPrincipal(t.updates.principal, Updates, principal); err != nil {
		return err
	}
	return t.takeFromAddress(t.updates.address, Updates, addr)
}

// ChargeDebt takes an update that was already made from both limits: a part of a load,
// which is admitted as one update and not interrupted. Missing tokens become debt, up
// to MaxDebt.
func (t *Throttle) ChargeDebt(principal kg.AgentID, addr netip.Addr) {
	if t == nil {
		return
	}
	now := t.options.Clock()
	t.updates.principal.takeDebt(principal, now, MaxDebt)
	if key, counted := keyOf(addr); counted {
		t.updates.address.takeDebt(key, now, MaxDebt)
	}
}

// OpenStream takes a stream from both limits; the principal "" has no limit. release
// returns it and may be called more than once.
func (t *Throttle) OpenStream(principal kg.AgentID, addr netip.Addr) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	if principal != "" && !t.streams.principal.tryAcquire(principal) {
		return nil, t.refusalError(StreamRetryAfter, Refusal{What: Streams, By: ByPrincipal, Principal: principal})
	}
	key, counted := keyOf(addr)
	if counted && !t.streams.address.tryAcquire(key) {
		if principal != "" {
			t.streams.principal.releaseSlot(principal)
		}
		return nil, t.refusalError(StreamRetryAfter, Refusal{What: Streams, By: ByAddress, Address: addr})
	}
	return sync.OnceFunc(func() {
		if principal != "" {
			t.streams.principal.releaseSlot(principal)
		}
		if counted {
			t.streams.address.releaseSlot(key)
		}
	}), nil
}

func (t *Throttle) takeFromPrincipal(b *buckets[kg.AgentID], resource string, principal kg.AgentID) error {
	return t.refusalError(b.takeToken(principal, t.options.Clock()), Refusal{What: resource, By: ByPrincipal, Principal: principal})
}

func (t *Throttle) takeFromAddress(b *buckets[netip.Prefix], resource string, addr netip.Addr) error {
	key, counted := keyOf(addr)
	if !counted {
		return nil
	}
	return t.refusalError(b.takeToken(key, t.options.Clock()), Refusal{What: resource, By: ByAddress, Address: addr})
}

// refusalError returns the error of a refusal, or nil if wait is not positive.
func (t *Throttle) refusalError(wait time.Duration, r Refusal) error {
	if wait <= 0 {
		return nil
	}
	t.options.OnRefusal(r)
	e := kg.Errorf(kg.CodeRateLimited, "too many %s of this %s", r.What, r.By)
	e.RetryAfter = min(wait, MaxRetryAfter)
	e.Limit = r.What
	e.Hint = "Wait for retryAfterMs."
	switch r.What {
	case Updates:
		e.Hint += " An update with several statements costs as much as one with a single statement."
	case Streams:
		e.Hint = "Close streams that are no longer needed."
	}
	return e
}

// keyOf returns the key of an address and whether the address has limits.
func keyOf(addr netip.Addr) (netip.Prefix, bool) {
	if addr.Unmap().IsLoopback() {
		return netip.Prefix{}, false
	}
	origin := caller.OriginOf(addr)
	return origin, origin.IsValid()
}
