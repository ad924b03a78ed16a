package channels_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/slowtest"
	"koine/kg"
)

// The classic race of streams: existing messages are replayed while new ones arrive. Here a
// stream takes its steps while it is looped over, and between any two of them anything may
// happen: each seed is one order of events, and can be repeated. In bubble_test.go the two
// sides run at the same time.

var (
	raceSeed  = flag.Uint64("channels.raceseed", 0, "seed of TestInterleavings (0: a new one for each run)")
	raceCount = flag.Int("channels.races", races(os.Getenv("KOINE_RACES")), "how many interleavings TestInterleavings and TestInterleavingsInABubble make")
)

const defaultRaces = 300

func races(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return defaultRaces
}

// In every interleaving of publications with the steps of a stream, the stream delivers
// every message after its start once and in order, whichever part of them it replays; and
// its end has a reason.
func TestInterleavings(t *testing.T) {
	slowtest.Long(t)
	seed := *raceSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("again with: -channels.raceseed=%d -channels.races=%d", seed, *raceCount)
	s := serve(t, channels.Options{}, kg.Options{})
	dice := rand.New(rand.NewPCG(seed, 4))
	var c *channel.Channel
	for i := range *raceCount {
		if i%100 == 0 { // so that there are short channels too
			c = s.make(t, channel.Private, "bob")
		}
		if err := s.interleave(t, dice, c.ID); err != nil {
			t.Fatalf("interleaving %d: %v", i, err)
		}
	}
}

// interleave follows a channel once.
func (s *server) interleave(t *testing.T, dice *rand.Rand, id channel.ID) error {
	head := func() int64 {
		c, err := s.Get(within(t), as("ann"), id)
		if err != nil {
			t.Fatal(err)
		}
		return c.Messages
	}
	now := head()
	publish := func() {
		for range dice.IntN(4) {
			now = s.say(t, "ann", id, "text").Sequence
		}
	}
	since := now - min(now, dice.Int64N(6))
	publish()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	stream, err := s.Stream(ctx, as("bob"), id, &since)
	if err != nil {
		return err
	}
	defer stream.Close()
	if publish(); now == since { // a stream that nothing comes to waits
		now = s.say(t, "ann", id, "text").Sequence
	}
	// The end comes at any step, or after some messages.
	var end error
	ends := dice.IntN(12)
	last := since
	step := 0
	var gone int64 // the last message before bob was taken out
	for m, err := range stream.Messages() {
		if err != nil {
			if end == nil || kg.CodeOf(err) != kg.CodeOf(end) && !errors.Is(err, end) {
				return fmt.Errorf("it ends with %v, want %v", err, end)
			}
			return nil
		}
		if m.Sequence != last+1 {
			return fmt.Errorf("behind %d comes %d", last, m.Sequence)
		}
		if gone != 0 && m.Sequence > gone {
			return fmt.Errorf("%d is told to who was taken out behind %d", m.Sequence, gone)
		}
		last = m.Sequence
		if step++; step < 15 {
			publish()
		}
		if step == ends {
			switch dice.IntN(4) {
			case 0: // bob is taken out, and comes back later
				if _, err := s.Members().Remove(within(t), as("ann"), id, "bob"); err != nil {
					return err
				}
				defer func() {
					if _, err := s.Members().Add(within(t), as("ann"), id, "bob", ""); err != nil {
						t.Error(err)
					}
				}()
				end, gone = &kg.Error{Code: kg.CodeChannelNotFound}, now
			case 1:
				end = context.Canceled
				cancel()
			case 2:
				end = &kg.Error{Code: kg.CodeClosed}
				stream.Close()
			default: // others come and go: that ends nothing
				if _, err := s.Members().Add(within(t), as("ann"), id, "cleo", ""); err != nil {
					return err
				}
				if _, err := s.Members().Remove(within(t), as("ann"), id, "cleo"); err != nil {
					return err
				}
			}
			now = s.say(t, "ann", id, "behind").Sequence
		}
		if end == nil && last == now {
			if head() != last {
				return fmt.Errorf("the channel has %d messages, the stream told %d", head(), last)
			}
			return nil
		}
	}
	return errors.New("it ends without a reason")
}

// A stream ends with its store, and one from the last delivered sequence number continues
// in the next: without a gap or a duplicate.
func TestStreamGoesOnBehindRestarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var told []int64
	for life := range 5 {
		k, err := openKilled(dir)
		if err != nil {
			t.Fatal(err)
		}
		id := k.ids[0]
		since := int64(len(told))
		stream, err := k.Stream(within(t), as("ann"), id, &since)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 7 {
			if _, err := k.Publish(within(t), as("ann"), channels.Publication{Channel: id, Parts: text("%d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		var ended error
		for m, err := range stream.Messages() {
			if ended = err; err != nil {
				break
			}
			told = append(told, m.Sequence)
			if len(told) == 7*life+4 { // it has not told all: the next life does
				if err := k.store.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		wantCode(t, "the end", ended, kg.CodeClosed)
		stream.Close()
		_, err = k.Stream(within(t), as("ann"), id, nil)
		wantCode(t, "a stream of a closed store", err, kg.CodeClosed)
	}
	if !slices.IsSorted(told) || len(slices.Compact(slices.Clone(told))) != len(told) || told[len(told)-1] != int64(len(told)) {
		t.Errorf("told %v", told)
	}
}
