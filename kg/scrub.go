package kg

import (
	"context"
	"errors"
	"time"

	"koine/kg/internal/wal"
)

// Opening waits for the log to be read through, so that it is known to be whole, or to be
// damaged, before the first update: for at most scrubWait, and not where the log is larger
// than scrubbedFirst.
const (
	scrubWait     = time.Second
	scrubbedFirst = 16 << 20
)

func (s *Store) awaitScrub() {
	if s.wal.UsedBytes() > scrubbedFirst {
		return
	}
	timeout := time.NewTimer(scrubWait)
	defer timeout.Stop()
	select {
	case <-s.scrubbed:
	case <-timeout.C:
	}
}

// checkDelay is how long a large store is not checked: whoever opens it has the processors
// for what has to be done before it answers.
const checkDelay = 2 * time.Second

// startIsOver waits for checkDelay; false when the store is closed before.
func (s *Store) startIsOver() bool {
	timer := time.NewTimer(checkDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stop:
		return false
	}
}

// scrub reads the log once beside everything else when the store has been
// opened: opening itself reads only the newest part, and old damage would
// otherwise be noticed by whoever comes across it. Damage ends updates.
func (s *Store) scrub() {
	defer s.stopped.Done()
	defer close(s.scrubbed)
	if s.wal.UsedBytes() > scrubbedFirst && !s.startIsOver() {
		return
	}
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
