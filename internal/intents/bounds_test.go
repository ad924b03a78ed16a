package intents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/intents"
	"koine/internal/slowtest"
	"koine/kg"
)

// Each bound on the number of records holds at the bound and refuses the next one; what is freed
// can be used again. Lists are cut at theirs, and requests lose the oldest.
func TestBoundsOfRecords(t *testing.T) {
	s := serve(t)
	const most, listed = 3, 4
	s.Close()
	s.Service = intents.New(s.store, s.channels, intents.Bounded(intents.Impatient(intents.Options{Clock: s.now}), intents.Bounds{
		Leases: most, Requests: most, CallerRequests: most + 1, ListedRequests: listed, Portfolios: most + 1, CreatorPortfolios: most + 2, PortfolioPageBytes: 1 << 20, PortfolioIntents: most, IntentPortfolios: most, Counted: most,
	}))
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, id, ann := slowtest.Context(t), s.intent(t), as("ann")
	for n := 1; n <= most+1; n++ {
		if got, exact, err := s.Count(ctx, ann, ""); got != int64(min(n, most)) || exact != (n <= most) || err != nil {
			t.Errorf("MaxCounted: of %d intents %d are counted, exactly %t: %v", n, got, exact, err)
		}
		if got, exact, err := s.Count(ctx, ann, intents.Blocked); got != 0 || exact != (n <= most) || err != nil { // as many are looked at
			t.Errorf("MaxCounted: of %d intents %d are counted as blocked, exactly %t: %v", n, got, exact, err)
		}
		s.intent(t)
	}
	var leases []*intents.Lease
	var requests []*intents.AccessRequest
	var portfolios []*intents.Portfolio
	lease := func(i int) error {
		l, err := s.Leases().Acquire(ctx, ann, id, fmt.Sprint("part", i), time.Minute)
		leases = append(leases, l)
		return err
	}
	ask := func(i int) error {
		q, err := s.Requests().Create(ctx, ann, intents.AccessRequest{Intent: id, Agent: kg.AgentID(fmt.Sprint("agent", i)), Level: scope.Read})
		requests = append(requests, q)
		return err
	}
	collect := func(i int) error {
		p, err := s.Portfolios().Create(ctx, ann, intents.Portfolio{Name: fmt.Sprint("portfolio", i)})
		portfolios = append(portfolios, p)
		return err
	}
	join := func(i int) error {
		_, err := s.Portfolios().AddIntent(ctx, ann, portfolios[i].ID, id, "", 0)
		return err
	}
	for _, row := range []struct {
		bound string
		most  int
		make  func(i int) error
		free  func() error // nil where nothing is freed
	}{
		{"MaxLeases", most, lease, func() error { _, err := s.Leases().Release(ctx, ann, id, leases[0].ID); return err }},
		{"MaxRequests", most, ask, func() error {
			_, err := s.Requests().Decide(ctx, ann, id, requests[0].ID, intents.Decision{})
			return err
		}},
		{"MaxPortfolios", most + 1, collect, nil},
		{"MaxIntentPortfolios", most, join, func() error { return s.Portfolios().RemoveIntent(ctx, ann, portfolios[0].ID, id) }},
	} {
		for i := range row.most {
			if err := row.make(i); err != nil {
				t.Fatalf("%s: %d of %d: %v", row.bound, i+1, row.most, err)
			}
		}
		if row.bound == "MaxIntentPortfolios" {
			wantCode(t, row.bound, row.make(row.most), kg.CodeLimitExceeded)
			if err := join(0); err != nil { // it is in that one
				t.Errorf("%s: %v", row.bound, err)
			}
		} else {
			wantCode(t, row.bound, row.make(row.most), kg.CodeLimitExceeded)
		}
		if row.free == nil {
			continue
		}
		if err := row.free(); err != nil {
			t.Fatal(err)
		}
		if err := row.make(row.most); err != nil {
			t.Errorf("%s: after one is freed: %v", row.bound, err)
		}
	}
	s.advance(time.Hour) // leases that have expired count no more
	if err := lease(0); err != nil {
		t.Errorf("MaxLeases: after all have expired: %v", err)
	}

	last := requests[len(requests)-1].ID
	for range 2 { // at the bound of the list, and past it
		list, err := s.Requests().List(ctx, ann, id)
		if err != nil || len(list) != listed || list[listed-1].ID != last {
			t.Errorf("MaxListedRequests: %d are listed, the last is %+v: %v", len(list), list[len(list)-1], err)
		}
		if _, err := s.Requests().Decide(ctx, ann, id, last, intents.Decision{}); err != nil {
			t.Fatal(err)
		}
		if err := ask(10); err != nil {
			t.Fatal(err)
		}
		last = requests[len(requests)-1].ID
	}

	for i := range most {
		if list, err := s.Portfolios().Intents(ctx, ann, portfolios[1].ID); err != nil || len(list) != min(i+1, most) {
			t.Errorf("MaxPortfolioIntents: %d are listed, want %d: %v", len(list), min(i+1, most), err)
		}
		if _, err := s.Portfolios().AddIntent(ctx, ann, portfolios[1].ID, s.intent(t), "", 0); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Portfolios().Intents(ctx, ann, portfolios[1].ID); err != nil || len(list) != most {
		t.Errorf("MaxPortfolioIntents: %d are listed, want %d: %v", len(list), most, err)
	}
}

// One caller cannot use up the portfolios of a server or the access requests of an intent: at its
// share it is refused, and another caller is not.
func TestSharesOfCallers(t *testing.T) {
	s := serve(t)
	const most = 2
	s.Close()
	s.Service = intents.New(s.store, s.channels, intents.Bounded(intents.Impatient(intents.Options{Clock: s.now}), intents.Bounds{
		Leases: 9, Requests: 9, CallerRequests: most, ListedRequests: 9, Portfolios: 9, CreatorPortfolios: most, PortfolioPageBytes: 1 << 20, PortfolioIntents: 9, IntentPortfolios: 9, Counted: 9,
	}))
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, id := slowtest.Context(t), s.intent(t)
	if _, err := s.Grant(ctx, as("ann"), id, scope.Grant{Agent: "agent://bob", Level: scope.Read}); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(by string, i int) error{
		"MaxCreatorPortfolios": func(by string, i int) error {
			_, err := s.Portfolios().Create(ctx, as(by), intents.Portfolio{Name: fmt.Sprint(by, i)})
			return err
		},
		"MaxCallerRequests": func(by string, i int) error {
			_, err := s.Requests().Create(ctx, as(by), intents.AccessRequest{Intent: id, Agent: kg.AgentID(fmt.Sprint(by, i)), Level: scope.Read})
			return err
		},
	} {
		for i := range most {
			if err := do("bob", i); err != nil {
				t.Fatalf("%s: %d of %d: %v", name, i+1, most, err)
			}
		}
		err := do("bob", most)
		wantCode(t, name, err, kg.CodeLimitExceeded)
		if err != nil && kg.AsError(err).Hint == "" {
			t.Errorf("%s: the error %q names no way out", name, err)
		}
		if err := do("ann", 0); err != nil {
			t.Errorf("%s: another caller: %v", name, err)
		}
	}
	if _, err := s.Requests().Create(ctx, as("bob"), intents.AccessRequest{Intent: id, Agent: "bob0", Level: scope.Read}); err != nil {
		t.Errorf("MaxCallerRequests: a request that is pending, again: %v", err)
	}
}

// A page of portfolios ends before the one with which it has too many bytes, and the next page
// begins there; a page has at least one.
func TestBytesOfPortfolios(t *testing.T) {
	s := serve(t)
	const most = 100
	s.Close()
	s.Service = intents.New(s.store, s.channels, intents.Bounded(intents.Impatient(intents.Options{Clock: s.now}), intents.Bounds{
		Portfolios: 9, CreatorPortfolios: 9, PortfolioPageBytes: most, PortfolioIntents: 9, Counted: 9,
	}))
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := slowtest.Context(t)
	for _, n := range []int{most / 2, most / 2, most/2 + 1, most + 1, most / 2, most/2 + 1} {
		if _, err := s.Portfolios().Create(ctx, as("ann"), intents.Portfolio{Name: strings.Repeat("n", n)}); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	for after := ""; ; {
		page, next, err := s.Portfolios().List(ctx, as("ann"), "", after, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, len(page)); next == "" {
			break
		}
		after = next
	}
	if want := []int{2, 1, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("the pages have %v portfolios, want %v", got, want)
	}
}

// A feed is one of the open streams of its reader.
func TestFeedsAreBounded(t *testing.T) {
	s := serve(t)
	s.tier = channels.Tier{Name: "few", Streams: 2}
	s.restart(t)
	id := s.intent(t)
	var open []*intents.Feed
	for range s.tier.Streams {
		f, err := s.Follow(t.Context(), as("bob"), intents.FeedQuery{Intent: id})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		open = append(open, f)
	}
	_, err := s.Follow(t.Context(), as("bob"), intents.FeedQuery{Agent: "bob"})
	wantCode(t, "one feed more", err, kg.CodeLimitExceeded)
	open[0].Close()
	f, err := s.Follow(t.Context(), as("bob"), intents.FeedQuery{Agent: "bob"})
	if err != nil {
		t.Fatal("after one has ended:", err)
	}
	f.Close()
}

// A feed of more intents than a watcher has patterns for tells the same as one of fewer.
func TestFeedOfManyIntents(t *testing.T) {
	slowtest.Long(t)
	s := serve(t)
	ctx := slowtest.Context(t)
	const fits = (kg.MaxPatterns - 1) / 2
	var all []scope.ID
	for range fits {
		id := s.intent(t)
		if _, err := s.Assign(ctx, as("ann"), id, "bob", ""); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	f, err := s.Follow(ctx, as("bob"), intents.FeedQuery{Agent: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other := s.intent(t)
	for n := range 3 { // as many as fit, one more, and two
		for _, id := range []scope.ID{all[0], other, all[len(all)-1]} {
			if _, err := s.AppendEvent(ctx, as("ann"), id, intents.NewEvent{Type: fmt.Sprint("note", n)}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := next(f, 2)
		if err != nil || list[0].Intent != all[0] || list[1].Intent != all[len(all)-1] || list[0].Event.Type != fmt.Sprint("note", n) {
			t.Fatalf("with %d intents the feed tells %+v: %v", len(all), list, err)
		}
		id := s.intent(t)
		if _, err := s.Assign(ctx, as("ann"), id, "bob", ""); err != nil {
			t.Fatal(err)
		}
		if list, err := next(f, 1); err != nil || list[0].Intent != id || list[0].Event.Type != intents.EventAssigned {
			t.Fatalf("the assignment to intent %d is told as %+v: %v", len(all)+1, list, err)
		}
		all = append(all, id)
	}
}
