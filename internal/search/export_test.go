package search

import "context"

// ReadStep is readStep.
const ReadStep = readStep

// BuildIndex builds the index, as the job that follows the log does.
func (s *Service) BuildIndex(ctx context.Context) error {
	_, err := s.buildIndex(ctx)
	return err
}
