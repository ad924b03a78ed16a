package tasks_test

import (
	"fmt"
	"testing"

	"koine/internal/tasks"
)

// BenchmarkPage reads the first page of 50 tasks, of few and of many.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := benched(b)
			for range n {
				if _, err := s.Send(b.Context(), as(ann), tasks.SendRequest{To: bot, Message: tasks.Message{Parts: []tasks.Part{tasks.TextPart("do it")}}}); err != nil {
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
