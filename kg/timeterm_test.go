package kg_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestTimeTerm makes statements with the commit's time and with the same time as a caller
// writes it, in years that the index stores in an id and in one that it does not.
func TestTimeTerm(t *testing.T) {
	start := time.Date(2026, 11, 22, 10, 0, 0, 5e6, time.UTC)
	clock := start
	s := kgtest.Disk(t, kg.Options{Clock: func() time.Time { return clock }})
	subject := kg.IRI("urn:s")
	for i, at := range []time.Time{start, start, start.Add(time.Millisecond), start.Add(time.Hour), start.AddDate(9000, 0, 0), start.AddDate(9000, 0, 1)} {
		clock = at
		predicates := map[string]kg.Term{fmt.Sprint("urn:at", i): kg.DateTime(at), fmt.Sprint("urn:other", i): kg.DateTime(at.Add(time.Second))}
		_, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
			if got := tx.TimeTerm(); got != kg.DateTime(tx.Time()) {
				t.Errorf("%s: %v", at, got)
			}
			for predicate, object := range predicates {
				for range 2 { // new, and known
					if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: kg.Quad{Subject: subject, Predicate: kg.IRI(predicate), Object: object}}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for predicate, object := range predicates {
			if got := stands(t, s, kg.Pattern{Subject: subject, Predicate: kg.IRI(predicate), Object: object}); got != 1 {
				t.Errorf("%s: %s stands %d times", at, predicate, got)
			}
		}
	}
}

// TestTimeTermsOfAGroup advances the clock while a group is executed.
func TestTimeTermsOfAGroup(t *testing.T) {
	var clock atomic.Int64
	s := openStore(t, t.TempDir(), kg.Options{Clock: func() time.Time { return time.UnixMilli(clock.Add(1)) }})
	busy, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	update := func(fn func(*kg.Tx)) {
		wg.Go(func() {
			_, err := s.Update(context.Background(), kg.Meta{Principal: tester}, func(tx *kg.Tx) error { fn(tx); return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	update(func(*kg.Tx) { close(busy); <-release })
	<-busy
	const updates = 4
	for range updates {
		update(func(tx *kg.Tx) {
			if got := tx.TimeTerm(); got != kg.DateTime(tx.Time()) {
				t.Errorf("%s: %v", tx.Time(), got)
			}
		})
	}
	waitQueued(t, s, updates)
	close(release)
	wg.Wait()
}
