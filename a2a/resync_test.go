package a2a_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// If the log is truncated before a subscriber has read it, the subscriber never sees
// events after the gap: RESYNC as the stream's last event, POSITION_GONE when it
// resumes, both with the position to start from.
func TestSlowSubscriberOfACutLog(t *testing.T) {
	s := newTestServerWith(t, kg.Options{RingCommits: 1}, sse.Options{WriteTimeout: patience, SendBuffer: 8 << 10}, a2a.Options{})
	sub := s.subscribe(t, `{}`)
	const n = 150 // more than the sockets' buffers hold
	for i := range n {
		s.set(t, kg.Add, fmt.Sprintf("urn:%d", i), kg.String(strings.Repeat("x", 100<<10)), "agent://x")
	}
	if err := s.store.Maintenance().CutLog(t.Context(), s.store.Head().Revision); err != nil {
		t.Fatal(err)
	}
	oldest := s.store.FormatPosition(s.store.Oldest())

	// It reads only now.
	seen, position := 0, ""
	e := sub.event()
	for ; e.Error == nil; e = sub.event() {
		if want := fmt.Sprintf("urn:%d", seen); e.Statement.Subject.ID != want || seen == n-1 {
			t.Fatalf("event %d: got %s, want %s or RESYNC", seen, e.Statement.Subject.ID, want)
		}
		seen, position = seen+1, e.ChangeMetadata.Position
	}
	if e.say() != "-32012 RESYNC" || e.Error.Data["oldestPosition"] != oldest || e.Error.Data["position"] != nil {
		t.Fatalf("got %s %v, want RESYNC with %s", e.say(), e.Error.Data, oldest)
	}
	if block := sub.block(); block != "" {
		t.Errorf("behind the last event: %q", block)
	}

	resume := func(from string) string { return `{"koine":{"resume":"` + from + `"}}` }
	resp := s.send(t, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"knowledge/subscribe","params":{"subscriptionQuery":"subscription { statementChanged { __typename } }","metadata":%s}}`, resume(position)), nil)
	want := "400 application/json\n" + `{"jsonrpc":"2.0","id":1,"error":{"code":-32012,"message":"the log no longer holds what follows the position","data":{"reason":"POSITION_GONE","domain":"koine",` +
		`"hint":"start from a snapshot, or from the oldest position","oldestPosition":"` + oldest + `"}}}` + "\n"
	if got := answer(t, resp); got != want {
		t.Errorf("coming back: got %swant %s", got, want)
	}
	if e, want := s.subscribe(t, resume(oldest)).event(), fmt.Sprintf("urn:%d", n-1); e.Statement.Subject.ID != want {
		t.Errorf("from the oldest position: got %s, want %s", e.say(), want)
	}
}

// turning is an Access that changes at a revision.
type turning struct{ at *atomic.Uint64 }

func (turning) Allowed(kg.Principal, kg.Term, kg.Right) bool { return true }

func (a turning) ReadChanged(_ kg.Principal, after kg.Revision) (bool, kg.Revision) {
	at := kg.Revision(a.at.Load())
	return at > after, max(at, after)
}

// When a subscriber's access changes, its stream ends with RESYNC and the cause,
// without the commit that changed it; so does the plain feed.
func TestSubscriberWhoseSightChanges(t *testing.T) {
	access := turning{new(atomic.Uint64)}
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Access: access}}, sse.Options{}, a2a.Options{})
	sub := s.subscribe(t, `{}`)
	s.set(t, kg.Add, "urn:a", kg.String("x"), "agent://x")
	if e := sub.event(); e.Statement.Subject.ID != "urn:a" {
		t.Fatalf("got %s", e.say())
	}
	access.at.Store(2)
	s.set(t, kg.Add, "urn:b", kg.String("x"), "agent://x")
	e := sub.event()
	if e.say() != "-32012 RESYNC" || e.Error.Data["cause"] != "ACCESS_CHANGED" || e.Error.Data["position"] != nil ||
		e.Error.Data["oldestPosition"] != s.store.FormatPosition(s.store.Oldest()) {
		t.Errorf("got %s %v", e.say(), e.Error.Data)
	}
	if block := sub.block(); block != "" {
		t.Errorf("behind the last event: %q", block)
	}
	// A stream that starts with a snapshot shows everything again.
	s.subscribe(t, `{"snapshot":true}`).expect("add urn:a x", "add urn:b x")
}
