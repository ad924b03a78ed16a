package presence_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"koine/internal/presence"
	"koine/kg"
)

// crowd is a tracker with the maximum number of agents, all of them present, and the cost
// of each.
func crowd() (tracker *presence.Tracker, list []kg.AgentID, bytes float64) {
	tracker = presence.New(presence.Options{})
	list = make([]kg.AgentID, presence.DefaultMaxTracked)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range list {
		list[i] = kg.AgentID(fmt.Sprintf("agent://%d", i))
		tracker.SetRegistered(list[i], true)
		tracker.Connect(list[i])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return tracker, list, float64(after.HeapAlloc-before.HeapAlloc) / float64(len(list))
}

func BenchmarkHeartbeat(b *testing.B) {
	tracker, list, bytes := crowd()
	i := 0
	for b.Loop() {
		if _, err := tracker.Heartbeat(context.Background(), list[i%len(list)], ""); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(bytes, "B/agent")
}

func BenchmarkActed(b *testing.B) {
	tracker, list, _ := crowd()
	i := 0
	for b.Loop() {
		tracker.NoteActivity(list[i%len(list)])
		i++
	}
}

func BenchmarkConnection(b *testing.B) {
	tracker, list, _ := crowd()
	i := 0
	for b.Loop() {
		tracker.Connect(list[i%len(list)])()
		i++
	}
}
