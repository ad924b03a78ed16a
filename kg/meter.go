package kg

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Meter counts the statements that the scans of several snapshots read, and
// ends them at its limit with CodeBudgetExceeded. It is safe for concurrent
// use. Like Snapshot.StatementsRead it counts what the view shows: what it
// says tells nothing of the rest.
type Meter struct{ read, limit atomic.Int64 }

// Read is how many were read, at most the limit that held then.
func (m *Meter) Read() int64 { return m.read.Load() }

// Limit lets so many be read in all; 0 takes the limit away.
func (m *Meter) Limit(n int64) { m.limit.Store(n) }

// Measure lets a meter count what is read from here on. It is called before
// the first scan.
func (s *Snapshot) Measure(m *Meter) { s.meter = m }

// WithMeter makes the meter count also what is read in snapshots that are taken with
// the context, by whatever package, for somebody from outside: what koine itself
// looks at on the way is not what the caller is shown.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

type meterKey struct{}

// meterOf is that of the context for the principal, nil for none.
func meterOf(ctx context.Context, p *Principal) *Meter {
	if p.Trusted() {
		return nil
	}
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

// ReadsLeft is how many statements may still be read under the meter's limit;
// limited is false when nothing bounds them.
func (s *Snapshot) ReadsLeft() (n int64, limited bool) {
	if s.meter == nil {
		return 0, false
	}
	limit := s.meter.limit.Load()
	return max(0, limit-s.meter.read.Load()), limit > 0
}

// countRead counts a statement that is shown.
func (s *Snapshot) countRead() error {
	if m := s.meter; m != nil {
		if limit := m.limit.Load(); limit > 0 && m.read.Load() >= limit {
			return Errorf(CodeBudgetExceeded, "more than %d statements would have to be read", limit)
		}
		m.read.Add(1)
	}
	s.read.Add(1)
	return nil
}

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

// waitForPace is where a long scan of the snapshot asks whether it is still wanted, and
// lets others run first, so that light reads stay light beside it.
func (s *Snapshot) waitForPace() error {
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
