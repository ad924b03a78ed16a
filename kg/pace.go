package kg

import (
	"context"
	"runtime"
)

// Pace is called by a long scan about once a millisecond. It may let others run
// first, or wait until the scan may go on; an error ends the scan.
type Pace func(context.Context) error

type paceKey struct{}

// WithPace gives a context whose snapshots call pace in long scans, from the
// goroutines that scan. Without one, a scan yields the processor. It is for
// reads: an update under such a context would make all others wait with it.
func WithPace(ctx context.Context, pace Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, pace)
}

// pace is where a long scan of the snapshot asks whether it is still wanted, and
// lets others run first, so that light reads stay light beside it.
func (s *Snapshot) pace() error {
	if s.ctx == nil {
		return nil
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if pace, ok := s.ctx.Value(paceKey{}).(Pace); ok {
		return pace(s.ctx)
	}
	runtime.Gosched()
	return nil
}
