package channels_test

import (
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/slowtest"
	"koine/kg"
)

// A count of filtered messages is exact up to the bound of messages that are read for it,
// and says so past it. Without a filter none are read.
func TestCountHistoryIsBounded(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	c := s.make(t, channel.Public, "bob")
	for range channels.MaxLookedAt {
		s.say(t, "ann", c.ID, "hi")
	}
	count := func(q channels.HistoryQuery) (int64, bool) {
		t.Helper()
		n, exact, err := s.CountHistory(within(t), as("bob"), c.ID, q)
		if err != nil {
			t.Fatal(err)
		}
		return n, exact
	}
	byAnn := channels.HistoryQuery{Authors: []kg.AgentID{"ann"}}
	if n, exact := count(byAnn); n != channels.MaxLookedAt || !exact {
		t.Errorf("at the bound: %d, exact %v", n, exact)
	}
	s.say(t, "ann", c.ID, "one more")
	if n, exact := count(byAnn); exact {
		t.Errorf("past the bound: %d, said to be exact", n)
	}
	if n, exact := count(channels.HistoryQuery{}); n != channels.MaxLookedAt+1 || !exact {
		t.Errorf("without a filter: %d, exact %v", n, exact)
	}
}
