package presence_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"koine/internal/presence"
	"koine/kg"
)

// A failed write is tried again, with growing pauses, and logged once.
func TestFailedCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(bytes.Buffer)
		tracker, b := start(t, presence.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}, ann)
		b.fail = errors.New("the disk is full")
		release := tracker.Connect(ann)
		time.Sleep(time.Hour)
		b.want(t, "while it fails")
		if b.tries < 60 || b.tries > 70 || strings.Count(log.String(), "disk is full") != 1 {
			t.Errorf("%d tries, told as\n%s", b.tries, log)
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		time.Sleep(presence.MaxBackoff)
		if got := b.written(); len(got) != 1 || !strings.HasSuffix(got[0], "ann IDLE since 5m0s") {
			t.Errorf("when it works again: %q", got)
		}
		release()
		time.Sleep(presence.DefaultLinger + 2*time.Second)
		if got := b.written(); len(got) != 1 {
			t.Errorf("without waiting: %q", got)
		}
	})
}

// When the store has ended, or the tracker, nothing more is written.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, b := start(t, presence.Options{}, ann)
		b.fail = kg.Errorf(kg.CodeClosed, "closed")
		defer tracker.Connect(ann)()
		time.Sleep(time.Hour)
		if b.written(); b.tries != 1 {
			t.Errorf("the store has ended, and was tried %d times", b.tries)
		}
		closed, other := start(t, presence.Options{}, ann)
		release := closed.Connect(ann)
		closed.Close()
		closed.Close()
		release()
		time.Sleep(time.Hour)
		other.want(t, "closed")
		if got := closed.Get(ann); got.Status != presence.Offline {
			t.Errorf("closed: %v", got)
		}
		if _, err := closed.Heartbeat(t.Context(), bob, ""); kg.CodeOf(err) != kg.CodeClosed {
			t.Errorf("closed, the first heartbeat: %v", err)
		}
		presence.New(presence.Options{}).Close() // never started
	})
}

// After any events, the written state equals the present one, and an agent that is offline
// now was written as online before, unless it was never written.
func TestWhatIsWrittenIsWhatIs(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 5))
			tracker, b := start(t, presence.Options{})
			b.slow = time.Duration(dice.IntN(3)) * 400 * time.Millisecond
			var agents []kg.AgentID
			for i := range 5 {
				agents = append(agents, kg.AgentID(fmt.Sprintf("agent://%d", i)))
				tracker.SetRegistered(agents[i], i > 0)
			}
			open := map[kg.AgentID][]func(){}
			for range 300 {
				agent := agents[dice.IntN(len(agents))]
				switch n := dice.IntN(10); {
				case n < 3:
					open[agent] = append(open[agent], tracker.Connect(agent))
				case n < 6 && len(open[agent]) > 0:
					open[agent][0]()
					open[agent] = open[agent][1:]
				case n < 7:
					b.beat(t, agent, []presence.Status{"", presence.Online, presence.Idle, presence.Busy, presence.Offline}[dice.IntN(5)])
				default:
					tracker.NoteActivity(agent)
				}
				if dice.IntN(3) > 0 {
					time.Sleep(time.Duration(dice.Int64N(int64(20 * time.Second))))
				}
			}
			for _, leave := range dice.Perm(len(agents))[:3] {
				for _, release := range open[agents[leave]] {
					release()
				}
			}
			time.Sleep(15 * time.Minute) // all is idle or offline
			b.written()
			for _, agent := range agents {
				if got := tracker.Get(agent); !got.Since.IsZero() && got != b.last[agent] {
					t.Errorf("seed %d: %s is %v, and written is %v", seed, agent, got, b.last[agent])
				}
			}
		})
	}
}
