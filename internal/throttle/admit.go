package throttle

import (
	"context"

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
	return t.Update(m.Principal.ID, caller.From(ctx).Address)
}

// ChargeUpdate is for kg.Options: it takes what a load has taken in from the
// shares of those that AdmitUpdate asks, now or later.
func (t *Throttle) ChargeUpdate(ctx context.Context, m kg.Meta) {
	if !m.Principal.Trusted() {
		t.Owe(m.Principal.ID, caller.From(ctx).Address)
	}
}

// AdmitStream is for sse.Options: it takes a place from the shares of who the
// context carries.
func (t *Throttle) AdmitStream(ctx context.Context) (release func(), err error) {
	who := caller.From(ctx)
	if who.Principal.Method == caller.MethodNone {
		return t.Stream("", who.Address) // a socket that has yet to say whose it is
	}
	return t.Stream(who.Principal.ID, who.Address)
}

// AdmitHistory takes a read of a channel's history from the share of who the
// context carries.
func (t *Throttle) AdmitHistory(ctx context.Context) error {
	return t.History(caller.From(ctx).Principal.ID)
}

// AdmitCall takes one more request from the share of who the context carries:
// of a batch, or of a socket.
func (t *Throttle) AdmitCall(ctx context.Context) error {
	return t.Request(caller.From(ctx).Principal.ID)
}
