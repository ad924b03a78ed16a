package intents

import (
	"testing"
	"time"

	"koine/channels/scope"
	"koine/kg"
)

// Impatient are options with a short pause between two looks at what is due.
func Impatient(o Options) Options {
	o.pause = 2 * time.Millisecond
	return o
}

// Bounds are the bounds of a Service that a test reaches.
type Bounds struct {
	Leases, Requests, CallerRequests, ListedRequests, Portfolios, CreatorPortfolios, PortfolioPageBytes, PortfolioIntents, IntentPortfolios, Counted int
}

// Bounded are options with other bounds.
func Bounded(o Options, b Bounds) Options {
	o.bounds = new(bounds(b))
	return o
}

// DueIntents is how many intents have leases to look at when their time comes.
func (s *Service) DueIntents() int { return s.expiry.Len() }

// Bounds of the commits that release expired leases.
const (
	MaxDueIntents = maxDueIntents
	MaxExpiries   = maxExpiries
)

// UnreleasedLeases is how many leases of an intent are in the store, expired or not.
func (s *Service) UnreleasedLeases(t testing.TB, intent scope.ID) int {
	t.Helper()
	snapshot, err := s.store.View(t.Context(), kg.View{Principal: kg.SystemPrincipal(), AllGraphs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	list, err := readLeases(snapshot.Match, intent)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
