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
	for _, handler := range s.workerIDs() {
		// Those of a handler that go on: how many others there are does not matter.
		for st, err := range snapshot.Match(openOf(handler)) {
			if err != nil {
				return nil, err
			}
			under, err := isUnderWay(snapshot, st)
			if err != nil {
				return nil, err
			}
			if under {
				ids = append(ids, idOf(st.Subject))
			}
		}
	}
	return ids, nil
}

// isUnderWay tells whether the handler of an open task has the word, and nobody waits for
// the one who gave it.
func isUnderWay(snapshot *kg.Snapshot, open kg.Statement) (bool, error) {
	for st, err := range snapshot.Match(kg.Pattern{Subject: open.Subject, Predicate: records.Property(propState), Graph: open.Graph}) {
		if err != nil {
			return false, err
		}
		state := State(st.Object.Value())
		return state == Submitted || state == Working, nil
	}
	return false, nil
}
