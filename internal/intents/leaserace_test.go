package intents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"koine/channels/scope"
	"koine/internal/intents"
	"koine/internal/slowtest"
	"koine/kg/kgtest"
)

// held is an answer to an agent: until when its lease holds.
type held struct {
	Lease   string
	Renewed bool
	Until   time.Time
}

// useLeases has agents acquire the parts of an intent for a short time, and renew, release or
// forget their leases, as long as note wants more answers.
func (s *server) useLeases(ctx context.Context, id scope.ID, note func(held) (more bool)) {
	var agents sync.WaitGroup
	for _, agent := range []string{"ann", "bob", "ann", "bob"} {
		agents.Go(func() {
			for more := true; more && ctx.Err() == nil; {
				l, err := s.Leases().Acquire(ctx, as(agent), id, fmt.Sprint("part", rand.N(3)), time.Second)
				if err != nil {
					continue // it is leased
				}
				more = note(held{l.ID, false, l.ExpiresAt})
				for rand.N(3) > 0 && err == nil {
					time.Sleep(rand.N(25 * time.Millisecond))
					if l, err = s.Leases().Renew(ctx, as(agent), id, l.ID, time.Second); err == nil {
						more = note(held{l.ID, true, l.ExpiresAt})
					}
				}
				if err == nil && rand.N(3) == 0 {
					_, _ = s.Leases().Release(ctx, as(agent), id, l.ID)
				}
			}
		})
	}
	agents.Wait()
}

// checkLeases checks the log of an intent in which leases were used, after all of them have
// expired: one lease of a part at a time, each acquired and released once, and none expired
// before the time that its agent was told.
func (s *server) checkLeases(t *testing.T, id scope.ID, answers []held) {
	ctx := slowtest.Context(t)
	s.advance(time.Hour)
	for s.UnreleasedLeases(t, id) > 0 {
		time.Sleep(time.Millisecond)
	}
	until, renewed := map[string]time.Time{}, 0
	for _, a := range answers {
		if a.Until.After(until[a.Lease]) {
			until[a.Lease] = a.Until
		}
		if a.Renewed {
			renewed++
		}
	}
	holder := map[string]string{} // of a part
	seen, expired, released := map[string]bool{}, 0, 0
	for after := int64(1); ; {
		page, err := s.channels.Scopes().Events(ctx, as("ann"), id, after, scope.MaxEvents)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			var data struct {
				Scope, Reason string
				Lease         string `json:"lease_id"`
			}
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Fatal(err)
			}
			switch {
			case e.Type == intents.EventLeaseAcquired && holder[data.Scope] == "" && !seen[data.Lease]:
				holder[data.Scope], seen[data.Lease] = data.Lease, true
			case e.Type == intents.EventLeaseReleased && holder[data.Scope] == data.Lease:
				holder[data.Scope] = ""
				if data.Reason == "" {
					released++
				} else if expired++; e.Time.Before(until[data.Lease]) {
					t.Errorf("a lease that holds until %s has expired at %s", until[data.Lease], e.Time)
				}
			default:
				t.Errorf("event %d is %s of the lease %s, while %q holds the %s", e.Sequence, e.Type, data.Lease, holder[data.Scope], data.Scope)
			}
			after = e.Sequence + 1
		}
		if len(page) == 0 {
			break
		}
	}
	for part, lease := range holder {
		if lease != "" {
			t.Errorf("the end of the lease of %s is not told", part)
		}
	}
	for lease := range until {
		if !seen[lease] {
			t.Errorf("the lease %s of an answer is not in the log", lease)
		}
	}
	t.Logf("%d leases expired, %d were released, %d renewals", expired, released, renewed)
	if expired == 0 || renewed == 0 {
		t.Error("the test shows nothing")
	}
	if check, err := s.VerifyEvents(ctx, as("ann"), id, 1); err != nil || check.Next != 0 {
		t.Errorf("the chain of events: %+v, %v", check, err)
	}
}

// A renewal or a release that comes as the lease expires wins or loses: the expiry is told once,
// and after all that the agent was told.
func TestLeasesRaceWithExpiry(t *testing.T) {
	s := &server{dir: filepath.Join(t.TempDir(), "data"), speed: 50}
	s.open(t)
	t.Cleanup(s.close)
	id := s.intent(t)
	var mu sync.Mutex
	var answers []held
	renewed := false // or the machine is too slow so far
	most := slowtest.Size(500, 120)
	s.useLeases(slowtest.Context(t), id, func(a held) bool {
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, a)
		renewed = renewed || a.Renewed
		return len(answers) < most || !renewed
	})
	s.checkLeases(t, id, answers)
}

const killedVariable = "KOINE_INTENTS_KILLED"

// TestMain lets the test binary be the process that TestLeasesAcrossKills kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killedVariable); dir != "" {
		s := &server{dir: dir, speed: 50}
		err := s.begin()
		if err == nil {
			s.useLeases(context.Background(), scope.ID(os.Getenv(killedVariable+"_INTENT")), func(a held) bool {
				line, _ := json.Marshal(a)
				_, err := os.Stdout.Write(append(line, '\n'))
				return err == nil
			})
		}
		fmt.Fprintln(os.Stderr, "ended:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// The same over processes that are killed.
func TestLeasesAcrossKills(t *testing.T) {
	s := &server{dir: filepath.Join(t.TempDir(), "data"), speed: 50}
	s.open(t)
	t.Cleanup(func() { s.close() })
	id := s.intent(t)
	var answers []held
	renewed := false
	for range slowtest.Size(6, 2) {
		s.close()
		n := 20 + rand.N(80)
		err := kgtest.Child(time.Minute, func(line []byte) (bool, error) {
			var a held
			if err := json.Unmarshal(line, &a); err != nil {
				return false, err
			}
			answers = append(answers, a)
			renewed = renewed || a.Renewed
			n--
			return n <= 0 && renewed, nil
		}, killedVariable+"="+s.dir, killedVariable+"_INTENT="+string(id))
		s.open(t)
		if err != nil {
			t.Fatal(err)
		}
	}
	s.checkLeases(t, id, answers)
}
