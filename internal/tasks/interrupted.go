package tasks

import (
	"context"

	"koine/internal/systemgraph"
	"koine/kg"
)

// failInterrupted fails the tasks of workers in this process that had not ended when
// the process stopped: their progress is unknown.
func (s *Service) failInterrupted(ctx context.Context) error {
	ids, err := s.listInterrupted(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := s.applyReport(ctx, systemCaller(), id, Report{
			State: Failed, Failure: &Failure{Code: FailureInterrupted, Message: "the server stopped while the task was running"},
			Message: &Message{Parts: []Part{TextPart("The server stopped while the task was running. Send it again.")}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) listInterrupted(ctx context.Context) (ids []TaskID, err error) {
	snapshot, err := s.snapshot(ctx, systemCaller())
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for _, handler := range s.workerIDs() {
		// Only open tasks: the cost does not depend on the number of others.
		for st, err := range snapshot.Match(openOf(handler)) {
			if err != nil {
				return nil, err
			}
			under, err := isUnderWay(snapshot, st)
			if err != nil {
				return nil, err
			}
			if under {
				ids = append(ids, IDOf(st.Subject))
			}
		}
	}
	return ids, nil
}

// isUnderWay reports whether an open task waits for its handler and not for its
// creator.
func isUnderWay(snapshot *kg.Snapshot, open kg.Statement) (bool, error) {
	st, found, err := systemgraph.First(snapshot.Match, kg.Pattern{Subject: open.Subject, Predicate: systemgraph.Property(propState), Graph: open.Graph})
	state := State(st.Object.Value())
	return found && (state == Submitted || state == Working), err
}
