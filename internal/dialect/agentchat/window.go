package agentchat

import (
	"net/netip"
	"sync"
	"time"

	"koine/internal/caller"
	"koine/kg"
)

// addressWindows counts registrations per address in a sliding window of an hour. It is
// kept in memory only.
type addressWindows struct {
	mu   sync.Mutex
	last map[netip.Prefix][]time.Time
}

func newAddressWindows() *addressWindows {
	return &addressWindows{last: map[netip.Prefix][]time.Time{}}
}

// reserve counts a registration.
//
// Errors: CodeRateLimited for one too many.
func (a *addressWindows) reserve(now time.Time, from netip.Addr) error {
	key := caller.OriginOf(from)
	a.mu.Lock()
	defer a.mu.Unlock()
	times, known := a.last[key]
	for len(times) > 0 && !times[0].After(now.Add(-time.Hour)) {
		times = times[1:]
	}
	if len(times) >= RegistrationsPerHour {
		return errTooManyRegistrations(times[0].Add(time.Hour).Sub(now))
	}
	if !known && len(a.last) >= MaxRegistrationAddresses && !a.evictIdle(now) {
		return errTooManyRegistrations(time.Hour)
	}
	a.last[key] = append(times, now)
	return nil
}

// evictIdle removes addresses without registrations in the window. It reports whether
// there is room for another one.
func (a *addressWindows) evictIdle(now time.Time) bool {
	for key, times := range a.last {
		if !times[len(times)-1].After(now.Add(-time.Hour)) {
			delete(a.last, key)
		}
	}
	return len(a.last) < MaxRegistrationAddresses
}

func errTooManyRegistrations(wait time.Duration) *kg.Error {
	e := kg.Errorf(kg.CodeRateLimited, "the address has registered %d agents within an hour, which is the limit: retry later", RegistrationsPerHour)
	e.RetryAfter = wait
	return e
}
