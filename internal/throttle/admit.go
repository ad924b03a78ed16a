package throttle

import (
	"context"
	"sync"
	"sync/atomic"

	"koine/internal/caller"
	"koine/kg"
)

// AdmitUpdate implements kg.Options.AdmitUpdate: it takes an update from the limits of
// the principal and of the client's address. Code in this process and the command line
// on a data directory are not limited.
func (t *Throttle) AdmitUpdate(ctx context.Context, m kg.Meta) error {
	if m.Principal.Trusted() {
		return nil
	}
	group, _ := ctx.Value(admissionKey{}).(*admission)
	if group != nil && group.given.Load() {
		return nil
	}
	if err := t.AllowUpdate(m.Principal.ID, caller.From(ctx).Address); err != nil {
		return err
	}
	if group != nil {
		group.given.Store(true)
	}
	return nil
}

// admission is shared by the updates of one request: once one is admitted, all are.
type admission struct{ given atomic.Bool }

type admissionKey struct{}

// WithOneAdmission returns a context whose updates AdmitUpdate counts as one, like
// those of a load: an admitted request is not stopped half way. ChargeUpdate accounts for
// the rest.
func WithOneAdmission(ctx context.Context) context.Context {
	return context.WithValue(ctx, admissionKey{}, new(admission))
}

// ChargeUpdate implements kg.Options.ChargeUpdate: it charges the work of a bulk load
// to the limits that AdmitUpdate uses.
func (t *Throttle) ChargeUpdate(ctx context.Context, m kg.Meta) {
	if !m.Principal.Trusted() {
		t.ChargeDebt(m.Principal.ID, caller.From(ctx).Address)
	}
}

// AdmitStream implements sse.Options: it takes a stream from the limits of the caller
// in ctx.
func (t *Throttle) AdmitStream(ctx context.Context) (release func(), err error) {
	by := caller.From(ctx)
	principal := by.Principal.ID
	if by.Principal.Method == caller.MethodNone {
		principal = "" // a socket that has not authenticated yet
	}
	own, err := t.OpenStream(principal, by.Address)
	if err != nil || t == nil || t.streams.shared == nil {
		return own, err
	}
	owner, shared := OwnerOf(by), t.streams.shared
	if !shared.Acquire(owner, 1) {
		if shared.InUse() >= shared.Size() {
			return own, nil // the server is full, which the stream server reports
		}
		own()
		refusal := Refusal{What: Streams, By: ByAddress, Address: by.Address}
		if owner.Known() {
			refusal = Refusal{What: Streams, By: ByPrincipal, Principal: principal}
		}
		return nil, t.refusalError(StreamRetryAfter, refusal)
	}
	return sync.OnceFunc(func() {
		shared.Release(owner, 1)
		own()
	}), nil
}

// AdmitHistory takes a read of a channel's history from the limits of the caller in
// ctx.
func (t *Throttle) AdmitHistory(ctx context.Context) error {
	return t.AllowHistory(caller.From(ctx).Principal.ID)
}

// AdmitCall takes a further request, of a batch or a socket, from the limits of the
// caller in ctx.
func (t *Throttle) AdmitCall(ctx context.Context) error {
	return t.AllowRequest(caller.From(ctx).Principal.ID)
}
