package kg

import (
	"context"
	"errors"
	"time"

	"koine/kg/internal/wal"
)

// scrubWait is how long opening waits for the log to be read through: a log that
// takes no longer is known to be whole, or to be damaged, before the first update.
const scrubWait = 250 * time.Millisecond

func (s *Store) awaitScrub() {
	timeout := time.NewTimer(scrubWait)
	defer timeout.Stop()
	select {
	case <-s.scrubbed:
	case <-timeout.C:
	}
}

// scrub reads the log once beside everything else when the store has been
// opened: opening itself reads only the newest part, and old damage would
// otherwise be noticed by whoever comes across it. Damage ends updates.
func (s *Store) scrub() {
	defer s.stopped.Done()
	defer close(s.scrubbed)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.wal.Verify(ctx, nil) }()
	var err error
	select {
	case err = <-done:
	case <-s.stop:
		cancel()
		<-done
		return
	}
	if errors.Is(err, wal.ErrDamaged) {
		_ = s.noteDamage(errLog(err)) // it refuses updates, which is all that there is to do
	} else if err != nil {
		s.log.Warn("the log could not be read through", "error", err)
	}
}
