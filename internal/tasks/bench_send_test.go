package tasks_test

import (
	"testing"

	"koine/internal/tasks"
	"koine/kg"
)

// BenchmarkSend makes tasks for a handler elsewhere, 16 at a time.
func BenchmarkSend(b *testing.B) {
	s := benched(b)
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Send(b.Context(), as(ann), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("do it")}}}); err != nil {
				b.Error(err)
			}
		}
	})
}

// benched is a service on a store of its own, until the benchmark ends.
func benched(b *testing.B) *tasks.Service {
	b.Helper()
	store, err := kg.Open(b.TempDir(), kg.Options{ReserveBytes: 1, Governor: kg.Governor{Access: tasks.NewGuard(kg.AllowAll{})}})
	if err != nil {
		b.Fatal(err)
	}
	s := tasks.New(tasks.Options{Known: func(kg.AgentID) bool { return true }})
	if err := s.Load(b.Context(), store); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		s.Close()
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}
