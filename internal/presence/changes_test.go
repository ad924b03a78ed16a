package presence_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/presence"
	"koine/kg"
)

// A heartbeat is valid for as long as its caller asks, within bounds.
func TestValidityOfHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann, bob)
		beat := func(validity time.Duration) error {
			_, err := tracker.HeartbeatFor(t.Context(), ann, "", validity)
			return err
		}
		for _, bad := range []time.Duration{-1, presence.MinValidity - 1, presence.MaxValidity + 1} {
			if err := beat(bad); kg.CodeOf(err) != kg.CodeInvalid {
				t.Errorf("%s: %v", bad, err)
			}
		}
		for _, validity := range []time.Duration{presence.MinValidity, 90 * time.Second, presence.MaxValidity} {
			if err := beat(validity); err != nil {
				t.Fatal(err)
			}
			b.beat(t, ann, "") // does not shorten it, if it is longer
			time.Sleep(max(validity, presence.DefaultValidity) - 1)
			if got := tracker.Get(ann).Status; got == presence.Offline {
				t.Errorf("%s: too early", validity)
			}
			time.Sleep(time.Nanosecond)
			if got := tracker.Get(ann).Status; got != presence.Offline {
				t.Errorf("%s: still %s", validity, got)
			}
		}
		if err := beat(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(presence.DefaultValidity)
		if got := tracker.Get(ann).Status; got != presence.Offline {
			t.Errorf("the default: %s", got)
		}
	})
}

// A reader is told each change when it happens, also one that comes with the passing of
// time while an earlier change waits to be stored.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{AgentWriteInterval: time.Hour}, ann)
		changes, err := tracker.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(changes)
		defer stop()
		want := func(status presence.Status, at string) {
			t.Helper()
			if tr, dropped, ok := next(); !ok || dropped != 0 || tr.Agent != ann || tr.Status != status || b.sinceStart(time.Now()) != at {
				t.Errorf("told %v at %s, want %s at %s", tr, b.sinceStart(time.Now()), status, at)
			}
		}
		b.beat(t, ann, presence.Busy)
		want(presence.Busy, "0s")
		b.beat(t, ann, presence.Online)
		want(presence.Online, "0s")
		want(presence.Offline, "1m0s")
		b.beat(t, ann, "")
		want(presence.Online, "1m0s") // since the last write an hour has not passed
		want(presence.Offline, "2m0s")
	})
}

// For a reader that does not read, the changes of an agent coalesce, and of too many agents
// the first are dropped and counted.
func TestChangesOfSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{})
		changes, err := tracker.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const beyond = 3
		for i := range presence.MaxPendingChanges + beyond {
			agent := kg.AgentID(fmt.Sprintf("agent://a%05d", i))
			b.beat(t, agent, presence.Busy)
			b.beat(t, agent, presence.Online)
		}
		n := 0
		for tr, dropped := range changes {
			if want := fmt.Sprintf("agent://a%05d", n+beyond); string(tr.Agent) != want || tr.Status != presence.Online || (dropped == beyond) != (n == 0) {
				t.Fatalf("told %v after %d dropped, want %s", tr, dropped, want)
			}
			if n++; n == presence.MaxPendingChanges {
				break
			}
		}
	})
}

// The readers are bounded, and end with their context, whether they read or not.
func TestReadersOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, _ := start(t, presence.Options{}, ann)
		ctx, cancel := context.WithCancel(t.Context())
		var last iter.Seq2[presence.Transition, int]
		for range presence.MaxListeners {
			changes, err := tracker.Changes(ctx)
			if err != nil {
				t.Fatal(err)
			}
			last = changes
		}
		if _, err := tracker.Changes(ctx); kg.CodeOf(err) != kg.CodeLimitExceeded {
			t.Errorf("past the limit: %v", err)
		}
		cancel()
		synctest.Wait()
		if got := slices.Collect(firsts(last)); got != nil {
			t.Errorf("told %v after the end", got)
		}
		if _, err := tracker.Changes(t.Context()); err != nil {
			t.Errorf("after the others ended: %v", err)
		}
	})
}

func firsts[K, V any](seq iter.Seq2[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range seq {
			if !yield(k) {
				return
			}
		}
	}
}
