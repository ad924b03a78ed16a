package kgtest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"koine/kg"
)

// patience bounds every wait in the suite: a store that never answers fails
// its test instead of holding it up.
const patience = time.Minute

// checkTime bounds the check at the end, which reads all there is several times: after
// a soak that is millions of statements.
const checkTime = 10 * time.Minute

// Factory makes an empty store for one test. It takes care of closing it when
// the test is over, and of checking it then.
type Factory func(t testing.TB, o kg.Options) *Store

// Store is a store under test that can be closed and opened again.
type Store struct {
	*kg.Store
	t      testing.TB
	reopen func() (*kg.Store, error)
}

// NewStore is the Store of a factory: s is open, and open opens the same data
// again after s was closed. Cleanup compares all parts of the store with each
// other once more.
func NewStore(t testing.TB, s *kg.Store, open func() (*kg.Store, error)) *Store {
	store := &Store{Store: s, t: t, reopen: open}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), checkTime)
		defer cancel()
		if !t.Failed() && store.Store != nil {
			store.MustCheck(ctx)
		}
		store.MustClose()
	})
	return store
}

// Disk makes stores in a directory of the test.
func Disk(t testing.TB, o kg.Options) *Store {
	t.Helper()
	if o.ReserveBytes == 0 && o.FreeBytes == nil {
		o.ReserveBytes = 1 // updates must not fail because the machine has little free space
	}
	dir := filepath.Join(t.TempDir(), "data")
	open := func() (*kg.Store, error) { return kg.Open(dir, o) }
	s, err := open()
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return NewStore(t, s, open)
}

// MustClose closes the store, if it is open.
func (s *Store) MustClose() {
	s.t.Helper()
	if s.Store == nil {
		return
	}
	if err := s.Store.Close(); err != nil {
		s.t.Errorf("Close: %v", err)
	}
	s.Store = nil
}

// Reopen closes the store and opens it again.
func (s *Store) Reopen() {
	s.t.Helper()
	s.MustClose()
	again, err := s.reopen()
	if err != nil {
		s.t.Fatalf("opening again: %v", err)
	}
	s.Store = again
}

// MustCheck fails the test when a part of the store disagrees with another.
func (s *Store) MustCheck(ctx context.Context) {
	s.t.Helper()
	report, err := s.Check(ctx, kg.CheckOptions{})
	if err != nil {
		s.t.Fatalf("Check: %v", err)
	}
	if len(report.Problems) != 0 {
		s.t.Fatalf("Check found problems: %v", report.Problems)
	}
}

// Run holds the stores of the factory against everything the suite knows.
func Run(t *testing.T, f Factory) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, Factory)
	}{
		{"Terms", testTerms},
		{"Patches", testPatches},
		{"Updates", testUpdates},
		{"Idempotency", testIdempotency},
		{"Limits", testLimits},
		{"Views", testViews},
		{"Validity", testValidity},
		{"Distrust", testDistrust},
		{"DistrustWatched", testDistrustWatched},
		{"Past", testPast},
		{"Versions", testVersions},
		{"Forgetting", testForgetting},
		{"ChangedBack", testChangedBack},
		{"Log", testLog},
		{"Catalogue", testCatalogue},
		{"Pages", testPages},
		{"Access", testAccess},
		{"Verifier", testVerifier},
		{"Tokens", testTokens},
		{"Load", testLoad},
		{"Watch", testWatch},
		{"Lag", testLag},
		{"Concurrency", testConcurrency},
		{"Overload", testOverload},
		{"Closing", testClosing},
		{"Random", testRandom},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel() // each has stores of its own, and much of it waits for the disk
			group.run(t, f)
		})
	}
}

// within is a context that ends when a store should long have answered.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
