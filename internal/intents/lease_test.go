package intents_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// A part of an intent has one lease at a time, until it is released or expires.
func TestLeases(t *testing.T) {
	s := serve(t)
	id, ctx := s.intent(t), t.Context()
	l, err := s.Leases().Acquire(ctx, as("ann"), id, "draft", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Leases().Acquire(ctx, as("bob"), id, "draft", 0)
	wantCode(t, "a second lease", err, kg.CodeLeaseHeld)
	if held := (*intents.HeldError)(nil); !errors.As(err, &held) || held.Lease != *l {
		t.Errorf("the error has the lease %+v, want %+v", held, l)
	}
	other, err := s.Leases().Acquire(ctx, as("bob"), id, "review", 0)
	if err != nil || other.ExpiresAt.Sub(other.AcquiredAt) != intents.DefaultLeaseDuration {
		t.Fatalf("the lease of another part is %+v: %v", other, err)
	}
	for what, call := range map[string]func() (*intents.Lease, error){
		"renewal by another agent": func() (*intents.Lease, error) { return s.Leases().Renew(ctx, as("bob"), id, l.ID, time.Minute) },
		"release by another agent": func() (*intents.Lease, error) { return s.Leases().Release(ctx, as("bob"), id, l.ID) },
		"release of no lease":      func() (*intents.Lease, error) { return s.Leases().Release(ctx, as("ann"), id, "x") },
	} {
		_, err := call()
		wantCode(t, what, err, kg.CodeNotFound)
	}
	_, err = s.Leases().Acquire(ctx, as("rita"), id, "notes", 0)
	wantCode(t, "a reader", err, kg.CodePermissionDenied)
	_, err = s.Leases().Acquire(ctx, as("gus"), id, "notes", 0)
	wantCode(t, "an outsider", err, kg.CodeScopeNotFound)
	_, err = s.Leases().List(ctx, as("gus"), id)
	wantCode(t, "an outsider's list", err, kg.CodeScopeNotFound)

	if l, err = s.Leases().Renew(ctx, as("ann"), id, l.ID, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	s.restart(t)
	list, err := s.Leases().List(ctx, as("rita"), id)
	if err != nil || len(list) != 2 || list[0] != *l || list[1] != *other {
		t.Errorf("after a restart the leases are %+v, want %+v and %+v: %v", list, l, other, err)
	}
	s.advance(10*time.Minute + time.Second)
	if list, err := s.Leases().List(ctx, as("ann"), id); err != nil || len(list) != 0 {
		t.Errorf("expired leases are listed: %+v: %v", list, err)
	}
	_, err = s.Leases().Renew(ctx, as("ann"), id, l.ID, time.Minute)
	wantCode(t, "renewal of an expired lease", err, kg.CodeNotFound)
	if l, err = s.Leases().Acquire(ctx, as("bob"), id, "draft", 0); err != nil {
		t.Fatal("the part is not free after the lease has expired:", err)
	}
	if _, err := s.Leases().Release(ctx, as("bob"), id, l.ID); err != nil {
		t.Fatal(err)
	}
	want := []string{"lease_acquired", "lease_acquired", "lease_released", "lease_released", "lease_acquired", "lease_released"}
	if got := s.eventTypes(t, id); !slices.Equal(got, want) {
		t.Errorf("the events are %v, want %v", got, want)
	}
}

// Leases end with the intent, and with their holder.
func TestLeasesEndWithIntentAndAgent(t *testing.T) {
	s := serve(t)
	ctx := t.Context()
	first, second := s.intent(t), s.intent(t)
	for _, id := range []scope.ID{first, second} {
		for _, by := range []string{"ann", "bob"} {
			if _, err := s.Leases().Acquire(ctx, as(by), id, by, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Leases().ReleaseAgent(ctx, "agent://bob"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []scope.ID{first, second} {
		if list, err := s.Leases().List(ctx, as("ann"), id); err != nil || len(list) != 1 || list[0].Agent != "agent://ann" {
			t.Errorf("without bob the leases are %+v: %v", list, err)
		}
	}
	if _, err := s.channels.Scopes().End(ctx, as("ann"), first, scope.Completed, ""); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Leases().List(ctx, as("ann"), first); err != nil || len(list) != 0 {
		t.Errorf("an intent that has ended has the leases %+v: %v", list, err)
	}
	_, err := s.Leases().Acquire(ctx, as("ann"), first, "more", 0)
	wantCode(t, "a lease of an intent that has ended", err, kg.CodeScopeEnded)
}

// Of many agents that acquire a part at once, one gets it.
func TestLeaseRace(t *testing.T) {
	s := serve(t)
	sc, err := s.channels.Scopes().Create(t.Context(), as("ann"), scope.Draft{Title: "open", Access: scope.Access{Everybody: true}})
	if err != nil {
		t.Fatal(err)
	}
	var got atomic.Int64
	var agents sync.WaitGroup
	for i := range 16 {
		agents.Go(func() {
			_, err := s.Leases().Acquire(t.Context(), as(fmt.Sprint("agent", i)), sc.ID, "part", 0)
			if err == nil {
				got.Add(1)
			} else {
				wantCode(t, "the others", err, kg.CodeLeaseHeld)
			}
		})
	}
	agents.Wait()
	if got.Load() != 1 {
		t.Errorf("%d agents hold the lease, want 1", got.Load())
	}
}

func TestBoundsOfLeases(t *testing.T) {
	s := serve(t)
	id := s.intent(t)
	for _, row := range []struct {
		part     string
		duration time.Duration
		want     kg.Code
	}{
		{"", 0, kg.CodeInvalid},
		{strings.Repeat("ü", intents.MaxLeaseScopeRunes), intents.MaxLeaseDuration, ""},
		{strings.Repeat("ü", intents.MaxLeaseScopeRunes+1), 0, kg.CodeLimitExceeded},
		{"a", intents.MaxLeaseDuration + 1, kg.CodeInvalid},
		{"a", time.Second - 1, kg.CodeInvalid},
		{"a", time.Second, ""},
	} {
		_, err := s.Leases().Acquire(t.Context(), as("ann"), id, row.part, row.duration)
		wantCode(t, fmt.Sprintf("%.9q for %s", row.part, row.duration), err, row.want)
	}
}
