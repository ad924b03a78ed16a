package throttle

import (
	"context"
	"sync"

	"koine/internal/caller"
	"koine/kg"
)

// AdmitUpdate is for kg.Options: it takes an update from the shares of its
// principal and of where the request comes from. Code inside this process is
// not bounded, and neither is the command line on a data directory.
func (t *Throttle) AdmitUpdate(ctx context.Context, m kg.Meta) error {
	if m.Principal.Trusted() {
		return nil
	}
	return t.AllowUpdate(m.Principal.ID, caller.From(ctx).Address)
}

// ChargeUpdate is for kg.Options: it takes what a load has taken in from the
// shares of those that AdmitUpdate asks, now or later.
func (t *Throttle) ChargeUpdate(ctx context.Context, m kg.Meta) {
	if !m.Principal.Trusted() {
		t.ChargeDebt(m.Principal.ID, caller.From(ctx).Address)
	}
}

// AdmitStream is for sse.Options: it takes a place from the shares of who the
// context carries.
func (t *Throttle) AdmitStream(ctx context.Context) (release func(), err error) {
	who := caller.From(ctx)
	principal := who.Principal.ID
	if who.Principal.Method == caller.MethodNone {
		principal = "" // a socket that has yet to say whose it is
	}
	own, err := t.OpenStream(principal, who.Address)
	if err != nil || t == nil || t.streams.shared == nil {
		return own, err
	}
	owner, shared := OwnerOf(who), t.streams.shared
	if !shared.Acquire(owner, 1) {
		if shared.InUse() >= shared.Size() {
			return own, nil // full for everybody, which is the streams' server's to say
		}
		own()
		by := Refusal{What: Streams, By: ByAddress, Address: who.Address}
		if owner.Known() {
			by = Refusal{What: Streams, By: ByPrincipal, Principal: principal}
		}
		return nil, t.refusalError(StreamRetryAfter, by)
	}
	return sync.OnceFunc(func() {
		shared.Release(owner, 1)
		own()
	}), nil
}

// AdmitHistory takes a read of a channel's history from the share of who the
// context carries.
func (t *Throttle) AdmitHistory(ctx context.Context) error {
	return t.AllowHistory(caller.From(ctx).Principal.ID)
}

// AdmitCall takes one more request from the share of who the context carries:
// of a batch, or of a socket.
func (t *Throttle) AdmitCall(ctx context.Context) error {
	return t.AllowRequest(caller.From(ctx).Principal.ID)
}
