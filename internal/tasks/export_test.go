package tasks

import (
	"context"
	"time"
)

// Unclaimed lists the tasks that wait for their handler since before a time.
func (s *Service) Unclaimed(ctx context.Context, before time.Time) ([]TaskID, error) {
	return s.unclaimed(ctx, before)
}

// AtDesk counts the tasks that workers in this process are at.
func (s *Service) AtDesk() int {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	return len(s.desk.jobs)
}
