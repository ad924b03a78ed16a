package presence_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/presence"
	"koine/kg"
)

// An agent is present while it has a connection, and for a while after the last one ended.
// Lasting states are written, with the time of the change.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		if got := tracker.Get(ann); got != (presence.Presence{Status: presence.Offline}) {
			t.Errorf("at first: %v", got)
		}
		first := tracker.Connect(ann)
		b.wantStatus(t, "connected", ann, presence.Online, "0s")
		time.Sleep(presence.DefaultSettle - 1)
		b.want(t, "before it lasts")
		time.Sleep(time.Nanosecond)
		b.want(t, "when it lasts", "1s: ann ONLINE since 0s")
		second := tracker.Connect(ann)
		first()
		first() // counts once
		time.Sleep(time.Minute)
		b.wantStatus(t, "one is left", ann, presence.Online, "0s")
		second() // 1m1s
		time.Sleep(presence.DefaultLinger - 1)
		b.wantStatus(t, "waited for", ann, presence.Online, "0s")
		time.Sleep(time.Nanosecond)
		b.wantStatus(t, "gone", ann, presence.Offline, "1m16s")
		time.Sleep(time.Second)
		b.want(t, "gone", "1m17s: ann OFFLINE since 1m16s")
		time.Sleep(24 * time.Hour)
		b.want(t, "nothing more happens")
		b.wantStatus(t, "much later", ann, presence.Offline, "1m16s")
	})
}

// An agent that returns in that time was never away.
func TestReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		for range 20 {
			release := tracker.Connect(ann)
			time.Sleep(10 * time.Second)
			release()
			time.Sleep(presence.DefaultLinger - 1)
			tracker.NoteActivity(ann)
		}
		b.want(t, "it came and went", "1s: ann ONLINE since 0s")
		b.wantStatus(t, "at the end", ann, presence.Online, "0s")
	})
}

// After a connection of any length the tracker waits: short connections do not flicker.
func TestShortConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		for range 15 { // before it is idle
			release := tracker.Connect(ann)
			time.Sleep(presence.DefaultSettle - 1)
			release()
			time.Sleep(presence.DefaultLinger - 1)
			if got := tracker.Get(ann); got.Status != presence.Online {
				t.Fatalf("before it comes again: %v", got)
			}
		}
		b.want(t, "it came and went", "1s: ann ONLINE since 0s")
		time.Sleep(time.Hour)
		if got := tracker.Get(ann); got.Status != presence.Offline {
			t.Errorf("an hour later: %v", got)
		}
	})
}

// A state that ends before it has lasted is not written.
func TestShortHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		b.beat(t, ann, presence.Online)
		time.Sleep(presence.DefaultSettle - 1)
		b.beat(t, ann, presence.Offline)
		if got := tracker.Get(ann); got != (presence.Presence{Status: presence.Offline}) {
			t.Errorf("after it: %v", got)
		}
		time.Sleep(time.Hour)
		b.want(t, "nothing lasted")
	})
}

// A connection that ends while it is being written down is not forgotten.
func TestGoneWhileWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		b.slow = time.Second
		release := tracker.Connect(ann)
		time.Sleep(presence.DefaultSettle + time.Second/2)
		release() // 1.5s
		time.Sleep(time.Minute)
		b.want(t, "both", "2s: ann ONLINE since 0s", "18.5s: ann OFFLINE since 16.5s")
	})
}

// A heartbeat holds for its time and no longer, and is never written itself.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := start(t, presence.Options{})
		if got := b.beat(t, ann, ""); got.Status != presence.Online {
			t.Errorf("the first heartbeat: %v", got)
		}
		for range 4 {
			time.Sleep(presence.DefaultValidity - 1)
			b.wantStatus(t, "between heartbeats", ann, presence.Online, "0s")
			b.beat(t, ann, "")
		}
		time.Sleep(presence.DefaultValidity - 1)
		b.wantStatus(t, "before it ends", ann, presence.Online, "0s")
		b.want(t, "five heartbeats", "1s: ann ONLINE since 0s")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		ended := 5*presence.DefaultValidity - 5 + 1
		b.wantStatus(t, "after it", ann, presence.Offline, ended.Truncate(time.Millisecond).String())
		time.Sleep(time.Second)
		if got := b.written(); len(got) != 1 {
			t.Errorf("its end: %q", got)
		}
		if _, err := b.tracker.Heartbeat(t.Context(), ann, "AWAY"); kg.CodeOf(err) != kg.CodeInvalid {
			t.Errorf("another status: %v", err)
		}
	})
}

// The status of an agent's heartbeat counts until the heartbeat expires; without a status
// it is idle after a time without a write.
func TestBusyAndIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		defer tracker.Connect(ann)()
		time.Sleep(presence.DefaultIdleAfter - 1)
		b.wantStatus(t, "not yet", ann, presence.Online, "0s")
		time.Sleep(1 + time.Second)
		b.wantStatus(t, "nothing done", ann, presence.Idle, "5m0s")
		b.want(t, "idle", "1s: ann ONLINE since 0s", "5m1s: ann IDLE since 5m0s")

		b.beat(t, ann, "") // which is nothing done
		b.wantStatus(t, "a heartbeat", ann, presence.Idle, "5m0s")
		time.Sleep(9 * time.Second)
		tracker.NoteActivity(ann)
		time.Sleep(10 * time.Second)
		b.want(t, "online", "5m11s: ann ONLINE since 5m10s")

		b.beat(t, ann, presence.Busy)
		b.wantStatus(t, "busy", ann, presence.Busy, "5m20s")
		time.Sleep(30 * time.Second)
		b.beat(t, ann, "")
		tracker.NoteActivity(ann)
		b.wantStatus(t, "busy on", ann, presence.Busy, "5m20s")
		time.Sleep(presence.DefaultValidity + 10*time.Second)
		b.want(t, "the heartbeat has ended, the connection not", "5m21s: ann BUSY since 5m20s", "6m51s: ann ONLINE since 6m50s")

		b.beat(t, ann, presence.Idle)
		tracker.NoteActivity(ann)
		b.wantStatus(t, "it says it is idle", ann, presence.Idle, "7m0s")
		b.beat(t, ann, presence.Online)
		b.wantStatus(t, "and takes it back at once", ann, presence.Online, "6m50s")
		b.beat(t, ann, presence.Busy)
		time.Sleep(presence.DefaultValidity - 1)
		b.beat(t, ann, "")
		time.Sleep(presence.DefaultIdleAfter)
		b.wantStatus(t, "idle since before it was busy no more", ann, presence.Idle, "12m0s")
	})
}

// An agent that leaves explicitly is offline at once, unless a connection is left.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		b.beat(t, ann, presence.Busy)
		time.Sleep(10 * time.Second)
		if got := b.beat(t, ann, presence.Offline); got.Status != presence.Offline {
			t.Errorf("leaving: %v", got)
		}
		time.Sleep(time.Second)
		b.want(t, "came and left", "1s: ann BUSY since 0s", "11s: ann OFFLINE since 10s")
		release := tracker.Connect(ann)
		b.beat(t, ann, presence.Busy)
		if got := b.beat(t, ann, presence.Offline); got.Status != presence.Online {
			t.Errorf("leaving with a connection: %v", got)
		}
		release()
		b.wantStatus(t, "and without", ann, presence.Offline, "10s")
		release = tracker.Connect(ann)
		time.Sleep(10 * time.Second)
		release()
		b.wantStatus(t, "waited for", ann, presence.Online, "11s")
		b.beat(t, ann, presence.Offline)
		b.wantStatus(t, "not waited for", ann, presence.Offline, "21s")
		if got := b.beat(t, bob, presence.Offline); got != (presence.Presence{Status: presence.Offline}) {
			t.Errorf("leaving without having come: %v", got)
		}
	})
}

// Changes by time have their own time, however late the state is read.
func TestDates(t *testing.T) {
	for _, row := range []struct {
		name      string
		connected bool
		says      presence.Status
		more      int           // heartbeats, every 50 seconds
		look      time.Duration // after the last of them
		want      presence.Status
		since     string
	}{
		{"a heartbeat", false, presence.Online, 0, 10 * time.Minute, presence.Offline, "1m0s"},
		{"busy without a connection", false, presence.Busy, 2, 10 * time.Minute, presence.Offline, "2m40s"},
		{"nothing done", true, presence.Online, 0, 10 * time.Minute, presence.Idle, "5m0s"},
		{"busy no more", true, presence.Busy, 0, 3 * time.Minute, presence.Online, "1m0s"},
		{"busy no more, and nothing done since long", true, presence.Busy, 6, 3 * time.Minute, presence.Idle, "6m0s"},
		{"busy no more, and then idle", true, presence.Busy, 1, 10 * time.Minute, presence.Idle, "5m0s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			expected := map[kg.AgentID]presence.Presence{ann: {Status: presence.Busy, Since: time.Now().Add(-time.Hour)}}
			tracker, b := startFrom(t, presence.Options{}, expected, ann)
			tracker.Close() // no writes, so no checks
			if row.connected {
				tracker.Connect(ann)
			}
			b.beat(t, ann, row.says)
			for range row.more {
				time.Sleep(50 * time.Second)
				b.beat(t, ann, "")
			}
			time.Sleep(row.look)
			b.wantStatus(t, row.name, ann, row.want, row.since)
		})
	}
}

// Writing does not make an absent agent present.
func TestActingAloneIsNotPresence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		tracker.NoteActivity(ann)
		time.Sleep(time.Minute)
		b.want(t, "it only wrote")
		b.beat(t, ann, "")
		b.beat(t, ann, presence.Offline)
		tracker.NoteActivity(ann)
		time.Sleep(time.Minute)
		b.want(t, "it wrote after it left")
	})
}

// Connections of agents without a record are not written, until they have one.
func TestOnlyAgentsOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{})
		release := tracker.Connect(ann)
		time.Sleep(10 * time.Minute)
		b.want(t, "no record")
		tracker.SetRegistered(ann, true)
		time.Sleep(time.Second)
		b.want(t, "a record", "10m0s: ann IDLE since 5m0s")
		tracker.SetRegistered(ann, false)
		release()
		time.Sleep(time.Minute)
		b.want(t, "what was written has its end", "10m17s: ann OFFLINE since 10m16s")
		defer tracker.Connect(bob)()
		b.beat(t, bob, "") // which makes the record
		time.Sleep(time.Second)
		b.want(t, "a heartbeat", b.sinceStart(time.Now())+": bob ONLINE since 11m1s")
	})
}

// After a restart present agents have the time of a heartbeat to return, and keep their
// states.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := time.Now().Add(-time.Hour)
		expected := map[kg.AgentID]presence.Presence{}
		for _, s := range []presence.Status{presence.Online, presence.Busy, presence.Idle, presence.Offline} {
			expected[kg.AgentID("agent://back-"+s)] = presence.Presence{Status: s, Since: hour}
			expected[kg.AgentID("agent://away-"+s)] = presence.Presence{Status: s, Since: hour}
		}
		tracker, b := startFrom(t, presence.Options{}, expected)
		for agent, p := range expected {
			b.wantStatus(t, "at first", agent, p.Status, "-1h0m0s")
		}
		time.Sleep(presence.DefaultValidity - 1)
		for _, s := range []presence.Status{presence.Online, presence.Idle} {
			defer tracker.Connect(kg.AgentID("agent://back-" + s))()
		}
		b.beat(t, "agent://back-BUSY", "")
		time.Sleep(10 * time.Second)
		if got := b.written(); len(got) != 3 {
			t.Errorf("written was %q", got)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for agent, p := range b.last {
			if agent[:len("agent://away")] != "agent://away" || p.Status != presence.Offline || b.sinceStart(p.Since) != "1m0s" {
				t.Errorf("written was that %s is %s since %s", agent, p.Status, b.sinceStart(p.Since))
			}
		}
		for agent, p := range expected {
			if agent[:len("agent://back")] == "agent://back" {
				b.wantStatus(t, "it came back", agent, p.Status, "-1h0m0s")
			}
		}
	})
}

// However often its state changes, an agent is written at most once in Stay, and not at all
// if no state lasts.
func TestFlapping(t *testing.T) {
	for _, row := range []struct {
		every       time.Duration
		least, most int
	}{
		{100 * time.Millisecond, 1, 1},
		{1500 * time.Millisecond, 5, 1 + int(time.Minute/presence.DefaultAgentWriteInterval)},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, b := start(t, presence.Options{})
			for i := range time.Minute / row.every {
				b.beat(t, ann, []presence.Status{presence.Busy, presence.Online, presence.Idle}[i%3])
				time.Sleep(row.every)
			}
			if got := b.written(); len(got) < row.least || len(got) > row.most {
				t.Errorf("in a minute of changes every %s %d were written: %q", row.every, len(got), got)
			}
		})
	}
}

// For any number of changes, there is at most one commit in Pause, of no more than
// MaxTransitions.
func TestCommitsAreBounded(t *testing.T) {
	for _, row := range []struct{ agents, commits int }{{presence.MaxTransitions, 1}, {presence.MaxTransitions + 1, 2}, {3*presence.MaxTransitions + 1, 4}} {
		synctest.Test(t, func(t *testing.T) {
			tracker, b := start(t, presence.Options{})
			for i := range row.agents {
				agent := kg.AgentID(fmt.Sprintf("agent://%d", i))
				tracker.SetRegistered(agent, true)
				defer tracker.Connect(agent)()
			}
			time.Sleep(10 * time.Second)
			if got := b.written(); len(got) != row.agents || len(b.commits) != row.commits || b.commits[0] != presence.MaxTransitions {
				t.Errorf("%d agents: %d transitions in commits of %d", row.agents, len(got), b.commits)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{})
		for i := range 300 { // one comes every 100 ms
			agent := kg.AgentID(fmt.Sprintf("agent://%d", i))
			tracker.SetRegistered(agent, true)
			defer tracker.Connect(agent)()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if got := b.written(); len(got) != 300 || len(b.commits) > 32 {
			t.Errorf("%d transitions in %d commits in 32 seconds", len(got), len(b.commits))
		}
	})
}

// The number of known agents is bounded; one that was never written gives its place back.
func TestMaxTracked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{MaxTracked: 2}, ann, bob, "agent://chen")
		release := tracker.Connect(ann)
		b.beat(t, bob, "")
		tracker.Connect("agent://chen")()
		b.wantStatus(t, "one too many", "agent://chen", presence.Offline, time.Time{}.Sub(b.began).String())
		if _, err := tracker.Heartbeat(t.Context(), "agent://chen", ""); kg.CodeOf(err) != kg.CodeLimitExceeded {
			t.Errorf("one heartbeat too many: %v", err)
		}
		if _, err := tracker.Heartbeat(t.Context(), "agent://dora", ""); kg.CodeOf(err) != kg.CodeLimitExceeded {
			t.Errorf("one heartbeat too many, without a record: %v", err)
		}
		b.beat(t, bob, "")               // known agents are accepted
		b.beat(t, ann, presence.Offline) // it does not come again
		release()
		b.beat(t, "agent://chen", "")
		if got := tracker.Get("agent://chen"); got.Status != presence.Online {
			t.Errorf("in the place of another: %v", got)
		}
	})
}

// An agent that deregisters with a connection open is present, and nothing of it is
// written, for any time, until it acts again: connects, sends a heartbeat, or registers
// again.
func TestDeregisteredWithAConnection(t *testing.T) {
	for name, comes := range map[string]func(*presence.Tracker) (leave func()){
		"connects":  func(tr *presence.Tracker) func() { return tr.Connect(ann) },
		"heartbeat": func(tr *presence.Tracker) func() { _, _ = tr.Heartbeat(t.Context(), ann, ""); return func() {} },
		"registers": func(tr *presence.Tracker) func() { tr.NoteRegistered(ann); return func() {} },
	} {
		synctest.Test(t, func(t *testing.T) {
			tr, b := start(t, presence.Options{}, ann)
			defer tr.Close()
			release := tr.Connect(ann)
			time.Sleep(10 * time.Second)
			b.want(t, name+": it is there", "1s: ann ONLINE since 0s")
			tr.NoteDeregistered(ann)
			tr.NoteActivity(ann)
			time.Sleep(10 * time.Minute) // it becomes idle, too
			b.want(t, name+": it deregistered")
			if got := tr.Get(ann).Status; got != presence.Idle {
				t.Errorf("%s: with a connection it is %s", name, got)
			}
			leave := comes(tr)
			time.Sleep(time.Minute)
			if got := b.written(); len(got) == 0 || !strings.Contains(got[0], "ann ") {
				t.Errorf("%s: written was %q", name, got)
			}
			leave()
			release()
			time.Sleep(10 * time.Minute)
			if got := b.written(); len(got) != 1 || !strings.Contains(got[0], "ann OFFLINE") {
				t.Errorf("%s: when it has left, written was %q", name, got)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		tr, b := start(t, presence.Options{}, ann)
		defer tr.Close()
		release := tr.Connect(ann)
		time.Sleep(10 * time.Second)
		b.written()
		tr.NoteDeregistered(ann)
		release()
		time.Sleep(10 * time.Minute)
		b.want(t, "it leaves without a word")
		if got := tr.Get(ann).Status; got != presence.Offline {
			t.Errorf("it is %s", got)
		}
	})
}
