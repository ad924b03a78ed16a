package tasks

import (
	"context"
	"time"

	"koine/internal/caller"
	"koine/internal/systemgraph"
)

// Unclaimed lists tasks that have waited for their handler since before a time.
func (s *Service) Unclaimed(ctx context.Context, before time.Time) ([]TaskID, error) {
	return s.listUnclaimed(ctx, before)
}

// ExpireDue runs one round of expiry.
func (s *Service) ExpireDue(ctx context.Context) error { return s.expireDue(ctx) }

// ListReads is List, with the number of statements read.
func (s *Service) ListReads(ctx context.Context, by caller.Caller, q Query) (*Page, int64, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return nil, 0, err
	}
	defer snapshot.Close()
	page, err := s.listAt(snapshot, by, q)
	return page, snapshot.StatementsRead(), err
}

// AtDesk counts the jobs of workers in this process.
func (s *Service) AtDesk() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return len(s.pool.jobs)
}

// BytesProperty is the property that older builds do not state.
var BytesProperty = systemgraph.Property(propBytes)

// FailAbandoned runs one round of failing the tasks of agents that left.
func (s *Service) FailAbandoned(ctx context.Context) error { return s.failAbandoned(ctx) }

// NoteDeparted records departures as a start does.
func (s *Service) NoteDeparted(ctx context.Context) error { return s.noteDeparted(ctx) }

// Places returns the number of tasks of workers that run or wait.
func (s *Service) Places() int64 { return s.pool.places.InUse() }

// BytesRead is Get, with the bytes that count for Options.MaxReadBytes in place of the task.
func (s *Service) BytesRead(ctx context.Context, by caller.Caller, id TaskID, r ReadOptions) (int, error) {
	snapshot, err := s.snapshot(ctx, by)
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	m := &meter{limit: s.options.MaxReadBytes}
	_, err = readTask(snapshot, id, r, m)
	return m.used, err
}
