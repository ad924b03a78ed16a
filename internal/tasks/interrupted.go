package tasks

import (
	"context"

	"koine/internal/records"
	"koine/kg"
)

// failInterrupted fails the tasks that a worker in this process had begun, or was to
// begin, when the process ended: nobody knows how far it came.
func (s *Service) failInterrupted(ctx context.Context) error {
	ids, err := s.interrupted(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := s.report(ctx, own(), id, Report{
			State: Failed, Failure: &Failure{Code: FailureInterrupted, Message: "the server ended while the task was worked on"},
			Message: &Message{Parts: []Part{TextPart("The server ended while the task was worked on. Send it again.")}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) interrupted(ctx context.Context) (ids []TaskID, err error) {
	snapshot, err := s.view(ctx, own())
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for _, state := range []State{Submitted, Working} {
		for st, err := range snapshot.Match(kg.Pattern{Predicate: records.Property(propState), Object: kg.String(string(state))}) {
			if err != nil {
				return nil, err
			}
			if _, handler, ok := pairOf(st.Graph); ok && s.worker(handler) != nil {
				ids = append(ids, idOf(st.Subject))
			}
		}
	}
	return ids, nil
}
