package kg

import (
	"context"
	"time"
)

// gate keeps readers out while a bulk load writes the index in one piece, which
// cannot be done under a reader's feet.
type gate struct {
	shut  chan struct{} // closed when the gate opens again; nil while it is open
	empty chan struct{} // closed by the last reader that leaves a shut gate
	lost  *Error        // why there is nothing to be read any more; nil while there is
}

// drainTime is how long a bulk load waits for open snapshots before it goes the
// ordinary way.
const drainTime = 2 * time.Second

// shutGate keeps new readers out and waits until the present ones have left;
// false, and open again, when they stay.
func (s *Store) shutGate() bool {
	s.mu.Lock()
	s.gate.shut, s.gate.empty = make(chan struct{}), make(chan struct{})
	if s.pins.Len() == 0 {
		close(s.gate.empty)
	}
	empty := s.gate.empty
	s.mu.Unlock()
	timeout := time.NewTimer(drainTime)
	defer timeout.Stop()
	select {
	case <-empty:
		return true
	case <-timeout.C:
	case <-s.stop:
	}
	s.openGate(nil)
	return false
}

// openGate lets readers in again, or, where the index was lost meanwhile, tells
// them so: what is left of it must not pass for the store.
func (s *Store) openGate(lost *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gate.shut)
	s.gate = gate{lost: lost}
}

// left notes that a reader has gone. Called with mu held.
func (g *gate) left(remaining int) {
	if g.empty != nil && remaining == 0 {
		select {
		case <-g.empty:
		default:
			close(g.empty)
		}
	}
}

// enter waits for the gate and returns with mu held, or with an error and
// without.
func (s *Store) enter(ctx context.Context) error {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return errClosed()
		}
		shut, lost := s.gate.shut, s.gate.lost
		if shut == nil && lost == nil {
			return nil
		}
		s.mu.Unlock()
		if lost != nil {
			return lost
		}
		select {
		case <-shut:
		case <-s.stop:
			return errClosed()
		case <-ctx.Done():
			return Errorf(CodeTimeout, "a bulk load is being indexed: %w", ctx.Err())
		}
	}
}
