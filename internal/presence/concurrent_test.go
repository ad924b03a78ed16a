package presence_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"koine/internal/presence"
	"koine/kg"
)

// Under any concurrent operations, in the end the graph agrees with the state of every
// agent.
func TestConcurrent(t *testing.T) {
	s := serve(t, t.TempDir(), time.Hour)
	agent := func(i int) kg.AgentID { return kg.AgentID(fmt.Sprintf("agent://%d", i)) }
	const agents = 6
	var all sync.WaitGroup
	for worker := range 8 {
		dice := rand.New(rand.NewPCG(7, uint64(worker)))
		all.Go(func() {
			for range 200 {
				id := agent(dice.IntN(agents))
				switch dice.IntN(5) {
				case 0:
					release := s.tracker.Connect(id)
					time.Sleep(time.Duration(dice.IntN(2000)) * time.Microsecond)
					release()
				case 1:
					says := []presence.Status{"", presence.Online, presence.Idle, presence.Busy, presence.Offline}[dice.IntN(5)]
					if _, err := s.tracker.Heartbeat(t.Context(), id, says); err != nil {
						t.Error(err)
					}
				case 2:
					s.tracker.Get(id)
				case 3:
					s.tracker.NoteActivity(id)
				case 4:
					s.statements(t, kg.SystemPrincipal())
				}
			}
		})
	}
	all.Wait()
	for i := range agents {
		for _, says := range []presence.Status{presence.Online, presence.Busy, presence.Offline} {
			if _, err := s.tracker.Heartbeat(t.Context(), agent(i), says); err != nil {
				t.Fatal(err)
			}
			s.awaitsOf(t, agent(i), says)
		}
	}
}
