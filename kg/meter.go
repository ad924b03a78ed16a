package kg

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Meter counts the statements that the scans of several snapshots read, and ends the scans at
// its limit with CodeBudgetExceeded. Like Snapshot.StatementsRead it counts visible statements
// only, so that it reveals nothing of the others. It is safe for concurrent use.
type Meter struct{ read, limit atomic.Int64 }

// Read returns the number of statements read, at most the limit.
func (m *Meter) Read() int64 { return m.read.Load() }

// Limit sets the number of statements that may be read in all; 0 is no limit.
func (m *Meter) Limit(n int64) { m.limit.Store(n) }

// Measure attaches a meter to the snapshot. Call it before the first scan.
func (s *Snapshot) Measure(m *Meter) { s.meter = m }

// WithMeter attaches a meter to all snapshots taken with the context for principals from
// outside. Reads by koine itself do not count: the caller does not see them.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

type meterKey struct{}

// meterOf returns the context's meter for the principal, nil for none.
func meterOf(ctx context.Context, p *Principal) *Meter {
	if p.Trusted() {
		return nil
	}
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

// ReadsLeft returns how many statements may still be read; limited is false without a limit.
func (s *Snapshot) ReadsLeft() (n int64, limited bool) {
	if s.meter == nil {
		return 0, false
	}
	limit := s.meter.limit.Load()
	return max(0, limit-s.meter.read.Load()), limit > 0
}

// countRead counts a visible statement.
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

// Pace is called by a long scan about once a millisecond. It may yield, or block until the
// scan may continue. An error ends the scan.
type Pace func(context.Context) error

type paceKey struct{}

// WithPace makes the snapshots taken with the context call pace in long scans, on the
// goroutines that scan. Without it a scan yields the processor. Use it for reads only: an
// update that is paced makes all other updates wait.
func WithPace(ctx context.Context, pace Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, pace)
}

// waitForPace is called by long scans. It returns an error if the scan should end, and lets
// other goroutines run first, so that short reads stay fast beside a long one.
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

// KeepPace is for long work between two scans of a snapshot, about once a millisecond: it
// keeps the pace of a long scan.
func KeepPace(s *Snapshot) error { return s.waitForPace() }
