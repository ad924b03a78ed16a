package channels_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/slowtest"
	"koine/kg"
)

// The same race with goroutines for the publishers and for the stream, in a bubble: they
// wait for random times, so that each seed is one interleaving, and the waiting takes no
// time. Files are written meanwhile, which stops the bubble's clock, and nothing else.
func TestInterleavingsInABubble(t *testing.T) {
	slowtest.Long(t)
	seed := *raceSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("again with: -channels.raceseed=%d -channels.races=%d", seed, *raceCount)
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, channels.Options{}, kg.Options{})
		dice := rand.New(rand.NewPCG(seed, 5))
		var c *channel.Channel
		for i := range *raceCount {
			if i%100 == 0 { // so that there are short channels too
				c = s.make(t, channel.Private, "bob")
			}
			s.raceOnce(t, dice, c.ID)
			if t.Failed() {
				t.Fatalf("interleaving %d", i)
			}
		}
	})
}

// raceOnce follows a channel from a random start on while two publish.
func (s *server) raceOnce(t *testing.T, dice *rand.Rand, id channel.ID) {
	c, err := s.Get(within(t), as("ann"), id)
	if err != nil {
		t.Fatal(err)
	}
	since := c.Messages - min(c.Messages, dice.Int64N(6))
	const each = 3
	waits := func() []time.Duration {
		out := make([]time.Duration, each+1)
		for i := range out {
			out[i] = time.Duration(dice.IntN(4)) * time.Millisecond
		}
		return out
	}
	var all sync.WaitGroup
	for _, by := range []string{"ann", "bob"} {
		pauses := waits()
		all.Go(func() {
			for _, pause := range pauses[:each] {
				time.Sleep(pause)
				s.say(t, by, id, "text")
			}
		})
	}
	pauses := waits()
	time.Sleep(pauses[each])
	stream, err := s.Stream(within(t), as("bob"), id, &since)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	last, end := since, c.Messages+2*each
	for m, err := range stream.Messages() {
		if err != nil {
			t.Error(err)
			break
		}
		if m.Sequence != last+1 {
			t.Errorf("behind %d comes %d", last, m.Sequence)
			break
		}
		if last = m.Sequence; last == end {
			break
		}
		time.Sleep(pauses[last%each])
	}
	all.Wait()
}
