package channels_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/slowtest"
	"koine/kg"
)

var (
	soakFlag    = flag.Duration("channels.soak", soakTime(), "how long TestSoak goes on")
	soakWorkers = flag.Int("channels.soakers", 0, "how many publishers, and how many streams, TestSoak has (0: 200, or 20 where it is short)")
)

// soakTime is longer where KOINE_SOAK says so.
func soakTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("KOINE_SOAK")); err == nil {
		return d
	}
	return 2 * time.Second
}

// Publishers and streams come and go: every stream delivers the messages after its start
// without a gap and once, and when all have ended nothing of them is left.
func TestSoak(t *testing.T) {
	slowtest.Long(t)
	workers := *soakWorkers
	if workers == 0 {
		workers = 20
		if *soakFlag >= 30*time.Second {
			workers = 200
		}
	}
	s := serve(t, channels.Options{}, kg.Options{})
	ids := make([]channel.ID, 8)
	for i := range ids {
		ids[i] = s.make(t, channel.Public, "bob").ID
	}
	s.say(t, "ann", ids[0], "first")
	goroutines, watchers, memory := runtime.NumGoroutine(), s.store.Stats().Watchers, held()
	var published, told, streams atomic.Int64
	until := time.Now().Add(*soakFlag)
	ctx, cancel := context.WithDeadline(context.Background(), until.Add(2*time.Minute))
	defer cancel()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { // publishers: some messages, then another one takes its place
			for time.Now().Before(until) {
				by := as([]string{"ann", "bob"}[rand.IntN(2)])
				for range rand.IntN(50) {
					p := channels.Publication{Channel: ids[rand.IntN(len(ids))], Parts: text("message")}
					if _, err := s.Publish(ctx, by, p); err != nil {
						t.Error(err)
						return
					}
					published.Add(1)
				}
				time.Sleep(time.Duration(rand.IntN(workers)) * time.Millisecond) // leaves room for the others
			}
		})
		wg.Go(func() {
			for time.Now().Before(until) {
				n, err := s.overhear(ctx, ids[rand.IntN(len(ids))], until)
				if err != nil {
					t.Error(err)
					return
				}
				streams.Add(1)
				told.Add(n)
			}
		})
	}
	wg.Wait()
	t.Logf("%d messages, %d streams that were told %d", published.Load(), streams.Load(), told.Load())
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > goroutines && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // those that have ended are on their way out
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left, there were %d:\n%s", n, goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	if n := s.store.Stats().Watchers; n != watchers {
		t.Errorf("there are %d watchers, and were %d", n, watchers)
	}
	// Caches are bounded, and messages are on disk, or are being written: memory used for
	// that is released afterwards.
	grown := held() - memory
	for deadline := time.Now().Add(time.Minute); grown > soakMemory && time.Now().Before(deadline); grown = held() - memory {
		time.Sleep(time.Second)
	}
	t.Logf("%d MiB are held, %d more than before", (memory+grown)>>20, grown>>20)
	if grown > soakMemory {
		t.Errorf("%d MiB more than before are held, more than %d", grown>>20, soakMemory>>20)
	}
}

// soakMemory bounds the memory that the store may keep of the messages: the newest commits,
// terms, and the index of the tables on disk.
const soakMemory = 128 << 20

// overhear follows a channel from somewhere on for some messages.
func (s *server) overhear(ctx context.Context, id channel.ID, until time.Time) (n int64, err error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	c, err := s.Get(context.Background(), as("eve"), id)
	if err != nil {
		return 0, err
	}
	since := max(0, c.Messages-rand.Int64N(300))
	stream, err := s.Stream(ctx, as("eve"), id, &since)
	if err != nil {
		if ctx.Err() != nil {
			err = nil
		}
		return 0, err
	}
	defer stream.Close()
	most := 1 + rand.Int64N(400)
	for m, err := range stream.Messages() {
		switch {
		case ctx.Err() != nil:
			return n, nil
		case err != nil:
			return n, err
		case m.Sequence != since+n+1:
			return n, fmt.Errorf("behind %d, %d messages of which were told, comes %d", since, n, m.Sequence)
		}
		if n++; n == most {
			break
		}
		if n%50 == 0 {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) // a slow reader
		}
	}
	return n, nil
}
