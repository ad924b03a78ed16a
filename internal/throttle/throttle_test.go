package throttle_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"koine/internal/caller"
	"koine/internal/throttle"
	"koine/kg"
)

// clock is a time that tests move.
type clock struct{ now time.Time }

func newClock() *clock                   { return &clock{time.Unix(1_700_000_000, 0)} }
func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// refused checks that an error says that the limit was passed, and when to come
// back.
func refused(t *testing.T, err error, limit string, after time.Duration) {
	t.Helper()
	e := kg.AsError(err)
	if err == nil || e.Code != kg.CodeRateLimited || e.Limit != limit || e.RetryAfter != after {
		t.Errorf("got %v (%+v), want %s for %q after %v", err, e, kg.CodeRateLimited, limit, after)
	}
}

func admitted(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("refused: %v", err)
	}
}

func TestRequestsOfAPrincipal(t *testing.T) {
	c := newClock()
	l := throttle.New(throttle.Options{Principal: throttle.Limits{Requests: 2}, Burst: 2 * time.Second, Clock: c.Now})
	for range 4 { // the tokens of two seconds
		admitted(t, l.AllowRequest("agent://a"))
	}
	refused(t, l.AllowRequest("agent://a"), throttle.Requests, 500*time.Millisecond)
	refused(t, l.AllowRequest("agent://a"), throttle.Requests, 500*time.Millisecond) // a refusal costs nothing
	admitted(t, l.AllowRequest("agent://b"))
	c.advance(499 * time.Millisecond)
	refused(t, l.AllowRequest("agent://a"), throttle.Requests, time.Millisecond)
	c.advance(time.Millisecond)
	admitted(t, l.AllowRequest("agent://a"))
	refused(t, l.AllowRequest("agent://a"), throttle.Requests, 500*time.Millisecond)
}

func TestHistoriesOfAPrincipal(t *testing.T) {
	c := newClock()
	l := throttle.New(throttle.Options{Principal: throttle.Limits{Histories: 1}, Burst: 2 * time.Second, Clock: c.Now})
	as := func(id kg.AgentID) context.Context {
		return caller.With(t.Context(), caller.Caller{Principal: kg.Principal{ID: id}})
	}
	admitted(t, l.AdmitHistory(as("agent://a")))
	admitted(t, l.AdmitHistory(as("agent://a")))
	refused(t, l.AdmitHistory(as("agent://a")), throttle.Histories, time.Second)
	admitted(t, l.AdmitHistory(as("agent://b")))
	admitted(t, l.AllowRequest("agent://a"))
	c.advance(time.Second)
	admitted(t, l.AdmitHistory(as("agent://a")))
}

func TestZeroBoundsNothing(t *testing.T) {
	for _, l := range []*throttle.Throttle{nil, throttle.New(throttle.Options{})} {
		for range 1000 {
			admitted(t, l.AllowRequest("agent://a"))
			admitted(t, l.AllowHistory("agent://a"))
			admitted(t, l.AllowAddress(addr("192.0.2.1")))
			admitted(t, l.AllowUpdate("agent://a", addr("192.0.2.1")))
			if _, err := l.OpenStream("agent://a", addr("192.0.2.1")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWhatAnAddressCountsAs(t *testing.T) {
	for _, row := range []struct {
		name, first, second string
		together            bool
	}{
		{"the same", "192.0.2.1", "192.0.2.1", true},
		{"mapped into IPv6", "192.0.2.1", "::ffff:192.0.2.1", true},
		{"the next one", "192.0.2.1", "192.0.2.2", false},
		{"one /64", "2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"the next /64", "2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"with a zone", "fe80::1%eth0", "fe80::2", true},
		{"loopback", "127.0.0.1", "127.0.0.1", false},
		{"loopback of IPv6", "::1", "::1", false},
	} {
		l := throttle.New(throttle.Options{Address: throttle.Limits{Requests: 1}, Burst: time.Second, Clock: newClock().Now})
		admitted(t, l.AllowAddress(addr(row.first)))
		if err := l.AllowAddress(addr(row.second)); (err != nil) != row.together {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
	l := throttle.New(throttle.Options{Address: throttle.Limits{Requests: 1}, Burst: time.Second, Clock: newClock().Now})
	admitted(t, l.AllowAddress(netip.Addr{}))
	admitted(t, l.AllowAddress(netip.Addr{}))
}

func TestUpdatesOfBoth(t *testing.T) {
	c := newClock()
	var lines []string
	l := throttle.New(throttle.Options{
		Principal: throttle.Limits{Updates: 2}, Address: throttle.Limits{Updates: 3}, Burst: time.Second, Clock: c.Now,
		OnRefusal: func(r throttle.Refusal) {
			lines = append(lines, fmt.Sprintf("%s by %s %s%v", r.What, r.By, r.Principal, r.Address))
		},
	})
	here := addr("192.0.2.1")
	admitted(t, l.AllowUpdate("agent://a", here))
	admitted(t, l.AllowUpdate("agent://a", here))
	refused(t, l.AllowUpdate("agent://a", here), throttle.Updates, 500*time.Millisecond)
	admitted(t, l.AllowUpdate("agent://b", here)) // the refused one did not cost the address anything
	refused(t, l.AllowUpdate("agent://b", here), throttle.Updates, time.Second/3)
	admitted(t, l.AllowUpdate("agent://c", addr("192.0.2.2")))
	if got, want := fmt.Sprint(lines), "[updates by principal agent://ainvalid IP updates by address 192.0.2.1]"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

func TestARateFarBelowOneSaysAMinute(t *testing.T) {
	l := throttle.New(throttle.Options{Principal: throttle.Limits{Requests: 0.001}, Clock: newClock().Now})
	admitted(t, l.AllowRequest("agent://a"))
	refused(t, l.AllowRequest("agent://a"), throttle.Requests, throttle.MaxRetryAfter)
}

func TestStreams(t *testing.T) {
	l := throttle.New(throttle.Options{Principal: throttle.Limits{Streams: 2}, Address: throttle.Limits{Streams: 3}})
	here := addr("192.0.2.1")
	open := func(agent kg.AgentID) func() {
		t.Helper()
		release, err := l.OpenStream(agent, here)
		admitted(t, err)
		return release
	}
	first := open("agent://a")
	open("agent://a")
	_, err := l.OpenStream("agent://a", here)
	refused(t, err, throttle.Streams, throttle.StreamRetryAfter)
	first()
	first() // the second time is nothing
	third := open("agent://a")
	_, err = l.OpenStream("agent://a", here)
	refused(t, err, throttle.Streams, throttle.StreamRetryAfter)
	open("agent://b")
	_, err = l.OpenStream("agent://b", here) // the address is full, and b keeps its place
	refused(t, err, throttle.Streams, throttle.StreamRetryAfter)
	third()
	open("agent://b")
}

// The table is bounded: at the bound no entry is forgotten, past it the one seen longest
// ago starts anew.
func TestBucketsAreBounded(t *testing.T) {
	const most = 8
	c := newClock()
	l := throttle.New(throttle.Options{Principal: throttle.Limits{Requests: 1}, Burst: time.Second, MaxBuckets: most, Clock: c.Now})
	name := func(i int) kg.AgentID { return kg.AgentID(fmt.Sprintf("agent://%d", i)) }
	for i := range most {
		admitted(t, l.AllowRequest(name(i)))
	}
	for i := range most {
		refused(t, l.AllowRequest(name(i)), throttle.Requests, time.Second)
	}
	if got := l.BucketCount(); got != most {
		t.Errorf("%d buckets, want %d", got, most)
	}
	admitted(t, l.AllowRequest(name(most))) // in place of 0, which was seen longest ago
	if got := l.BucketCount(); got != most {
		t.Errorf("%d buckets, want %d", got, most)
	}
	refused(t, l.AllowRequest(name(1)), throttle.Requests, time.Second)
	admitted(t, l.AllowRequest(name(0)))
}

func TestAdmitUpdate(t *testing.T) {
	l := throttle.New(throttle.Options{Principal: throttle.Limits{Updates: 1}, Burst: time.Second, Clock: newClock().Now})
	ctx := context.Background()
	meta := func(method string) kg.Meta { return kg.Meta{Principal: kg.Principal{ID: "agent://a", Method: method}} }
	for range 3 { // this process itself, and the command line, are not bounded
		admitted(t, l.AdmitUpdate(ctx, meta("")))
		admitted(t, l.AdmitUpdate(ctx, meta("local")))
	}
	admitted(t, l.AdmitUpdate(ctx, meta("key")))
	refused(t, l.AdmitUpdate(ctx, meta("key")), throttle.Updates, time.Second)
}

// A load beyond the available tokens makes a debt, for both limits; another caller from
// another address is not affected.
func TestLoadsAreOwed(t *testing.T) {
	c := newClock()
	l := throttle.New(throttle.Options{
		Principal: throttle.Limits{Updates: 2}, Address: throttle.Limits{Updates: 1}, Burst: 5 * time.Second, Clock: c.Now,
	})
	ctx := caller.With(context.Background(), caller.Caller{Address: addr("192.0.2.1")})
	meta := func(agent kg.AgentID, method string) kg.Meta {
		return kg.Meta{Principal: kg.Principal{ID: agent, Method: method}}
	}
	for range 100 {
		l.ChargeUpdate(ctx, meta("agent://a", "local"))
	}
	admitted(t, l.AdmitUpdate(ctx, meta("agent://a", "key")))
	for range 13 { // 14 of 10, and of the address's 5
		l.ChargeUpdate(ctx, meta("agent://a", "key"))
	}
	refused(t, l.AdmitUpdate(context.Background(), meta("agent://a", "key")), throttle.Updates, 2500*time.Millisecond)
	refused(t, l.AdmitUpdate(ctx, meta("agent://b", "key")), throttle.Updates, 10*time.Second)
	admitted(t, l.AdmitUpdate(context.Background(), meta("agent://b", "key")))
	c.advance(2500 * time.Millisecond)
	admitted(t, l.AdmitUpdate(context.Background(), meta("agent://a", "key")))
	c.advance(7500 * time.Millisecond)
	admitted(t, l.AdmitUpdate(ctx, meta("agent://b", "key")))
}

// A debt has an end: up to MaxDebt it is owed, past it no more.
func TestDebtsEnd(t *testing.T) {
	c := newClock()
	l := throttle.New(throttle.Options{Principal: throttle.Limits{Updates: 1}, Burst: time.Second, Clock: c.Now})
	seconds := int(throttle.MaxDebt / time.Second)
	for range 3 * seconds {
		l.ChargeDebt("agent://a", addr("192.0.2.1"))
	}
	c.advance(throttle.MaxDebt)
	refused(t, l.AllowUpdate("agent://a", addr("192.0.2.1")), throttle.Updates, time.Second)
	c.advance(time.Second)
	admitted(t, l.AllowUpdate("agent://a", addr("192.0.2.1")))
	var none *throttle.Throttle
	none.ChargeDebt("agent://a", addr("192.0.2.1"))
}

func TestAdmitTakesWhoTheContextCarries(t *testing.T) {
	l := throttle.New(throttle.Options{
		Principal: throttle.Limits{Requests: 1, Streams: 1}, Address: throttle.Limits{Updates: 1}, Burst: time.Second, Clock: newClock().Now,
	})
	ctx := caller.With(context.Background(), caller.Caller{Principal: kg.Principal{ID: "agent://a"}, Address: addr("192.0.2.1")})
	admitted(t, l.AdmitCall(ctx))
	refused(t, l.AdmitCall(ctx), throttle.Requests, time.Second)
	_, err := l.AdmitStream(ctx)
	admitted(t, err)
	_, err = l.AdmitStream(ctx)
	refused(t, err, throttle.Streams, throttle.StreamRetryAfter)
	m := kg.Meta{Principal: kg.Principal{ID: "agent://a", Method: "key"}}
	admitted(t, l.AdmitUpdate(ctx, m))
	refused(t, l.AdmitUpdate(ctx, m), throttle.Updates, time.Second)
	admitted(t, l.AdmitUpdate(context.Background(), m)) // from nowhere that is known
}

func BenchmarkRequest(b *testing.B) {
	l := throttle.New(throttle.Options{Principal: throttle.Limits{Requests: 1e6}})
	for b.Loop() {
		if err := l.AllowRequest("agent://a"); err != nil {
			b.Fatal(err)
		}
	}
}

// A caller gets half of the streams that the others leave, and the refusal names its share;
// a caller without any left gets the other one.
func TestShareOfStreams(t *testing.T) {
	limits := throttle.New(throttle.Options{MaxStreams: 4})
	admit := func(id string) (func(), error) {
		return limits.AdmitStream(caller.With(t.Context(), caller.Caller{Principal: kg.Principal{ID: kg.AgentID(id)}}))
	}
	for _, row := range []struct {
		id   string
		code kg.Code
	}{{"a", ""}, {"a", ""}, {"a", kg.CodeRateLimited}, {"b", ""}, {"b", kg.CodeRateLimited}, {"c", ""}, {"d", ""}, {"a", ""}} {
		release, err := admit(row.id)
		if kg.CodeOf(err) != row.code {
			t.Errorf("%s: got %v, want %q", row.id, err, row.code)
		}
		if err == nil && release == nil {
			t.Errorf("%s: a place without a release", row.id)
		}
	}
	limits = throttle.New(throttle.Options{MaxStreams: 2})
	release, err := admit("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admit("a"); kg.CodeOf(err) != kg.CodeRateLimited {
		t.Errorf("got %v", err)
	}
	release()
	release()
	if _, err := admit("a"); err != nil {
		t.Errorf("after a release: got %v", err)
	}
}
