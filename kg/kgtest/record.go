package kgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"koine/kg"
)

// Recorder watches and keeps what it is told.
type Recorder struct {
	filter kg.Filter
	from   kg.Position
	stop   context.CancelFunc
	ended  chan struct{} // closed when the watching goroutine is gone

	mu     sync.Mutex // guards what follows
	more   chan struct{}
	events []kg.Event
	last   kg.Position // where the watcher stood when it ended
	err    error       // why it ended
}

// Record starts a watcher and a goroutine that keeps its events until the test
// ends or Stop is called.
func Record(t testing.TB, s *Store, f kg.Filter, from kg.Position) *Recorder {
	t.Helper()
	r := &Recorder{filter: f, from: from, more: make(chan struct{})}
	if err := r.attach(s, from); err != nil {
		t.Fatalf("Watch: %v", err)
	}
	t.Cleanup(r.Stop)
	return r
}

func (r *Recorder) attach(s *Store, from kg.Position) error {
	ctx, cancel := context.WithCancel(context.Background())
	w, err := s.Watch(ctx, r.filter, from)
	if err != nil {
		cancel()
		return err
	}
	r.stop, r.ended = cancel, make(chan struct{})
	go func() {
		defer close(r.ended)
		defer w.Close()
		for e, err := range w.Events() {
			r.keep(w, e, err)
		}
	}()
	return nil
}

func (r *Recorder) keep(w *kg.Watcher, e kg.Event, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
	} else {
		r.events = append(r.events, e)
	}
	r.last = w.Position()
	close(r.more)
	r.more = make(chan struct{})
}

// Wait waits until there are n events, and gives all that are there by then.
func (r *Recorder) Wait(ctx context.Context, n int) (History, error) {
	for {
		r.mu.Lock()
		h, err, more := History{r.from, r.events[:len(r.events):len(r.events)]}, r.err, r.more
		r.mu.Unlock()
		if len(h.Events) >= n {
			return h, nil
		}
		if err != nil {
			return h, fmt.Errorf("after %d events of %d: %w", len(h.Events), n, err)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return h, fmt.Errorf("after %d events of %d: %w", len(h.Events), n, ctx.Err())
		}
	}
}

// Stop ends the watcher.
func (r *Recorder) Stop() {
	r.stop()
	<-r.ended
}

// End waits until the watcher ends of itself, and says why it did.
func (r *Recorder) End(ctx context.Context) error {
	select {
	case <-r.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Resume goes on where the watcher stood when it ended, with another store
// that has the same log.
func (r *Recorder) Resume(s *Store) error {
	r.Stop()
	from := r.from
	if r.last != (kg.Position{}) {
		from = r.last
	}
	r.err = nil
	return r.attach(s, from)
}

// Watched gives the first n events behind the position.
func Watched(ctx context.Context, s *Store, f kg.Filter, from kg.Position, n int) ([]kg.Event, error) {
	w, err := s.Watch(ctx, f, from)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var events []kg.Event
	if n == 0 {
		return nil, nil
	}
	for e, err := range w.Events() {
		if err != nil {
			return events, fmt.Errorf("after %d events of %d: %w", len(events), n, err)
		}
		if events = append(events, e); len(events) == n {
			return events, nil
		}
	}
	return events, fmt.Errorf("the watcher ended without a reason after %d events of %d", len(events), n)
}
