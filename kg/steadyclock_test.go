package kg_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"koine/kg"
)

// times is a clock that jumps, and the time that passes.
type times struct {
	mu     sync.Mutex
	wall   time.Time
	uptime time.Duration
	log    bytes.Buffer
}

// pass lets time pass: by the clock too.
func (s *times) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall, s.uptime = s.wall.Add(d), s.uptime+d
}

// jump sets the clock.
func (s *times) jump(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall = s.wall.Add(d)
}

// warned counts the warnings about the clock in the log.
func (s *times) warned() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.log.String(), "until the clock has run regularly")
}

func (s *times) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *times) options() kg.Options {
	o := tinyLog()
	o.History, o.Logger = agingHistory, slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.Clock = func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.wall }
	o.Uptime = func() time.Duration { s.mu.Lock(); defer s.mu.Unlock(); return s.uptime }
	return o
}

// oldest is the oldest readable revision after a round of the history option.
func oldest(t *testing.T, s *kg.Store) kg.Revision {
	t.Helper()
	r, err := s.Maintenance().Retain(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return r.Oldest
}

// workHourly makes a commit every hour.
func (s *times) workHourly(t *testing.T, store *kg.Store, w *worker, n int) {
	t.Helper()
	for range n {
		s.pass(time.Hour)
		w.work(t, store, 1)
	}
}

// A clock that jumps ahead while the store is open takes nothing with it: not at
// once, and not when it is set right within the while that it has.
func TestHistoryUnderAJumpingClock(t *testing.T) {
	t.Parallel()
	s := &times{wall: agingBegin}
	store, w := openStore(t, t.TempDir(), s.options()), newWorker(41, "w")
	s.workHourly(t, store, w, 20)
	if got := oldest(t, store); got != 10 {
		t.Fatalf("the oldest is %d, want 10", got)
	}
	s.jump(1000 * time.Hour)
	if got := oldest(t, store); got != 10 || s.warned() != 1 {
		t.Errorf("after the jump the oldest is %d, with %d warnings", got, s.warned())
	}
	s.pass(kg.MaxClockSettle - time.Second)
	if r, err := store.Maintenance().Retain(within(t)); err != nil || r.Oldest != 10 || r.Waits != time.Second {
		t.Errorf("before the clock is believed: %+v, %v", r, err)
	}
	s.jump(-1000 * time.Hour)
	s.pass(time.Second)
	if r, err := store.Maintenance().Retain(within(t)); err != nil || r.Oldest != 11 || r.Waits != 0 || s.warned() != 1 {
		t.Errorf("set right: %+v, %v, %d warnings", r, err, s.warned())
	}
	// One that stays ahead is believed in the end.
	s.jump(5 * time.Hour)
	if got := oldest(t, store); got != 11 {
		t.Errorf("after the second jump the oldest is %d", got)
	}
	s.pass(kg.MaxClockSettle)
	if r, err := store.Maintenance().Retain(within(t)); err != nil || r.Oldest != 17 || r.Waits != 0 || s.warned() != 2 {
		t.Errorf("in step: %+v, %v, %d warnings", r, err, s.warned())
	}
}

// The tolerated advance of a clock from one check to the next.
func TestClockTolerance(t *testing.T) {
	t.Parallel()
	for jump, want := range map[time.Duration]int{kg.ClockTolerance: 0, kg.ClockTolerance + time.Millisecond: 1, -100 * time.Hour: 0} {
		s := &times{wall: agingBegin}
		store, w := openStore(t, t.TempDir(), s.options()), newWorker(42, "w")
		s.workHourly(t, store, w, 12)
		oldest(t, store)
		s.jump(jump)
		r, err := store.Maintenance().Retain(within(t))
		if err != nil || s.warned() != want || (r.Waits > 0) != (want > 0) {
			t.Errorf("a jump of %s: %d warnings, %+v, %v", jump, s.warned(), r, err)
		}
		mustClose(t, store)
	}
}

// A store that is opened long after its newest commit, or under a clock that is
// far ahead, which is the same to see, keeps its history for a while.
func TestHistoryOfAStoreThatWasClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &times{wall: agingBegin}
	store, w := openStore(t, dir, s.options()), newWorker(43, "w")
	s.workHourly(t, store, w, 20)
	mustClose(t, store)
	s.jump(1000 * time.Hour)
	store = openStore(t, dir, s.options())
	if got := oldest(t, store); got != 10 || s.warned() != 1 {
		t.Errorf("opened, the oldest is %d, with %d warnings", got, s.warned())
	}
	s.pass(kg.MaxClockSettle - time.Millisecond)
	if got := oldest(t, store); got != 10 {
		t.Errorf("not yet in step for long, the oldest is %d", got)
	}
	s.pass(time.Millisecond)
	if got := oldest(t, store); got != 20 {
		t.Errorf("in step, the oldest is %d", got)
	}
	mustClose(t, store)
	// Opened again at once, there is nothing to wait for.
	w.work(t, openStore(t, t.TempDir(), s.options()), 1)
	if s.warned() != 1 {
		t.Errorf("a store without a past warns: %d", s.warned())
	}
}
