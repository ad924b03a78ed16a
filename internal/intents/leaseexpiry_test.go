package intents_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"koine/channels/scope"
	"koine/internal/intents"
	"koine/internal/slowtest"
	"koine/kg"
)

// leaseEvents are the events of leases in the log of an intent, as "type scope agent", with
// a * if the lease has expired.
func (s *server) leaseEvents(t testing.TB, id scope.ID) (out []string) {
	t.Helper()
	for after := int64(1); ; {
		page, err := s.channels.Scopes().Events(slowtest.Context(t), as("ann"), id, after, scope.MaxEvents)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			out = append(out, leaseEvent(t, e))
		}
		if len(page) == 0 {
			return out
		}
		after = page[len(page)-1].Sequence + 1
	}
}

func leaseEvent(t testing.TB, e *scope.Event) string {
	t.Helper()
	var data struct {
		Scope, Reason string
		Agent         string `json:"agent_id"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s %s %s", e.Type, data.Scope, data.Agent)
	if data.Reason == "expired" {
		text += "*"
		if e.Actor != kg.System {
			t.Errorf("%s is said by %s", text, e.Actor)
		}
	}
	return text
}

// The end of a lease is told when its time comes, once, also after a restart of a server that was
// down at that time.
func TestLeaseExpiryIsTold(t *testing.T) {
	s := serve(t)
	ctx := slowtest.Context(t)
	id, ended := s.intent(t), s.intent(t)
	for i, part := range []string{"draft", "review"} {
		if _, err := s.Leases().Acquire(ctx, as("bob"), id, part, time.Duration(i+1)*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	from := s.store.Head()
	follow := func() string {
		t.Helper()
		f, err := s.Follow(ctx, as("rita"), intents.FeedQuery{Intent: id, After: &from})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		list, err := next(f, 1)
		if err != nil {
			t.Fatal(err)
		}
		from = list[0].Position
		return leaseEvent(t, list[0].Event)
	}
	s.advance(time.Minute)
	want := "lease_released draft bob*"
	if got := follow(); got != want {
		t.Fatalf("a minute later rita is told %q, want %q", got, want)
	}
	if list, err := s.Leases().List(ctx, as("ann"), id); err != nil || len(list) != 1 || list[0].Scope != "review" {
		t.Errorf("then the leases are %+v: %v", list, err)
	}

	if _, err := s.Leases().Acquire(ctx, as("bob"), ended, "draft", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.End(ctx, as("ann"), ended, scope.Completed, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Leases().Acquire(ctx, as("ann"), id, "notes", time.Minute); err != nil {
		t.Fatal(err)
	}
	s.close()
	s.advance(time.Hour)
	s.open(t)
	for _, want := range []string{"lease_acquired notes ", "lease_released review bob*", "lease_released notes ann*"} {
		if got := follow(); got != want {
			t.Fatalf("after the restart rita is told %q, want %q", got, want)
		}
	}
	before := s.store.Head()
	s.restart(t)
	if _, err := s.Leases().Acquire(ctx, as("ann"), id, "last", time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := follow(); got != "lease_acquired last " || from.Revision != before.Revision+1 {
		t.Errorf("after another restart rita is told %q in revision %d, want the next lease in %d", got, from.Revision, before.Revision+1)
	}
	if n := s.DueIntents(); n != 1 { // that of the last lease: the intent that ended keeps no lease
		t.Errorf("%d intents have leases to look at, want 1", n)
	}
	if got := s.leaseEvents(t, ended); slices.ContainsFunc(got, func(e string) bool { return e == want }) {
		t.Errorf("a lease that ended with its intent has expired: %q", got)
	}
	if check, err := s.VerifyEvents(ctx, as("ann"), id, 1); err != nil || check.Next != 0 {
		t.Errorf("the chain of events: %+v, %v", check, err)
	}
}

// A renewal moves the expiry, and a release cancels it.
func TestRenewedLeaseExpiresLater(t *testing.T) {
	s := serve(t)
	ctx, id := slowtest.Context(t), s.intent(t)
	var list []*intents.Lease
	for _, part := range []string{"renewed", "released", "expires"} {
		l, err := s.Leases().Acquire(ctx, as("bob"), id, part, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	if _, err := s.Leases().Renew(ctx, as("bob"), id, list[0].ID, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Leases().Release(ctx, as("bob"), id, list[1].ID); err != nil {
		t.Fatal(err)
	}
	from := s.store.Head()
	f, err := s.Follow(ctx, as("rita"), intents.FeedQuery{Intent: id, After: &from})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []string
	s.advance(time.Minute)
	for e, err := range f.All() {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, leaseEvent(t, e.Event)); len(got) == 2 {
			break
		}
		s.advance(10 * time.Minute)
	}
	if want := []string{"lease_released expires bob*", "lease_released renewed bob*"}; !slices.Equal(got, want) {
		t.Errorf("rita is told %q, want %q", got, want)
	}
}

// Leases of many intents that expire at once are released by a few commits, of a bounded size.
func TestManyLeasesExpire(t *testing.T) {
	s := serve(t)
	ctx := slowtest.Context(t)
	s.Close() // until all have expired
	const many = intents.MaxDueIntents + 1
	var all []scope.ID
	for range many {
		id := s.intent(t)
		if _, err := s.Leases().Acquire(ctx, as("bob"), id, "part", time.Minute); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	before := s.store.Head().Revision
	s.advance(time.Hour)
	s.restart(t)
	for s.DueIntents() > 0 {
		time.Sleep(time.Millisecond)
		if ctx.Err() != nil {
			t.Fatal("not all leases expire")
		}
	}
	if err := s.store.WaitFor(ctx, before+2); err != nil {
		t.Fatal(err)
	}
	if at := s.store.Head().Revision; at != before+2 {
		t.Errorf("%d intents took %d commits, want 2", many, at-before)
	}
	for _, id := range all {
		if got := s.leaseEvents(t, id); !slices.Equal(got, []string{"lease_acquired part ", "lease_released part bob*"}) {
			t.Fatalf("the events of an intent are %q", got)
		}
	}
}
