package tasks_test

import (
	"fmt"
	"testing"

	"koine/internal/tasks"
	"koine/kg"
)

// BenchmarkPage reads the first page of 50 tasks, of few and of many.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store, err := kg.Open(b.TempDir(), kg.Options{ReserveBytes: 1, Access: tasks.NewGuard(kg.AllowAll{})})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			s := tasks.New(tasks.Options{Known: func(kg.AgentID) bool { return true }})
			if err := s.Load(b.Context(), store); err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for range n {
				if _, err := s.Send(b.Context(), as(ann), tasks.Sending{To: bot, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("do it")}}}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if page, err := s.List(b.Context(), as(ann), tasks.Query{}); err != nil || len(page.Tasks) != 50 || page.Total != n {
					b.Fatal(page, err)
				}
			}
		})
	}
}
