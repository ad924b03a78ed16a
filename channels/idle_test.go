package channels_test

import (
	"testing"
	"time"

	"koine/channels"
	"koine/channels/channel"
	"koine/internal/slowtest"
	"koine/kg"
)

// closings are the commits of the log behind a revision that closed channels: how many
// each closed.
func (s *server) closings(t testing.TB, behind kg.Revision) (out []int) {
	t.Helper()
	for r := behind + 1; r <= s.store.Head().Revision; r++ {
		c, err := s.store.Commit(within(t), kg.SystemPrincipal(), r)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range c.Changes {
			if c.Changes[i].Quad.Predicate == vocab("channelClosedAt") {
				n++
			}
		}
		if n > 0 {
			out = append(out, n)
		}
	}
	return out
}

// Many channels that are due at once are closed by consecutive commits of a bounded size,
// each channel once and as of its own time. One with a newer message stays open, and is
// checked again when it is due. Channels due during a downtime are closed after the
// restart.
func TestManyChannelsExpire(t *testing.T) {
	slowtest.Long(t)
	const (
		many   = 450 // more than two commits may close
		busy   = 30  // of them, in which something is said
		atMost = 200
	)
	clock := startClock()
	o := channels.Patient(channels.Options{Clock: clock.now}, time.Hour)
	s := serve(t, o, kg.Options{Clock: clock.now})
	make := func(after time.Duration) channel.ID {
		t.Helper()
		c, err := s.Create(within(t), as("ann"), channel.Draft{ExpireAfter: after})
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	due := map[channel.ID]time.Time{}
	ids := []channel.ID{}
	for range many {
		clock.step(time.Millisecond)
		id := make(time.Minute)
		ids, due[id] = append(ids, id), clock.now().Add(time.Minute)
	}
	for i := range busy {
		id := ids[i*many/busy]
		clock.step(time.Millisecond)
		s.say(t, "ann", id, "still here")
		due[id] = clock.now().Add(time.Minute)
	}
	closed := func() (n int) {
		t.Helper()
		for _, k := range s.closings(t, 0) {
			n += k
		}
		return n
	}
	if n := closed(); n != 0 {
		t.Fatalf("%d are closed before their time", n)
	}
	// All but the busy ones are due.
	clock.step(time.Minute - busy*time.Millisecond)
	last := make(time.Hour) // which wakes the worker that closes them
	eventually(t, "those that are due are closed", func() bool { return closed() == many-busy })
	if list := s.closings(t, 0); len(list) < 3 {
		t.Errorf("closed by %v: the test has to have more to do", list)
	}
	// The others become due while no worker runs.
	s.Close()
	clock.step(time.Second)
	if n := closed(); n != many-busy {
		t.Errorf("%d are closed while nobody does", n)
	}
	s.restart(t)
	eventually(t, "the others are closed", func() bool { return closed() == many })
	s.store.MustCheck(within(t)) // a replay of the log has the same result
	for _, n := range s.closings(t, 0) {
		if n > atMost {
			t.Errorf("one commit closes %d", n)
		}
	}
	for id, at := range due {
		c, err := s.Get(within(t), as("ann"), id)
		if err != nil || c.Status() != channel.Closed || !c.ClosedAt.Equal(at) {
			t.Errorf("one that was due at %v is %+v, %v", at, c, err)
		}
	}
	if c, err := s.Get(within(t), as("ann"), last); err != nil || c.Status() != channel.Open {
		t.Errorf("one that is not due is %+v, %v", c, err)
	}
}
