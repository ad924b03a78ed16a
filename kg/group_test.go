package kg_test

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"testing"
	"time"

	"koine/internal/slowtest"
	"koine/kg"
	"koine/kg/kgtest"
)

// noise is a text of so many bytes that hardly gets smaller when compressed.
func noise(seed, n int) string {
	b := make([]byte, n*3/4)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = random.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}

// waitingTogether hands updates in while the committer is busy, so that it finds
// all of them in its queue, and gives their errors.
func waitingTogether(t *testing.T, s *kg.Store, n int, fn func(i int, tx *kg.Tx) error) []error {
	t.Helper()
	busy, release := make(chan struct{}), make(chan struct{})
	ended := make(chan error, n+1)
	update := func(fn func(tx *kg.Tx) error) {
		_, err := s.Update(context.Background(), kg.Meta{}, fn)
		ended <- err
	}
	go update(func(*kg.Tx) error { close(busy); <-release; return nil })
	<-busy
	for i := range n {
		go update(func(tx *kg.Tx) error { return fn(i, tx) })
	}
	for s.Stats().QueueLength < n {
		select {
		case err := <-ended:
			t.Fatalf("an update ended before its turn: %v", err)
		default:
		}
	}
	close(release)
	var errs []error
	for range n + 1 {
		errs = append(errs, <-ended)
	}
	return errs
}

// TestGroupsAreBoundedInBytes proves that updates which wait together are split
// into groups that the log takes: a batch that is too large for it would leave
// the store without updates.
func TestGroupsAreBoundedInBytes(t *testing.T) {
	slowtest.Long(t)
	const updates, texts = 6, 20 // of 64 KiB each: too much for its entry to be made later
	appends := 0
	s := kgtest.Disk(t, kg.Options{QueueTime: time.Hour}.WithFaults(kg.Faults{GroupBytes: 4 << 20, AfterAppend: func() error { appends++; return nil }}))
	var literals []kg.Term // made before the updates: fn runs in the committer
	for i := range updates * texts {
		literals = append(literals, kg.String(noise(i, 64<<10)))
	}
	errs := waitingTogether(t, s.Store, updates, func(i int, tx *kg.Tx) error {
		for _, literal := range literals[i*texts : (i+1)*texts] {
			q := kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: literal}
			if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	// At three quarters of 1.25 MiB each, five of them reach GroupBytes.
	if appends != 2 || s.Head().Revision != updates {
		t.Errorf("%d appends made %d commits, want 2 and %d", appends, s.Head().Revision, updates)
	}
}
