package kgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"koine/kg"
)

// Recorder records the events of a watcher.
type Recorder struct {
	filter kg.Filter
	from   kg.Position
	stop   context.CancelFunc
	ended  chan struct{} // closed when the watching goroutine has ended

	mu     sync.Mutex // guards the fields below
	more   chan struct{}
	events []kg.Event
	// resyncs are the positions of resyncs, which replaced graphs cause.
	resyncs []kg.Position
	last    kg.Position // final position of the watcher
	err     error       // reason of its end
}

// Record starts a watcher and a goroutine that records its events until the test ends or Stop is
// called.
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
	store := s.Store // s has another one, or none, after it is closed
	w, err := store.Watch(ctx, r.filter, from)
	if err != nil {
		cancel()
		return err
	}
	r.stop, r.ended = cancel, make(chan struct{})
	go func() {
		defer close(r.ended)
		for w != nil {
			w = r.recordFrom(ctx, store, w)
		}
	}()
	return nil
}

// recordFrom records the events of a watcher. It returns the watcher that continues after
// a resync, nil if the watcher ended for another reason.
func (r *Recorder) recordFrom(ctx context.Context, s *kg.Store, w *kg.Watcher) (next *kg.Watcher) {
	defer w.Close()
	for e, err := range w.Events() {
		behind, resync := resyncOf(err)
		if resync {
			next, err = s.Watch(ctx, r.filter, behind)
		}
		r.mu.Lock()
		r.last = w.Position()
		switch {
		case err != nil:
			r.err = err
		case resync:
			r.resyncs, r.last = append(r.resyncs, behind), behind
		default:
			r.events = append(r.events, e)
		}
		close(r.more)
		r.more = make(chan struct{})
		r.mu.Unlock()
	}
	return next
}

// resyncOf returns the position of a resync because of a replaced graph.
func resyncOf(err error) (kg.Position, bool) {
	if kg.CodeOf(err) != kg.CodeResync || kg.AsError(err).Oldest == nil {
		return kg.Position{}, false
	}
	return *kg.AsError(err).Oldest, true
}

// Wait waits until there are n events and returns all events so far.
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

// End waits until the watcher ends by itself and returns the reason.
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

// Resume resumes the watch at the final position of the watcher, on another store with
// the same log.
func (r *Recorder) Resume(s *Store) error {
	r.Stop()
	from := r.from
	if r.last != (kg.Position{}) {
		from = r.last
	}
	r.err = nil
	return r.attach(s, from)
}

// Watched returns the first n events behind the position. It continues after resyncs because of
// replaced graphs.
func Watched(ctx context.Context, s *Store, f kg.Filter, from kg.Position, n int) (events []kg.Event, err error) {
	for again := true; again; {
		if events, from, again, err = watchedOn(ctx, s, f, from, n, events); err != nil {
			return events, fmt.Errorf("after %d events of %d: %w", len(events), n, err)
		}
	}
	return events, nil
}

func watchedOn(ctx context.Context, s *Store, f kg.Filter, from kg.Position, n int, events []kg.Event) (_ []kg.Event, on kg.Position, again bool, err error) {
	w, err := s.Watch(ctx, f, from)
	if err != nil || n == len(events) {
		if err == nil {
			w.Close()
		}
		return events, from, false, err
	}
	defer w.Close()
	for e, err := range w.Events() {
		if behind, resync := resyncOf(err); resync {
			return events, behind, true, nil
		}
		if err != nil {
			return events, from, false, err
		}
		if events = append(events, e); len(events) == n {
			return events, from, false, nil
		}
	}
	return events, from, false, errors.New("the watcher ended without a reason")
}
