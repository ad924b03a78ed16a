package search

import (
	"context"
	"runtime"
)

// ReadStep is readStep.
const ReadStep = readStep

// BuildIndex builds the index, as the job that follows the log does.
func (s *Service) BuildIndex(ctx context.Context) error {
	_, err := s.buildIndex(ctx)
	return err
}

// WaitForHistory waits until the texts that went are read from the log.
func (s *Service) WaitForHistory(ctx context.Context) error {
	for {
		if has, reading := s.hasHistory(); !has || !reading {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// HistoryTexts returns the number of texts in the history.
func (s *Service) HistoryTexts() uint64 { return s.history.texts.Size().Texts }

// MarkFollowing makes searches wait as from Start on.
func (s *Service) MarkFollowing() { s.follows.Store(true) }

// Waiting returns how many searches wait.
func (s *Service) Waiting() int32 { return s.waiting.Load() }
