package intents_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"koine/channels"
	"koine/channels/scope"
	"koine/internal/intents"
	"koine/kg"
)

// server is a service over a store of its own, whose clock the test sets.
type server struct {
	*intents.Service
	channels *channels.Service
	store    *kg.Store
	dir      string
	offset   atomic.Int64 // of the clock
	tier     channels.Tier
	speed    int64 // of the clock since begun, if not 0
}

// begun is when clocks with another speed showed the time.
var begun = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func (s *server) now() time.Time {
	now := time.Now()
	if s.speed != 0 {
		now = begun.Add(time.Since(begun) * time.Duration(s.speed))
	}
	return now.Add(time.Duration(s.offset.Load()))
}

// advance sets the clock forward.
func (s *server) advance(d time.Duration) { s.offset.Add(int64(d)) }

func serve(t testing.TB) *server {
	t.Helper()
	s := &server{dir: filepath.Join(t.TempDir(), "data")}
	s.open(t)
	t.Cleanup(s.close)
	return s
}

func (s *server) open(t testing.TB) {
	t.Helper()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
}

func (s *server) begin() (err error) {
	s.channels = channels.New(channels.Options{Clock: s.now, Tier: s.tier})
	s.store, err = kg.Open(s.dir, kg.Options{ReserveBytes: 1, Clock: s.now, Governor: kg.Governor{Access: s.channels.Guard(kg.AllowAll{}), OnSystemChange: s.channels.Follow}})
	if err != nil {
		return err
	}
	if err := s.channels.Load(context.Background(), s.store); err != nil {
		return err
	}
	s.Service = intents.New(s.store, s.channels, intents.Impatient(intents.Options{Clock: s.now}))
	return s.Start(context.Background())
}

func (s *server) close() {
	s.Close()
	s.channels.Close()
	_ = s.store.Close()
}

// restart opens the store again, with other services.
func (s *server) restart(t testing.TB) {
	t.Helper()
	s.close()
	s.open(t)
}

func as(agent string) channels.Caller {
	return channels.Caller{Principal: kg.Principal{ID: kg.CanonicalAgent(agent), Method: "key"}}
}

// intent creates an intent of ann that bob may change and rita may read.
func (s *server) intent(t testing.TB) scope.ID {
	t.Helper()
	sc, err := s.channels.Scopes().Create(t.Context(), as("ann"), scope.Draft{Title: "research", Grants: []scope.Grant{
		{Agent: "agent://bob", Level: scope.Write}, {Agent: "agent://rita", Level: scope.Read},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return sc.ID
}

func wantCode(t testing.TB, what string, err error, want kg.Code) {
	t.Helper()
	if got := kg.CodeOf(err); got != want || want == "" && err != nil {
		t.Errorf("%s: the error is %v, want code %q", what, err, want)
	}
}

// eventTypes lists the types of the events of an intent, oldest first.
func (s *server) eventTypes(t testing.TB, id scope.ID) (types []string) {
	t.Helper()
	events, err := s.channels.Scopes().Events(t.Context(), as("ann"), id, 1, scope.MaxEvents)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}
