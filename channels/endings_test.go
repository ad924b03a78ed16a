package channels_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/slowtest"
	"koine/kg"
)

var endingsFlag = flag.Int("channels.endings", races(os.Getenv("KOINE_RACES"))/4, "how many channels TestEndings deletes")

// While agents publish, a member is removed and the channel is deleted, in any
// interleaving: each stream delivers the messages after its start in order and without a
// gap, until its end; its error is that the channel does not exist, and nothing follows it.
// Publishers get the same error, and no goroutine is left.
func TestEndings(t *testing.T) {
	slowtest.Long(t)
	s := serve(t, channels.Options{}, kg.Options{})
	goroutines, watchers := runtime.NumGoroutine(), s.store.Stats().Watchers
	told, begun := 0, 0
	for i := range *endingsFlag {
		visibility := channel.Private
		if i%2 == 0 {
			visibility = channel.Public
		}
		n, streams, err := s.ending(t, visibility)
		if err != nil {
			t.Fatalf("channel %d: %v", i, err)
		}
		told, begun = told+n, begun+streams
	}
	t.Logf("%d streams were told %d messages", begun, told)
	if begun == 0 || told == 0 {
		t.Error("no stream was told anything")
	}
	eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := s.store.Stats().Watchers; n != watchers {
		t.Errorf("there are %d watchers, and were %d", n, watchers)
	}
}

// ending runs the life of a channel. told is the number of messages that its streams
// delivered.
func (s *server) ending(t *testing.T, visibility channel.Visibility) (told, streams int, err error) {
	c := s.make(t, visibility, "bob", "cleo")
	ctx := within(t)
	for range rand.IntN(5) {
		s.say(t, "ann", c.ID, "before")
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	do := func(what string, fn func() error) {
		all.Go(func() {
			if failed := fn(); failed != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("%s: %w", what, failed))
				mu.Unlock()
			}
		})
	}
	gone := func(err error) error {
		if kg.CodeOf(err) == kg.CodeChannelNotFound {
			return nil
		}
		return err
	}
	for _, who := range []string{"ann", "bob"} {
		do(who+" publishes", func() error {
			for { // it ends because the channel does, or for bob his membership
				_, err := s.Publish(ctx, as(who), channels.Publication{Channel: c.ID, Parts: text("message")})
				if err != nil {
					if who == "bob" && visibility == channel.Public && kg.CodeOf(err) == kg.CodePermissionDenied {
						return nil
					}
					return gone(err)
				}
			}
		})
	}
	for i, who := range []string{"ann", "bob", "bob", "cleo", "cleo"} {
		do(who+" follows", func() error {
			if i%2 == 1 {
				idle(20)
			}
			n, begun, err := s.toTheEnd(ctx, who, c.ID)
			mu.Lock()
			defer mu.Unlock()
			if told += n; begun {
				streams++
			}
			return err
		})
	}
	do("bob is taken out", func() error {
		idle(20)
		_, err := s.Members().Remove(ctx, as("ann"), c.ID, "bob")
		return gone(err)
	})
	do("the end", func() error {
		idle(30)
		return s.Delete(ctx, as("ann"), c.ID)
	})
	all.Wait()
	return told, streams, errors.Join(errs...)
}

// idle yields, for up to a number of milliseconds.
func idle(most int) { time.Sleep(time.Duration(rand.IntN(most*1000)) * time.Microsecond) }

// toTheEnd follows a channel until the end of the stream.
func (s *server) toTheEnd(ctx context.Context, who string, id channel.ID) (told int, begun bool, err error) {
	since := rand.Int64N(3)
	stream, err := s.Stream(ctx, as(who), id, &since)
	switch kg.CodeOf(err) {
	case kg.CodeChannelNotFound:
		return 0, false, nil
	case kg.CodeInvalid: // there are not so many messages yet
		since = 0
		if stream, err = s.Stream(ctx, as(who), id, &since); kg.CodeOf(err) == kg.CodeChannelNotFound {
			return 0, false, nil
		}
	}
	if err != nil {
		return 0, false, err
	}
	defer stream.Close()
	last := since
	var end error
	for m, err := range stream.Messages() {
		switch {
		case end != nil:
			return told, true, fmt.Errorf("behind its end (%w) comes %v, %v", end, m, err)
		case err != nil:
			end = err
		case m.Sequence != last+1 || len(m.Parts) != 1:
			return told, true, fmt.Errorf("behind %d comes %+v", last, m)
		default:
			last, told = m.Sequence, told+1
		}
	}
	if kg.CodeOf(end) != kg.CodeChannelNotFound {
		return told, true, fmt.Errorf("it ends with %w", end)
	}
	_, err = s.Stream(ctx, as(who), id, &last)
	if kg.CodeOf(err) != kg.CodeChannelNotFound {
		return told, true, fmt.Errorf("behind its end it is opened with %w", err)
	}
	return told, true, nil
}
