package kgtest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"koine/kg"
)

// waitLimit bounds every wait in the suite, so that a store that hangs fails its test.
const waitLimit = time.Minute

// checkTime bounds the final check, which reads all data several times: after a soak test
// these are millions of statements.
const checkTime = 10 * time.Minute

// Factory creates an empty store for one test. The store is closed and checked at the end of the
// test.
type Factory func(t testing.TB, o kg.Options) *Store

// Store is a store under test that can be closed and reopened.
type Store struct {
	*kg.Store
	t      testing.TB
	reopen func() (*kg.Store, error)
}

// NewStore returns the Store of a factory: s is open, and open reopens the same data after s was
// closed. At the end of the test, all parts of the store are compared with each other.
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

// Disk is a Factory of stores in a temporary directory.
func Disk(t testing.TB, o kg.Options) *Store {
	t.Helper()
	if o.ReserveBytes == 0 && o.FreeBytes == nil {
		o.ReserveBytes = 1 // updates must not fail on a machine with little free space
	}
	dir := filepath.Join(t.TempDir(), "data")
	open := func() (*kg.Store, error) { return kg.Open(dir, o) }
	s, err := open()
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return NewStore(t, s, open)
}

// MustClose closes the store if it is open.
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

// MustCheck fails the test if parts of the store are inconsistent.
func (s *Store) MustCheck(ctx context.Context) {
	s.t.Helper()
	report, err := s.Maintenance().Check(ctx, kg.CheckOptions{})
	if err != nil {
		s.t.Fatalf("Check: %v", err)
	}
	if len(report.Problems) != 0 {
		s.t.Fatalf("Check found problems: %v", report.Problems)
	}
}

// Run runs the whole suite on stores of the factory.
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
		{"RightsWatched", testRightsWatched},
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
			t.Parallel() // tests use separate stores and mostly wait for the disk
			group.run(t, f)
		})
	}
}

// within returns a context with the suite's time limit.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}
